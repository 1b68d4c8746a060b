"""The summaries of a study as tables: in the terminal, as CSV, and as LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

from rich.table import Table

from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.run.printed.tables import NARROW, NamedTable
from inakit.experiments.study.bootstrap import INTERVAL
from inakit.experiments.study.summary import Difference, Group
from inakit.experiments.styles.method_styles import paper_name
from inakit.topo.errors import writing
from inakit.topo.files.csv_table import write_csv

UNITS = {
    "_bps": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "_bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "_s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")),
}
"""By the ending of a figure's name: factors from the largest, and the names of the units."""
DIGITS = 4
LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """A unit in which a figure is shown: values are divided by `factor`."""

    factor: float = 1.0
    name: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table: headings, rows of cells as text, and the number of first columns that are names."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int


def unit_of(figure: str, values: Iterable[float]) -> Unit:
    """The largest unit in which the largest value is at least 1."""
    largest = max(map(abs, values), default=0.0)
    for ending, units in UNITS.items():
        if figure.endswith(ending):
            return next((Unit(*unit) for unit in units if largest >= unit[0]), Unit(*units[-1]))
    return Unit()


def title_of(figure: str, unit: Unit) -> str:
    """A figure's name in words with its unit: "sending rate (Mbit/s)"."""
    name = figure
    for ending in UNITS:
        name = name.removesuffix(ending)
    words = name.replace("_", " ").replace("ps ingress", "PS ingress")
    return f"{words} ({unit.name})" if unit.name else words


def digits(value: float | None) -> str:
    """A value with `DIGITS` significant digits, without an exponent; a dash for None."""
    if value is None:
        return "-"
    whole = 0 if not value else max(0, DIGITS - 1 - int(log10(abs(value))) + (abs(value) < 1))
    return f"{value:,.{min(whole, 9)}f}"


def interval(mean: Estimate, unit: Unit) -> str:
    """The ends of an interval; a dash where there is none."""
    if mean.low is None or mean.high is None:
        return "-"
    return f"{digits(mean.low / unit.factor)} to {digits(mean.high / unit.factor)}"


def name(key: str, value: Any) -> str:
    """A value of a key as tables show it; planners have the names of the papers' figures."""
    return paper_name(value) if key == "planner" else "-" if value is None else str(value)


def groups_sheet(figure: str, keys: Sequence[str], groups: Sequence[Group]) -> Sheet:
    """A figure in all groups: runs, mean, median, interval."""
    unit = unit_of(figure, (group.mean.value for group in groups))
    rows = (
        (
            *map(name, keys, group.names), str(group.runs),
            digits(group.mean.value / unit.factor), digits(group.median / unit.factor), interval(group.mean, unit),
        )
        for group in groups
    )  # fmt: skip
    return Sheet(title_of(figure, unit), (*keys, "runs", "mean", "median", "95 % interval"), tuple(rows), len(keys))


def differences_sheet(figure: str, keys: Sequence[str], found: Sequence[Difference]) -> Sheet:
    """The paired differences of a figure in all groups: pairs, difference, in percent, interval."""
    unit = unit_of(figure, (each.mean.value for each in found))
    others = [key for key in keys if key != "planner"]
    rows = (
        (
            *map(name, others, each.names), paper_name(each.planner), str(len(each.mean.draws)),
            digits(each.mean.value / unit.factor), "-" if each.share is None else f"{each.share:+.1%}",
            interval(each.mean, unit),
        )
        for each in found
    )  # fmt: skip
    title = f"{title_of(figure, unit)}: above {paper_name(found[0].against)}, in pairs"
    headings = (*others, "planner", "pairs", "difference", "of it", "95 % interval")
    return Sheet(title, headings, tuple(rows), len(others) + 1)


def terminal_table(sheet: Sheet) -> NamedTable:
    """The sheet for the terminal."""
    table = Table(title=sheet.title, caption=INTERVAL, **NARROW)
    for place, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="left" if place < sheet.names else "right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*row)
    return NamedTable(table, sheet.names)


def write_latex(path: Path, sheets: Sequence[Sheet]) -> None:
    """Write the sheets as LaTeX tables, for a document with `booktabs`. Raises `OutputError`."""
    with writing(path):
        path.write_text("\n".join(map(latex, sheets)), encoding="utf-8")


def latex(sheet: Sheet) -> str:
    """A sheet as a LaTeX table."""
    columns = "l" * sheet.names + "r" * (len(sheet.headings) - sheet.names)
    lines = [
        r"\begin{table}",
        rf"  \caption{{{escaped(sheet.title)}}}",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {line(sheet.headings)}",
        r"    \midrule",
        *(f"    {line(row)}" for row in sheet.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def line(cells: Sequence[str]) -> str:
    """A line of a LaTeX table."""
    return " & ".join(map(escaped, cells)) + r" \\"


def escaped(text: str) -> str:
    """A text as LaTeX prints it."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def write_groups(path: Path, keys: Sequence[str], groups: Iterable[Group]) -> None:
    """Write the groups as CSV, with all digits, in the units that the figures' names say. Raises `OutputError`."""
    rows = (
        (*group.names, group.figure, group.runs, group.mean.value, group.median, group.mean.low, group.mean.high)
        for group in groups
    )
    write_csv(path, (*keys, "figure", "runs", "mean", "median", "low", "high"), rows)


def write_differences(path: Path, keys: Sequence[str], found: Iterable[Difference]) -> None:
    """Write the paired differences as CSV, with all digits. Raises `OutputError`."""
    rows = (
        (*each.names, each.figure, each.planner, each.against, len(each.mean.draws), each.mean.value, each.share,
         each.mean.low, each.mean.high)
        for each in found
    )  # fmt: skip
    others = [key for key in keys if key != "planner"]
    headings = (*others, "figure", "planner", "against", "pairs", "difference", "share", "low", "high")
    write_csv(path, headings, rows)
