"""Pictures that a notebook shows and a program saves."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inakit.topo.errors import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from inakit.planner.core.plan import Plan
    from inakit.planner.core.problem import Problem


@dataclass(frozen=True)
class Picture:
    """A picture: a notebook shows it, `save` writes it, and `figure` is matplotlib's, to be changed."""

    figure: Figure

    def save(self, path: str | Path) -> Path:
        """Write the picture as the ending of `path` says (.svg, .png, .pdf); its path. Raises `OutputError`."""
        with writing(Path(path)):
            self.figure.savefig(path, bbox_inches="tight")
        return Path(path)

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        self.figure.savefig(text, format="svg", bbox_inches="tight")
        return text.getvalue()


def picture_of(problem: Problem, plan: Plan, title: str) -> Picture:
    """The fabric of a problem with a plan's trees and link loads."""
    from inakit.experiments.run.planning import drawn_parts  # noqa: PLC0415, only pictures need matplotlib
    from inakit.topo.picture.draw import Picture as Drawing  # noqa: PLC0415

    return Picture(Drawing(problem.fabric, **drawn_parts(problem, plan)).figure(title))
