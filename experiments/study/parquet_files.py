"""The tables of a study as Parquet files, written and read. They need pyarrow, an optional dependency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.table import COLUMNS, FIGURES, OCCASIONS, TABLE, UNITS, WHOLE, Row
from inakit.topo.errors import InputError, writing


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
    if column in (*FIGURES, "aggregation_rate", "slot_s", "reconfiguration_s"):
        return pa.float64()
    return pa.bool_() if column == "exact" else pa.string()


def write(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet in one step. Raises `OutputError`."""
    draft = path.with_suffix(".draft")
    with writing(path):
        parquet.write_table(table, draft, compression="zstd")
        draft.replace(path)


def rows_in(file: Path) -> list[Row]:
    """Read the rows of `results.parquet`. Raises `InputError` for a file that is broken or of another version."""
    keys = {column: key for key, column in UNITS.items()}
    try:
        listed = parquet.read_table(file).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} is cut short or no table of a study: `inakit study run` writes a new one") from error
    rows: list[Row] = [{keys.get(column, column): value for column, value in row.items()} for row in listed]
    if rows and not {"verdict", "error", "planner", *KEYS} <= rows[0].keys():
        raise InputError(f"{file} is of another version of inakit: `inakit study run` writes a new one")
    return rows
