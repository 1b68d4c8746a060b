"""What a bench found, as tables of at most 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from experiments.bench.chain import WORKERS
from experiments.bench.measure import Findings, Measurement
from traffic.wire.frames import FRAGMENT


def rate_table(rates: Sequence[Measurement]) -> Table:
    """One row for each workload, loss limit and chain, a column for each target, and its ratio to the first one."""
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
            row = [found[workload, limit, length, target] for target in targets]
            heads = ("", "") if place else (workload, f"≤ {limit:.1%}" if limit else "none")
            cells = [*heads, str(length), *(f"{rate:,.0f}" for rate in row), *(ratio(rate, row[0]) for rate in row[1:])]
            table.add_row(*cells, end_section=length == lengths[-1])
    return table


CAPTION = (
    f"{FRAGMENT.wire_bytes}-byte packets of {len(WORKERS)} workers through switches in a row, of which each packet "
    "passes every one; no link is shaped. One process sends, its processor time included."
)


def ratio(rate: float, reference: float) -> str:
    """A rate divided by the reference rate, as text; a dash if the reference is 0."""
    return f"{rate / reference:.1f}" if reference else "-"


def set_up_table(findings: Findings) -> Table:
    """The seconds to set up each chain: a row for each length, a column for each target."""
    targets = list(dict.fromkeys(each.target for each in findings.set_ups))
    table = Table(title="Set-up: seconds for the network with its switches + their entries")
    for heading in ("switches", *targets):
        table.add_column(heading, justify="right")
    found = {(each.switches, each.target): f"{each.network_s:.1f} + {each.entries_s:.2f}" for each in findings.set_ups}
    for length in dict.fromkeys(each.switches for each in findings.set_ups):
        table.add_row(str(length), *(found[length, target] for target in targets))
    return table
