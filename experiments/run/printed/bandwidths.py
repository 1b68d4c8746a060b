"""Bandwidths of a run as nccl-tests define them, and its bytes on each tier of links: in `run.json`, and as a table.

INA and end-host collectives stand in one table: the bus bandwidth of a collective is the rate of each host's link, and
only sums in switches can exceed that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from inakit.experiments.run.printed.tables import NARROW, NamedTable
from inakit.planner.core.problem import Problem
from inakit.traffic.measure.bandwidth import algorithm_bandwidth_bps, bus_bandwidth_bps, bytes_by_tier, core_bytes
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.monitor import Monitor


def bandwidth_figures(problem: Problem, measured: Measured, monitor: Monitor) -> dict[str, Any]:
    """The figures as `run.json` has them: of every job that was run, and bytes of the whole run by tier of links.

    A replay has none: no sums come back in it.
    """
    if measured.mode != "reliable":
        return {}
    tiers = bytes_by_tier(problem.fabric, monitor)
    jobs = {}
    for job in problem.jobs:
        if job.number in measured.jobs:
            seconds = measured.of_job(job.number).communication_time_s
            jobs[str(job.number)] = {
                "algorithm_bandwidth_bps": algorithm_bandwidth_bps(job.gradient_bytes, seconds),
                "bus_bandwidth_bps": bus_bandwidth_bps(job.gradient_bytes, seconds, len(job.workers)),
            }
    by_tier = {str(tier): count for tier, count in sorted(tiers.items())}
    return {"jobs": jobs, "tier_bytes": by_tier, "core_bytes": core_bytes(tiers)}


def bandwidth_tables(record: Mapping[str, Any]) -> Iterator[NamedTable]:
    """The table of planners of a completed `run.json`; none for a record without such figures."""
    found = {name: entry["bandwidth"] for name, entry in record["planners"].items() if entry.get("bandwidth")}
    if not found:
        return
    tiers = sorted({tier for figures in found.values() for tier in figures["tier_bytes"]})
    table = Table(caption="bandwidths as nccl-tests define them; bytes are those of the whole run, both ways", **NARROW)
    table.add_column("planner", no_wrap=True)
    table.add_column("job", no_wrap=True)
    headings = ["algbw\n(Mbit/s)", "busbw\n(Mbit/s)", *(f"{tier_name(tier)}\n(MB)" for tier in tiers)]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, figures in found.items():
        bytes_of_run = [f"{figures['tier_bytes'].get(tier, 0) / 1e6:.2f}" for tier in tiers]
        for number, (job, rates) in enumerate(figures["jobs"].items()):
            cells = [f"{rates[f'{kind}_bandwidth_bps'] / 1e6:.3f}" for kind in ("algorithm", "bus")]
            table.add_row("" if number else name, job, *cells, *([] if number else bytes_of_run))
    yield NamedTable(table)


def tier_name(tier: str) -> str:
    """Links by the higher tier of their ends: those of hosts, then by its number."""
    return "hosts' links" if tier == "1" else f"tier {tier}"
