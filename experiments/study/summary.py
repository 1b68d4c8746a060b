"""Summaries of a study's rows: each group's mean, median and interval, and paired differences between planners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.study.bootstrap import bootstrapped
from inakit.experiments.study.measuring import COMPARED
from inakit.experiments.study.setting import KEYS, PLANS_ONLY
from inakit.experiments.study.table import Row
from inakit.topo.errors import InputError
from inakit.traffic.measure.verdict import VALID

DEFAULT_SHOWN = ("sending_rate_bps", "ps_ingress_bytes", "communication_time_s")


@dataclass(frozen=True)
class Group:
    """The values of a figure in the runs that have the same `names`; the estimate is of their mean."""

    names: tuple[Any, ...]
    figure: str
    mean: Estimate
    median: float

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.mean.draws)


@dataclass(frozen=True)
class Difference:
    """What a planner's figure is above another's, in pairs of runs that differ in nothing but the planner.

    `share` is the mean difference relative to the mean of `against`; None where that is 0.
    """

    names: tuple[Any, ...]
    figure: str
    planner: str
    against: str
    mean: Estimate
    share: float | None


@dataclass(frozen=True)
class Left:
    """How many runs have figures that count, and how many are left out by reason."""

    counted: int
    out: Mapping[str, int]

    @property
    def words(self) -> str:
        """Both numbers in words."""
        told = ", ".join(f"{count} {reason}" for reason, count in self.out.items())
        return f"{self.counted} runs" + (f"; left out: {told}" if told else "")


def counting(rows: Iterable[Row]) -> tuple[list[Row], Left]:
    """The rows whose figures are results: neither failed nor with a verdict other than VALID."""
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
    """The rows with the labels of the values that have one; planners keep their names, which have labels anyway."""
    keys = [key for key in KEYS if key != "planner"]
    return [{**row, **{key: labels[row[key]] for key in keys if row[key] in labels}} for row in rows]


def column_of(row: Row, figure: str) -> str:
    """The column of a figure: measured where the run was in a world, else planned, unless its name says which."""
    if figure not in COMPARED:
        return figure
    return f"planned_{figure}" if row["world"] == PLANS_ONLY else f"measured_{figure}"


def value_of(row: Row, figure: str) -> float | None:
    """The row's value of a figure; None where it has none."""
    value: float | None = row[column_of(row, figure)]
    return value


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by their values of the keys, in the order of the rows."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def groups_of(rows: Iterable[Row], keys: Sequence[str], figures: Sequence[str]) -> Iterator[Group]:
    """Mean, median and interval of every figure in every group that has values of it."""
    for names, own in grouped(rows, keys).items():
        for figure in figures:
            values = [value for row in own if (value := value_of(row, figure)) is not None]
            if values:
                yield Group(names, figure, bootstrapped(values), median(values))


def differences_of(
    rows: Sequence[Row], keys: Sequence[str], figures: Sequence[str], against: str
) -> Iterator[Difference]:
    """The paired differences between each planner and `against`, in each group; the planner itself makes no group."""
    others = [key for key in keys if key != "planner"]
    for names, own in grouped(rows, others).items():
        runs = {planner: pairs(mine) for (planner,), mine in grouped(own, ["planner"]).items()}
        base = runs.pop(against, {})
        for planner, mine in runs.items():
            yield from compared(names, figures, (planner, mine), (against, base))


def pairs(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """A planner's rows by all that a run is given besides the planner."""
    return {tuple(row[key] for key in KEYS if key != "planner"): row for row in rows}


def compared(
    names: tuple[Any, ...],
    figures: Sequence[str],
    one: tuple[str, Mapping[tuple[Any, ...], Row]],
    other: tuple[str, Mapping[tuple[Any, ...], Row]],
) -> Iterator[Difference]:
    """The paired differences of each figure between two planners' runs in a group."""
    both = [(run, other[1][key]) for key, run in one[1].items() if key in other[1]]
    for figure in figures:
        values = [(value_of(mine, figure), value_of(theirs, figure)) for mine, theirs in both]
        known = [(mine, theirs) for mine, theirs in values if mine is not None and theirs is not None]
        if known:
            mean, base = bootstrapped([a - b for a, b in known]), sum(b for _, b in known) / len(known)
            yield Difference(names, figure, one[0], other[0], mean, mean.value / base if base else None)


def baseline(rows: Sequence[Row], asked: str | None) -> str:
    """The planner with which others are compared: the one that is asked for, else the first. Raises `InputError`."""
    planners = list(dict.fromkeys(row["planner"] for row in rows))
    if asked and asked not in planners:
        raise InputError(f"against '{asked}': no run that counts is of it; choose from {', '.join(planners)}")
    return asked or planners[0]
