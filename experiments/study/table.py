"""The table of a study: a row for every run of a planner that is kept; units are in the columns' names.

What differs from occasion to occasion (durations, machines, times of day) stands in a table of its own, so that the
table of results is the same, byte for byte, however often the study was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.study import COMPARED, MEASURED, PLANNED
from inakit.experiments.sweeps.trial import Finished, Trial

Row = Mapping[str, Any]

FILES = (".yml", ".yaml")
"""What the names of studies' files end in."""
TABLE, OCCASIONS = "results.parquet", "occasions.parquet"
WHOLE = ("pipelines", "workers", "servers", "gradient_bytes", "iterations", "seed", "retransmissions", "collisions")
FIGURES = (*PLANNED, *MEASURED, "gap")
"""The columns with numbers that summaries and figures may show."""
ASIDE = COMPARED
"""Names without `planned_` or `measured_` stand for what is measured where the study runs, else for what is planned."""
WORDS = ("solved", "verdict", "reasons", "error")
COLUMNS = ("run", *KEYS, *FIGURES, "exact", *WORDS)
UNITS = {"aggregation_rate": "aggregation_rate_bps"}
"""Names that get their unit as columns."""


def row_of(trial: Trial, finished: Finished) -> dict[str, Any]:
    """The row of a run that is done: its setting, then its figures, or its error."""
    found = {"run": trial.key, **trial.given, **(finished.row or {}), "error": finished.error}
    return {column: found.get(column) for column in COLUMNS}


def rows_of(trials: Sequence[Trial], found: Mapping[str, Finished]) -> list[dict[str, Any]]:
    """The rows of all runs that are done, in order."""
    return [row_of(trial, found[trial.key]) for trial in trials if trial.key in found]


def occasion_of(finished: Finished) -> dict[str, Any]:
    """How long a run took, where and when."""
    return {"run": finished.key, "duration_s": finished.seconds, "machine": finished.host, "ended": finished.ended}


def is_study(path: Path) -> bool:
    """Whether a path is a study's file or the folder of its results."""
    return path.suffix in FILES or (path / TABLE).is_file() or path.name == TABLE
