"""The agreement of two worlds as a table, as rows of files, and in a few lines: medians, and what differs by more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from inakit.experiments.agreement.comparison import NOT_RUN, Compared
from inakit.experiments.agreement.differences import LINK_BYTES, MEDIAN, QUANTITIES
from inakit.experiments.run.printed.report import VERDICT_STYLES
from inakit.experiments.run.printed.tables import NARROW, NamedTable
from inakit.traffic.measure.verdict import Verdict

SHOWN = (("sending_rate_bps", "rate (Mbit/s)", 1e-6, 3), ("communication_time_s", "time (ms)", 1e3, 1))
"""The quantities whose values in both worlds the table has: name, heading, factor to its unit, and digits."""


def agreement_table(found: Sequence[Compared], names: tuple[str, str]) -> NamedTable:
    """A row for each combination: rate and time in both worlds, and the differences in percent."""
    first, second = names
    table = Table(
        title=f"{second} against {first}, differences in %",
        **NARROW,
    )
    table.add_column("combination", no_wrap=True)
    headings = [f"{heading}\n{first}" for _, heading, _, _ in SHOWN]
    for heading in headings:
        for each in (heading, f"\n{second}", "\n%"):
            table.add_column(each, justify="right", no_wrap=True)
    for each in ("ingress\n%", "INA\n%", "links\nworst", "\nmedian"):
        table.add_column(each, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in found:
        table.add_row(str(one.combination), *cells(one), styled(one.verdict))
    return NamedTable(table)


def cells(one: Compared) -> list[str]:
    """The figures of a row; dashes where there are none."""
    values = {each.name: [each.value(outcome) for outcome in one.outcomes] for each in QUANTITIES}
    found: list[str] = []
    for name, _, factor, digits in SHOWN:
        shown = [f"{value * factor:.{digits}f}" for value in values[name] if value is not None]
        found += [*shown, *["-"] * (2 - len(shown)), percent(one, name)]
    links = [one.differences.worst_link_difference, one.differences.median_link_difference] if one.differences else []
    shown = [f"{100 * each:.2f}" for each in links] or ["-", "-"]
    return [*found, percent(one, "ps_ingress_bytes"), percent(one, "aggregation_ratio"), *shown]


def percent(one: Compared, name: str) -> str:
    """A difference in percent with its sign; a dash where there is none."""
    return f"{100 * one.differences.figures[name]:+.2f}" if one.differences else "-"


def styled(verdict: str) -> str:
    """A verdict in colour."""
    return f"[{VERDICT_STYLES.get(verdict, 'dim' if verdict == NOT_RUN else 'bold yellow')}]{verdict}[/]"


FEW = 10
"""A median of fewer combinations says little."""


@dataclass(frozen=True)
class Summary:
    """All combinations together: how many count, how many of those agree, and the medians of their differences.

    `failed`: how many broke in the first world, and so do not count.
    """

    counted: int
    agreeing: int
    medians: dict[str, float]
    failed: int = 0

    @staticmethod
    def of(found: Sequence[Compared]) -> Summary:
        """The summary of combinations that were tried."""
        counted = [one for one in found if one.counts]
        differences = [one.differences for one in counted if one.differences]
        all_of = {each.name: [abs(one.figures[each.name]) for one in differences] for each in QUANTITIES}
        all_of[LINK_BYTES] = [abs(off) for one in differences for off in one.links.values()]
        medians = {name: median(values) for name, values in all_of.items() if values}
        failed = sum(one.verdict == Verdict.FAILED for one in found)
        return Summary(len(counted), sum(one.verdict == Verdict.VALID for one in counted), medians, failed)

    @property
    def agrees(self) -> bool:
        """Whether some combination counts, all that count agree, none broke, and all medians are below `MEDIAN`.

        Medians of fewer than `FEW` combinations are not judged.
        """
        judged = self.medians.values() if self.counted >= FEW else ()
        return not self.failed and 0 < self.counted == self.agreeing and all(found < MEDIAN for found in judged)

    def as_json(self) -> dict[str, Any]:
        """The summary in `agreement.json`."""
        return {
            "counted": self.counted,
            "agreeing": self.agreeing,
            "failed": self.failed,
            "medians": self.medians,
            "agrees": self.agrees,
        }


def words_of(one: Compared) -> str:
    """The verdict of a combination and its greatest differences, for who waits for the table."""
    off = f" (rate {percent(one, 'sending_rate_bps')} %, time {percent(one, 'communication_time_s')} %)"
    return f"{styled(one.verdict)}{off if one.differences else ''}"


def print_summary(console: Console, found: Sequence[Compared]) -> None:
    """Print the medians, how many combinations agree, and the reasons of all that do not."""
    summary = Summary.of(found)
    told = ", ".join(f"{name} {value:.3%}" for name, value in summary.medians.items())
    if told:
        limit = f" (each to be below {MEDIAN:.1%})" if summary.counted >= FEW else ""
        console.print(f"medians{limit}: {told}", highlight=False, soft_wrap=True)
    others = len(found) - summary.counted
    rest = f"; {others} more have no VALID run to compare with" if others else ""
    console.print(f"{summary.agreeing} of {summary.counted} agree{rest}", highlight=False, soft_wrap=True)
    for one in found:
        for line in exception_lines(one):
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def exception_lines(one: Compared) -> Iterator[str]:
    """Why a combination does not agree or does not count, and how often its fragments collided."""
    if one.verdict == Verdict.VALID:
        return
    more = f" (and {len(one.reasons) - 2} more)" if len(one.reasons) > 2 else ""
    yield f"- {one.combination}: {one.verdict}: {'; '.join(one.reasons[:2])}{more}"
    if one.differences and any(one.differences.collisions):
        first, second = one.differences.collisions
        yield f"  {first:,} and {second:,} packets found their slot taken: that depends on the timing of every packet"


def row(one: Compared) -> dict[str, Any]:
    """A row of `agreement.csv`: the figures of both worlds, None where there are none, and their differences."""
    combination, differences = one.combination, one.differences
    found: dict[str, Any] = {
        "network": combination.network,
        "planner": combination.planner,
        "policy": combination.policy,
        "mode": combination.mode,
        "verdict": one.verdict,
        "link_bps": one.link_bps,
    }
    for each in QUANTITIES:
        values = [each.value(outcome) for outcome in one.outcomes]
        first, second = (*values, None, None)[:2]
        off = differences.figures[each.name] if differences else None
        found |= {f"first_{each.name}": first, f"second_{each.name}": second, f"difference_{each.name}": off}
    worst, middle = (differences.worst_link_difference, differences.median_link_difference) if differences else ("", "")
    found |= {f"worst_{LINK_BYTES}": worst, f"median_{LINK_BYTES}": middle}
    first_collisions, second_collisions = differences.collisions if differences else ("", "")
    return found | {"first_collisions": first_collisions, "second_collisions": second_collisions}


def link_rows(one: Compared) -> Iterator[tuple[str, str, str, float]]:
    """The rows of `links.csv`: combination, the two ends of a directed link, and the difference in its bytes."""
    for (node, peer), off in one.differences.links.items() if one.differences else ():
        yield str(one.combination), node, peer, off
