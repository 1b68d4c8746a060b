"""The table of a study: a row for every run of a planner that is kept, as Parquet; units are in the columns' names.

What differs from occasion to occasion (durations, machines, times of day) stands in a table of its own, so that the
table of results is the same, byte for byte, however often the study was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inakit.experiments.study.measuring import COMPARED, MEASURED, PLANNED
from inakit.experiments.study.setting import KEYS
from inakit.experiments.sweeps.kept import Finished
from inakit.experiments.sweeps.one_trial import Trial
from inakit.topo.errors import writing

if TYPE_CHECKING:
    import pyarrow

Row = Mapping[str, Any]

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


def write_tables(folder: Path, rows: Sequence[Row], occasions: Sequence[Row]) -> None:
    """Write both tables, each in one step. Raises `OutputError`."""
    import pyarrow as pa  # noqa: PLC0415, half a second, and only whoever writes tables needs it

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    columns = {UNITS.get(name, name): pa.array([row[name] for row in rows], type_of(name)) for name in COLUMNS}
    write(pa.table(columns), folder / TABLE)
    kinds = {"run": pa.string(), "duration_s": pa.float64(), "machine": pa.string(), "ended": pa.string()}
    write(pa.Table.from_pylist(list(occasions), pa.schema(list(kinds.items()))), folder / OCCASIONS)


def type_of(column: str) -> pyarrow.DataType:
    """The type of a column."""
    import pyarrow as pa  # noqa: PLC0415

    if column in WHOLE:
        return pa.int64()
    if column in (*FIGURES, "aggregation_rate"):
        return pa.float64()
    return pa.bool_() if column == "exact" else pa.string()


def write(table: pyarrow.Table, path: Path) -> None:
    """Write a table as Parquet in one step. Raises `OutputError`."""
    from pyarrow import parquet  # noqa: PLC0415

    draft = path.with_suffix(".draft")
    with writing(path):
        parquet.write_table(table, draft, compression="zstd")
        draft.replace(path)
