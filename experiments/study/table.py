"""The table of a study: a row for every run with a result; units are in the columns' names.

Durations, machines and times of day stand in a table of their own, so that the table of results is the same, byte for
byte, however often the study was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.study import COMPARED, COMPARED_SCHEDULES, MEASURED, OF_SCHEDULES, PLANNED
from inakit.experiments.sweeps.trial import Finished, Trial

Row = Mapping[str, Any]

FILES = (".yml", ".yaml")
"""The suffixes of studies' files."""
TABLE, OCCASIONS = "results.parquet", "occasions.parquet"
WHOLE = (
    *("pipelines", "workers", "servers", "gradient_bytes", "iterations", "first_jobs", "optical_ports", "seed"),
    *("retransmissions", "collisions", "planned_connections", "measured_connections", "reconfigurations"),
)
FIGURES = (*PLANNED, *MEASURED, *OF_SCHEDULES, "gap")
"""The numeric columns that summaries and figures can show."""
ASIDE = (*COMPARED, *COMPARED_SCHEDULES)
"""Names without `planned_` or `measured_` stand for the measured figure if the study runs in a world, else planned."""
WORDS = ("solved", "by_packets", "verdict", "reasons", "error")
COLUMNS = ("run", *KEYS, *FIGURES, "exact", *WORDS)
UNITS = {"aggregation_rate": "aggregation_rate_bps"}
"""Keys whose columns are named with their unit."""


def row_of(trial: Trial, finished: Finished) -> dict[str, Any]:
    """The row of a run that is done: its setting, then its figures, or its error."""
    found = {"run": trial.key, **trial.given, **(finished.row or {}), "error": finished.error}
    return {column: found.get(column) for column in COLUMNS}


def rows_of(trials: Sequence[Trial], found: Mapping[str, Finished]) -> list[dict[str, Any]]:
    """The rows of all runs that are done, in order."""
    return [row_of(trial, found[trial.key]) for trial in trials if trial.key in found]


def occasion_of(finished: Finished) -> dict[str, Any]:
    return {"run": finished.key, "duration_s": finished.seconds, "machine": finished.host, "ended": finished.ended}


def is_study(path: Path) -> bool:
    """Whether a path is a study's file or the folder of its results."""
    return path.suffix in FILES or (path / TABLE).is_file() or path.name == TABLE
