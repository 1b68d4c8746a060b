"""The table of a study: a row for every run of a planner that is kept; units are in the columns' names.

What differs from occasion to occasion (durations, machines, times of day) stands in a table of its own, so that the
table of results is the same, byte for byte, however often the study was interrupted. Both are Parquet files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.study import COMPARED, MEASURED, PLANNED
from inakit.experiments.sweeps.trial import Finished, Trial
from inakit.topo.errors import InputError, writing

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


def write_tables(folder: Path, rows: Sequence[Row], occasions: Sequence[Row]) -> None:
    """Write both tables, each in one step. Raises `OutputError`."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    columns = {UNITS.get(name, name): pa.array([row[name] for row in rows], type_of(name)) for name in COLUMNS}
    write(pa.table(columns), folder / TABLE)
    kinds = {"run": pa.string(), "duration_s": pa.float64(), "machine": pa.string(), "ended": pa.string()}
    write(pa.Table.from_pylist(list(occasions), pa.schema(list(kinds.items()))), folder / OCCASIONS)


def type_of(column: str) -> pa.DataType:
    if column in WHOLE:
        return pa.int64()
    if column in (*FIGURES, "aggregation_rate"):
        return pa.float64()
    return pa.bool_() if column == "exact" else pa.string()


def write(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet in one step. Raises `OutputError`."""
    draft = path.with_suffix(".draft")
    with writing(path):
        parquet.write_table(table, draft, compression="zstd")
        draft.replace(path)


def rows_in(file: Path) -> list[Row]:
    """The rows of `results.parquet`. Raises `InputError` for a file that is broken or of another version."""
    keys = {column: key for key, column in UNITS.items()}
    try:
        listed = parquet.read_table(file).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} is cut short or no table of a study: `inakit study run` writes it anew") from error
    rows: list[Row] = [{keys.get(column, column): value for column, value in row.items()} for row in listed]
    if rows and not {"verdict", "error", "planner", *KEYS} <= rows[0].keys():
        raise InputError(f"{file} is of another version of inakit: `inakit study run` writes it anew")
    return rows
