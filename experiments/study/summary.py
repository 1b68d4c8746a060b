"""Summaries of a study's rows: each group's mean, median and interval, paired differences, and both as tables.

Intervals are by the bootstrap: no distribution of the values is assumed. Tables are for the terminal, as CSV, and as
LaTeX with booktabs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.table import Table

from inakit.experiments.papers.common.estimates import CONFIDENCE, Estimate
from inakit.experiments.report.method_styles import paper_name
from inakit.experiments.run.console import NARROW, NamedTable
from inakit.experiments.study.setting import KEYS, PLANS_ONLY
from inakit.experiments.study.table import ASIDE, Row
from inakit.topo.errors import InputError, writing
from inakit.topo.files.quantities import shown_unit
from inakit.topo.files.reader import write_csv
from inakit.traffic.measure.verdict import VALID

INTERVAL = "95 % interval (bootstrap)"
RESAMPLES = 10_000
MOST_AT_ONCE = 1 << 22
"""The largest number of values that are drawn in one step, which limits the memory."""


def bootstrapped(values: Sequence[float]) -> Estimate:
    """The mean of one or more values, and the percentile interval of the means of `RESAMPLES` samples.

    The samples are drawn with a fixed seed, so that the same values have the same interval. A single value has none.
    """
    given = np.asarray(values, dtype=float)
    mean = float(given.mean())
    if len(given) < 2:
        return Estimate(mean, None, None, tuple(values))
    tails = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled_means(given), (tails, 1 - tails))
    return Estimate(mean, float(low), float(high), tuple(values))


def resampled_means(
    given: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The means of `RESAMPLES` samples with replacement, each as large as the given one."""
    draw = np.random.default_rng(0)
    rows = max(1, MOST_AT_ONCE // len(given))
    parts = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    return np.concatenate([given[draw.integers(len(given), size=(part, len(given)))].mean(axis=1) for part in parts])


def shown_by_default(rows: Sequence[Row]) -> tuple[str, ...]:
    """The figures that tables show unless a study names others."""
    if any(row["center"] for row in rows):
        return ("mean_jct_s", "ct_bti_s", "connections")
    return ("sending_rate_bps", "ps_ingress_bytes", "communication_time_s")


@dataclass(frozen=True)
class Group:
    """The values of a figure in the runs that have the same `names`; the estimate is of their mean."""

    names: tuple[Any, ...]
    figure: str
    mean: Estimate
    median: float

    @property
    def runs(self) -> int:
        return len(self.mean.draws)


@dataclass(frozen=True)
class Difference:
    """The amount by which a planner's figure exceeds another's, in pairs of runs that differ only in the planner.

    `share` is the mean difference relative to the mean of `against`; None if that is 0.
    """

    names: tuple[Any, ...]
    figure: str
    planner: str
    against: str
    mean: Estimate
    share: float | None


@dataclass(frozen=True)
class Left:
    """The number of runs with figures that count, and of omitted runs by reason."""

    counted: int
    out: Mapping[str, int]

    @property
    def words(self) -> str:
        """Both numbers in words."""
        told = ", ".join(f"{count} {reason}" for reason, count in self.out.items())
        return f"{self.counted} runs" + (f"; left out: {told}" if told else "")


def counting(rows: Iterable[Row]) -> tuple[list[Row], Left]:
    """The rows whose figures are results: neither failed nor with a verdict other than VALID; and the counts."""
    counted: list[Row] = []
    out: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        if row["error"] is not None:
            out["failed"] += 1
        elif row["verdict"] not in (None, VALID):
            out[row["verdict"]] += 1
        else:
            counted.append(row)
    return counted, Left(len(counted), out)


def labelled(rows: Iterable[Row], labels: Mapping[str, str]) -> list[Row]:
    """Apply the labels to the values of the rows; planners keep their names, which have labels anyway."""
    keys = [key for key in KEYS if key != "planner"]
    return [{**row, **{key: labels[row[key]] for key in keys if row[key] in labels}} for row in rows]


def column_of(row: Row, figure: str) -> str:
    """The column of a figure: unless the figure's name says which, measured if the run was in a world, else planned."""
    if figure not in ASIDE:
        return figure
    return f"planned_{figure}" if row["world"] == PLANS_ONLY else f"measured_{figure}"


def value_of(row: Row, figure: str) -> float | None:
    """The row's value of a figure; None if it has none."""
    value: float | None = row[column_of(row, figure)]
    return value


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Group the rows by their values of the keys, in the order of the rows."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def groups_of(rows: Iterable[Row], keys: Sequence[str], figures: Sequence[str]) -> Iterator[Group]:
    """Yield mean, median and interval of every figure in every group that has values of it."""
    for names, own in grouped(rows, keys).items():
        for figure in figures:
            values = [value for row in own if (value := value_of(row, figure)) is not None]
            if values:
                yield Group(names, figure, bootstrapped(values), median(values))


def differences_of(
    rows: Sequence[Row], keys: Sequence[str], figures: Sequence[str], against: str
) -> Iterator[Difference]:
    """Yield the paired differences between each planner and `against`, in groups by the other keys than the planner."""
    others = [key for key in keys if key != "planner"]
    for names, own in grouped(rows, others).items():
        runs = {planner: pairs(mine) for (planner,), mine in grouped(own, ["planner"]).items()}
        base = runs.pop(against, {})
        for planner, mine in runs.items():
            yield from compared(names, figures, (planner, mine), (against, base))


def pairs(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """A planner's rows by all parameters of the run besides the planner."""
    return {tuple(row[key] for key in KEYS if key != "planner"): row for row in rows}


def compared(
    names: tuple[Any, ...],
    figures: Sequence[str],
    one: tuple[str, Mapping[tuple[Any, ...], Row]],
    other: tuple[str, Mapping[tuple[Any, ...], Row]],
) -> Iterator[Difference]:
    """Yield the paired differences of each figure between two planners' runs in a group."""
    both = [(run, other[1][key]) for key, run in one[1].items() if key in other[1]]
    for figure in figures:
        values = [(value_of(mine, figure), value_of(theirs, figure)) for mine, theirs in both]
        known = [(mine, theirs) for mine, theirs in values if mine is not None and theirs is not None]
        if known:
            mean, base = bootstrapped([a - b for a, b in known]), sum(b for _, b in known) / len(known)
            yield Difference(names, figure, one[0], other[0], mean, mean.value / base if base else None)


def baseline(rows: Sequence[Row], asked: str | None) -> str:
    """The planner with which others are compared: `asked`, by default the first. Raises `InputError`."""
    planners = list(dict.fromkeys(row["planner"] for row in rows))
    if asked and asked not in planners:
        raise InputError(f"against '{asked}': no run that counts uses it; choose from {', '.join(planners)}")
    return asked or planners[0]


UNITS = {"_bps": "bit/s", "_bytes": "bytes", "_s": "s"}
"""By the ending of a figure's name: the unit of its values."""
DIGITS = 4
LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "µ": r"$\mu$"}  # fmt: skip


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
    return next((Unit(*shown_unit(unit, values)) for ending, unit in UNITS.items() if figure.endswith(ending)), Unit())


def title_of(figure: str, unit: Unit) -> str:
    """A figure's name in words with its unit: "sending rate (Mbit/s)"."""
    name = figure
    for ending in UNITS:
        name = name.removesuffix(ending)
    words = name.replace("_", " ").replace("ps ingress", "PS ingress").replace("jct", "JCT").replace("ct bti", "CT-BTI")
    return f"{words} ({unit.name})" if unit.name else words


def digits(value: float | None) -> str:
    """Format a value with `DIGITS` significant digits, without an exponent; a dash for None."""
    if value is None:
        return "-"
    whole = 0 if not value else max(0, DIGITS - 1 - int(log10(abs(value))) + (abs(value) < 1))
    return f"{value:,.{min(whole, 9)}f}"


def interval(mean: Estimate, unit: Unit) -> str:
    """Format the ends of an interval; a dash if there is none."""
    if mean.low is None or mean.high is None:
        return "-"
    return f"{digits(mean.low / unit.factor)} to {digits(mean.high / unit.factor)}"


def name(key: str, value: Any) -> str:
    """A value of a key for tables; planners have the names of the papers' figures."""
    return paper_name(value) if key == "planner" else "-" if value is None else str(value)


def groups_sheet(figure: str, keys: Sequence[str], groups: Sequence[Group]) -> Sheet:
    """A sheet of a figure in all groups: runs, mean, median, interval."""
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
    """A sheet of the paired differences of a figure in all groups: pairs, difference, in percent, interval."""
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
    return " & ".join(map(escaped, cells)) + r" \\"


def escaped(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def write_groups(path: Path, keys: Sequence[str], groups: Iterable[Group]) -> None:
    """Write the groups as CSV, with all digits, in the units of the figures' names. Raises `OutputError`."""
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
