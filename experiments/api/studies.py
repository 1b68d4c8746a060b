"""Studies from plain Python values: their runs are stored, summarised and drawn as by `inakit study`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from inakit.experiments.api.display import Picture, frame, table
from inakit.experiments.study.study import Study, kept_in, run_study
from inakit.experiments.study.study_file import load_study, study_from
from inakit.experiments.study.summary import counting, groups_of, labelled, shown_by_default
from inakit.experiments.study.table import rows_of
from inakit.experiments.sweeps.trial_engines import find_engine
from inakit.topo.errors import InputError

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class StudyResults:
    """The rows of a study's runs, in order; rows of runs that failed or are not VALID contain the reason."""

    study: Study
    rows: tuple[Mapping[str, Any], ...]

    @property
    def counted(self) -> list[Mapping[str, Any]]:
        """The rows that count: runs that ended and, if they ran on packets, are VALID."""
        return list(counting(labelled(self.rows, self.study.labels))[0])

    def to_frame(self) -> pandas.DataFrame:
        """All rows as a pandas data frame: settings, planned and measured figures, verdicts, errors."""
        return frame([dict(row) for row in self.rows])

    def summary(self, *figures: str, by: Sequence[str] = ()) -> pandas.DataFrame:
        """Mean, median and 95 % interval of each figure in each group of runs, as a pandas data frame.

        Parameters
        ----------
        *figures
            Names of figures such as ``"sending_rate_bps"``; by default the figures that the study shows.
        by
            The keys that define a group; by default all varying keys except the seed.
        """
        keys = tuple(by) or self.study.groups
        asked = figures or self.study.shows or shown_by_default(self.counted)
        return frame(
            [
                dict(zip(keys, group.names, strict=True))
                | {"figure": group.figure, "runs": group.runs, "mean": group.mean.value, "median": group.median}
                | {"low": group.mean.low, "high": group.mean.high}
                for group in groups_of(self.counted, keys, asked)
            ]
        )

    def plot(self, number: int = 1) -> Picture:
        """The study's figure with this number, from 1. Raises `InputError` if it does not exist."""
        from inakit.experiments.study.study_figures import drawn  # noqa: PLC0415, only pictures need matplotlib

        if not 1 <= number <= len(self.study.figures):
            raise InputError(
                f"figure {number}: the study defines {len(self.study.figures)}; add {{x: ..., y: ...}} to its figures"
            )
        return Picture(drawn(self.study.figures[number - 1], self.counted))

    def __repr__(self) -> str:
        return f"<Study {self.study.name}: {counting(self.rows)[1].words}>"

    def _repr_html_(self) -> str:
        shown = self.study.shows or shown_by_default(self.counted)
        groups = groups_of(self.counted, self.study.groups, shown)
        rows = [
            [*map(str, group.names), group.figure, str(group.runs), f"{group.mean.value:.6g}", f"{group.median:.6g}"]
            for group in groups
        ]
        headings = (*self.study.groups, "figure", "runs", "mean", "median")
        return table(headings, rows, self.study.name, [counting(self.rows)[1].words])


def study(
    description: str | Path | Mapping[str, Any],
    *,
    results: str | Path = "results",
    on: str = "loky",
    processes: int | None = None,
) -> StudyResults:
    """Run the runs of a study that are not yet stored in `results`.

    Parameters
    ----------
    description
        A study file, or its contents as a dictionary:
        ``{"stays": {"world": "virtual"}, "varies": [{"planner": ["aro", "atp"], "seed": "0..9"}]}``.
    results
        The folder in which results are stored.
    on
        The engine that executes runs: ``"loky"`` (processes of this machine), ``"dask:…"`` or ``"submitit:…"``.
    processes
        The number of simultaneous runs; by default one per processor.

    Returns
    -------
    StudyResults

    Raises
    ------
    InputError
        A mistake in the description, with the key and the expected value.
    """
    if isinstance(description, Mapping):
        asked = study_from({"version": 1, **description}, str(description.get("name", "study")))
    else:
        asked = load_study(Path(description))
    kept, trials = kept_in(Path(results)), asked.trials
    run_study(asked, Path(results), find_engine(on, processes, kept), Console(quiet=True))
    found = {trial.key: done for trial in trials if (done := kept.get(trial.key)) is not None}
    return StudyResults(asked, tuple(rows_of(trials, found)))
