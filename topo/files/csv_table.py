"""Tables as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inakit.topo.errors import writing


def write_csv(path: Path, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows under headings. Raises `OutputError`."""
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows(rows)
