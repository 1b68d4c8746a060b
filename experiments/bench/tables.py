"""What a bench found, as tables of at most 100 columns."""

from __future__ import annotations

from math import isnan, nan

from rich.console import Console
from rich.table import Table

from inakit.experiments.bench.chain import WORKERS
from inakit.experiments.bench.measure import Findings
from inakit.traffic.wire.frames import FRAGMENT


def print_findings(console: Console, findings: Findings) -> None:
    """Print the tables of what was measured, and why the rest was not."""
    if findings.rates:
        console.print(rate_table(findings), set_up_table(findings))
    for case, error in findings.failed:
        console.print(f"{case} {FAILED}: {error}", highlight=False, markup=False, soft_wrap=True)


def rate_table(findings: Findings) -> Table:
    """One row for each workload, loss limit and chain, a column for each target, and its ratio to the first one."""
    rates = findings.rates
    targets = list(dict.fromkeys(m.target for m in rates))
    table = Table(title="Packets per second into the first switch", caption=CAPTION, caption_justify="left")
    for heading in ("workload", "loss"):
        table.add_column(heading)
    for heading in ("switches", *targets, *(f"{target} : {targets[0]}" for target in targets[1:])):
        table.add_column(heading, justify="right")
    found = {(m.workload, m.loss_limit, m.switches, m.target): m.rate_pps for m in rates}
    groups = list(dict.fromkeys((m.workload, m.loss_limit) for m in rates))
    lengths = list(dict.fromkeys(m.switches for m in rates))
    for workload, limit in groups:
        for place, length in enumerate(lengths):
            row = [found.get((workload, limit, length, target), NOT_MEASURED) for target in targets]
            heads = ("", "") if place else (workload, f"≤ {limit:.1%}" if limit else "none")
            ratios = (ratio(rate, row[0]) for rate in row[1:])
            cells = [*heads, str(length), *map(number, row), *ratios]
            table.add_row(*cells, end_section=length == lengths[-1])
    return table


FAILED, NOT_MEASURED = "failed", nan
CAPTION = (
    f"{FRAGMENT.wire_bytes}-byte packets of {len(WORKERS)} workers through switches in a row, of which each packet "
    "passes every one; no link is shaped. One process sends, its processor time included."
)


def number(rate: float | None) -> str:
    """A rate as text; a dash for one that was not measured."""
    if rate is None:
        return FAILED
    return "-" if isnan(rate) else f"{rate:,.0f}"


def ratio(rate: float | None, reference: float | None) -> str:
    """A rate divided by the reference rate, as text; a dash if the reference is 0, or one is not there."""
    return "-" if rate is None or not reference or isnan(rate / reference) else f"{rate / reference:.1f}"


def set_up_table(findings: Findings) -> Table:
    """The seconds to set up each chain: a row for each length, a column for each target."""
    targets = list(dict.fromkeys(each.target for each in findings.set_ups))
    table = Table(title="Set-up: seconds for the network with its switches + their entries")
    for heading in ("switches", *targets):
        table.add_column(heading, justify="right")
    found = {(each.switches, each.target): f"{each.network_s:.1f} + {each.entries_s:.2f}" for each in findings.set_ups}
    for length in dict.fromkeys(each.switches for each in findings.set_ups):
        table.add_row(str(length), *(found.get((length, target), "-") for target in targets))
    return table
