"""A panel of a figure as data: both its picture and its CSV are made of this and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inakit.experiments.papers.common.estimates import Series
from inakit.experiments.styles.method_styles import Style, style_of

Place = str | float
"""A place on the x axis: a number, or the name of a group of bars."""
Values = Mapping[str, Sequence[float]]
"""The values of each line, by its name, one for each place."""
Printed = Mapping[str, Mapping[Place, float]]
"""The values that a paper prints: by the name of a line, then by place."""

LINES, BARS, VIOLINS = "lines", "bars", "violins"


@dataclass(frozen=True)
class Panel:
    """One pair of axes: `series` over `places`, drawn as lines, bars or violins.

    `paper` has the values that the paper prints, `planned` those that plans promise: by line, then by place. `styles`
    are those of lines that are no methods. `log` names the logarithmic axes, as in "y" or "xy".
    """

    kind: str
    places: Sequence[Place]
    series: Series
    xlabel: str
    ylabel: str
    title: str = ""
    paper: Printed = field(default_factory=dict)
    planned: Values = field(default_factory=dict)
    log: str = ""
    styles: Mapping[str, Style] = field(default_factory=dict)

    def style(self, name: str) -> Style:
        """The style of one of the panel's lines."""
        return self.styles.get(name) or style_of(name)
