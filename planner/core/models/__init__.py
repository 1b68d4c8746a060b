"""The models of the papers as tables of their layers: name and number of parameters of every tensor, in order.

A table is a CSV file with these two columns; comments give the source of its numbers. Names are torchvision's; for BERT
they are those of its PyTorch version. GOAT cuts a model by "the default model partition of PyTorch" (section IV-B). The
kit takes this to mean tensors: BERT's gradients then have the average size of 2 MB that GOAT states.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files.reader import FileKind, read_text

BYTES_PER_PARAMETER = 4
COLUMNS = ["name", "parameters"]
TABLE = FileKind("table of layers", max_bytes=1 << 24)
TABLES = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.csv"))}
"""The kit's tables, by the model's name."""


@dataclass(frozen=True)
class Layer:
    """A tensor of a model and its number of parameters."""

    name: str
    parameters: int


@dataclass(frozen=True)
class Model:
    """A model's layers, in the order of its gradient."""

    name: str
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """The size of a gradient with 4 bytes for each parameter."""
        return BYTES_PER_PARAMETER * self.parameters


def find_model(name: str) -> Model:
    """Return one of `TABLES`, or the model in a .csv file. Raises `InputError` with the nearest known name."""
    if name.endswith(".csv"):
        return read_model(Path(name))
    if name not in TABLES:
        raise unknown_name("model", name, TABLES)
    return read_model(TABLES[name])


@cache
def read_model(path: Path) -> Model:
    """Read the model of a file. Raises `InputError` with the line of a mistake."""
    lines = read_text(path, TABLE).splitlines()
    rows = csv.reader(("" if line.startswith("#") else line for line in lines), skipinitialspace=True, strict=True)
    try:
        told = [(rows.line_num, [word.strip() for word in row]) for row in rows if row]
    except csv.Error as error:
        raise InputError(f"{path} line {rows.line_num}: not valid CSV: {error}") from error
    if not told or told[0][1] != COLUMNS:
        raise InputError(f"{path}: the header '{','.join(COLUMNS)}' is expected above the layers")
    layers = tuple(layer_of(path, number, row) for number, row in told[1:])
    twice = [name for name, count in Counter(layer.name for layer in layers).items() if count > 1]
    if twice or not layers:
        raise InputError(f"{path}: " + (f"layer '{twice[0]}' occurs twice" if twice else "it has no layer"))
    return Model(path.stem, layers)


def layer_of(path: Path, number: int, row: list[str]) -> Layer:
    """Parse a row of a table. Raises `InputError` with the line of a mistake."""
    if len(row) != len(COLUMNS) or not row[0] or not row[1].isdecimal() or not int(row[1]):
        raise InputError(f"{path} line {number}: '{','.join(row)}': a name and a positive number are expected")
    return Layer(row[0], int(row[1]))
