"""The report printed at the end of a run: planned and measured figures, the verdict, bandwidths, observed links.

Bandwidths are defined as in nccl-tests; `run.json` has them too. INA and end-host collectives share one table: the bus
bandwidth of a collective is at most the rate of each host's link, and only sums in switches can exceed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from inakit.experiments.run.console import NARROW, Amount, Detail, NamedTable, figure_cell, figures, names
from inakit.experiments.run.planning import chip_lines
from inakit.experiments.run.record import (
    FabricSummary,
    Fragments,
    LinksOverTime,
    PlannerRecord,
    RunRecord,
    TotalFigures,
)
from inakit.topo.files.quantities import in_words
from inakit.traffic.measure.comparison import TOTAL
from inakit.traffic.measure.verdict import OVERLOADED, VALID


def bandwidth_tables(record: RunRecord) -> Iterator[NamedTable]:
    """Yield the table of bandwidths of a completed record; nothing if the record has no bandwidths."""
    found = {name: entry.bandwidth for name, entry in record.planners.items() if entry.bandwidth}
    if not found:
        return
    tiers = sorted({tier for bandwidth in found.values() for tier in bandwidth.tier_bytes})
    # A link's tier is the higher tier of its ends.
    of_tiers = ["hosts' links\n" if tier == "1" else f"tier {tier}\n" for tier in tiers]
    table = Table(
        *names("planner", "job"),
        *figures("algbw\n", "busbw\n", *of_tiers, no_wrap=True),
        caption="bandwidths as defined by nccl-tests; bytes of the whole run, in both directions",
        **NARROW,
    )
    for name, bandwidth in found.items():
        bytes_of_run = [Amount(bandwidth.tier_bytes.get(tier, 0), "bytes") for tier in tiers]
        for number, (job, rates) in enumerate(bandwidth.jobs.items()):
            cells = [Amount(rate, "bit/s") for rate in (rates.algorithm_bandwidth_bps, rates.bus_bandwidth_bps)]
            table.add_row("" if number else name, job, *cells, *([] if number else bytes_of_run))
    yield NamedTable(table)


NAMED = 3
"""The number of most loaded links, and of deepest queues, that have rows for each planner."""
TIMES = ("total", "slots", "sending", "queues", "delay", "server", "result")
FIGURES = {"mean": "mean", "median": "median", "p99": "99 %", "max": "most"}


def observed_tables(record: RunRecord) -> Iterator[NamedTable]:
    over_time = {name: entry.links_over_time for name, entry in record.planners.items() if entry.links_over_time}
    if over_time:
        yield NamedTable(links_table(over_time))
    fragments = {name: entry.fragments for name, entry in record.planners.items() if entry.fragments}
    with_trees = {name: found for name, found in fragments.items() if found.followed}
    if with_trees:
        yield NamedTable(fragments_table(with_trees), one_unit=True)


def links_table(observed: Mapping[str, LinksOverTime]) -> Table:
    """A table of each planner's most loaded links and deepest queues."""
    table = Table(
        *names("planner", "link"),
        *figures(
            "utilisation\nmean", "utilisation\npeak", "mean queue\n(packets)", "peak queue\n(packets)", no_wrap=True
        ),
        title="links over time: the most loaded ones, and those with the deepest queues",
        **NARROW,
    )
    for name, over_time in observed.items():
        named = [*over_time.most_loaded[:NAMED], *over_time.deepest_queues[:NAMED]]
        for number, link in enumerate({link.link: link for link in named}.values()):
            table.add_row(
                "" if number else name,
                link.link,
                f"{link.utilisation_mean:.1%}",
                f"{link.utilisation_peak:.1%}",
                f"{link.queue_mean_packets:.1f}",
                f"{link.queue_peak_packets}",
            )
        table.add_section()
    return table


def fragments_table(observed: Mapping[str, Fragments]) -> Table:
    """A table of each planner's fragment times and their parts, in a suitable unit."""
    table = Table(
        *names("planner", ""),
        *figures(*(f"{part}\n" for part in TIMES), no_wrap=True),
        title="time per fragment, from the first worker's sending to the last result",
        **NARROW,
    )
    for name, fragments in observed.items():
        for number, cells in enumerate(time_cells(fragments.seconds)):
            table.add_row("" if number else name, *cells)
        table.add_section()
    table.caption = "; ".join(followed(name, fragments) for name, fragments in observed.items())
    return table


def time_cells(seconds: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    """Yield each figure's name, and its value for each part; nothing if no fragment was followed."""
    for figure, heading in FIGURES.items() if seconds else ():
        yield heading, *(Amount(seconds[part][figure], "s") for part in TIMES)


def followed(name: str, fragments: Fragments) -> str:
    """The number of fragments behind a planner's figures, in words."""
    which = "all" if fragments.every == 1 else f"one of {fragments.every}:"
    lacking = f", {fragments.incomplete:,} incomplete" if fragments.incomplete else ""
    return f"{name}: {which} {fragments.followed:,} fragments{lacking}"


OF_JOBS = (
    ".\nA job's sending rate is the rate of each of its workers. The total is the rate of all workers together, "
    "and the PS ingress of all jobs. The plan is for all jobs sending at once; a job that runs alone is no faster."
)
OVERLOAD = "The figures of an overloaded run are not results: they measure the emulation."
NO_RESULTS = {
    "OVERLOADED": OVERLOAD,
    "WRONG": "Wrong sums do not come from an overload: the P4 program, its entries, a switch or an endpoint is faulty.",
}
IN_VIRTUAL_TIME = {
    "OVERLOADED": "Time is virtual, so no machine was too slow: the network cannot keep this plan, which knows no "
    "delays and no waiting for slots. The figures are the network's, and do not confirm the plan."
}
VERDICT_STYLES: dict[str, str] = {VALID: "green", OVERLOADED: "bold red"}


def styled(verdict: str) -> str:
    """A verdict in colour."""
    return f"[{VERDICT_STYLES.get(verdict, 'bold yellow')}]{verdict}[/]"


def no_result(record: RunRecord) -> str:
    """What a verdict other than VALID means for the figures, in words."""
    virtual = IN_VIRTUAL_TIME if record.switch == "virtual" else {}
    return virtual.get(record.verdict) or NO_RESULTS.get(record.verdict, "")


def print_report(console: Console, record: RunRecord) -> None:
    """Print the tables of a completed record, then the verdict and its reasons."""
    console.print(planners_report(record))
    for table in (*bandwidth_tables(record), *observed_tables(record)):
        console.print(Detail(table))
    if record.fabric.scale != 1:
        console.print(scale_line(record), highlight=False)
    for name, entry in record.planners.items():
        for line in replay_lines(name, entry):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    for name, entry in record.planners.items():
        for line in () if entry.chips is None else chip_lines(name, entry.chips):
            console.print(line, highlight=False)
    for lines in (collision_lines, interference_lines, stranger_lines, sampled_lines):
        for name, entry in record.planners.items():
            for line in lines(name, entry):
                console.print(line, highlight=False)
    console.print(f"verdict: {styled(record.verdict)}", highlight=False)
    for reason in shortened(record.reasons):
        console.print(f"  - {reason}", highlight=False, markup=False, soft_wrap=True)
    if told := no_result(record):
        console.print(told, soft_wrap=True)


def interference_lines(name: str, entry: PlannerRecord) -> Iterator[str]:
    """Yield lines about the interferences of a planner's run, and the number of packets that were sent again."""
    for each in entry.interferences:
        yield from (f"{name}: {each.kind}: {line}" for line in each.said)
    if entry.interferences and entry.measured:
        again, cuts = entry.measured.retransmissions, entry.measured.window_cuts
        yield f"{name}: endpoints sent {again:,} packets again, and halved windows {cuts:,} time{'s' * (cuts != 1)}"


def replay_lines(name: str, entry: PlannerRecord) -> Iterator[str]:
    """Yield a line about a planner's replay: the first worker's command, and the rates of all workers."""
    if not entry.replayed:
        return
    rates = [f"{rate:.1f}" for rate in sorted(each.rate_fps for each in entry.replayed)]
    frames, first = sum(each.frames for each in entry.replayed), entry.replayed[0]
    by = f"`{first.command}` in {first.worker}" if first.command else "by no program, in virtual time"
    at = " to ".join(dict.fromkeys((rates[0], rates[-1])))
    yield f"{name}: {len(rates)} pcaps, {frames:,} frames in an iteration, at {at} frames/s each: {by}"


def collision_lines(name: str, entry: PlannerRecord) -> Iterator[str]:
    """Yield a line about collisions of fragments in shared slots, which no plan takes into account."""
    if entry.collisions:
        yield (
            f"{name}: {entry.collisions:,} packets found their slot taken, or took it; these collisions, and the "
            "windows that they shrink, keep workers below the planned rate"
        )


def stranger_lines(name: str, entry: PlannerRecord) -> Iterator[str]:
    """Yield lines about packets that switches rejected or dropped as malformed, and packets that endpoints ignored."""
    for away in entry.turned_away:
        yield (
            f"{name}: {away.switch} turned away {away.packets:,} packets from {away.sender} "
            f"(port {away.port}): not admitted"
        )
    for switch, counts in entry.switches.items():
        if counts["malformed"]:
            yield f"{name}: {switch} dropped {counts['malformed']:,} packets that are neither INA nor IPv4"
    if entry.ignored_by_endpoints:
        yield f"{name}: workers and servers ignored {entry.ignored_by_endpoints:,} packets of other trees"


def sampled_lines(name: str, entry: PlannerRecord) -> Iterator[str]:
    """Yield a line about the part of a run that was sent by packets, if the run could be sampled."""
    sampled = entry.sampled
    if sampled is not None:
        part = f"by packets: {sampled.by_packets:,} of {sampled.fragments:,} fragments"
        why = f"the rest is computed, with an error of at most {sampled.error:.1g} of a figure by its pieces"
        if sampled.why_whole is not None:
            why = f"whole, for {sampled.why_whole}"
        yield f"{name}: {part}; {why}"


def shortened(reasons: Sequence[str]) -> Iterator[str]:
    """Yield the first reason of each kind, with the number of others, which differ only in names and numbers."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(without_names(reason), []).append(reason)
    for first, *others in kinds.values():
        yield first + (f" (and {len(others)} more like this in run.json)" if others else "")


def without_names(reason: str) -> str:
    """The kind of a reason: its text without names, numbers and their units."""
    return " ".join(re.sub(r"'[^']*'|\S*\d\S*( [kMGmµn]?(bit/s|B|s)\b)?", "", reason).split())


@dataclass(frozen=True)
class Column:
    """A column of the table: the figure `key` of `run.json`, in bit/s, bytes, seconds, or without a unit."""

    key: str
    heading: str
    unit: str = ""

    def of(self, figures: TotalFigures | None) -> float | None:
        """The column's figure; None if there is none."""
        value: float | None = getattr(figures, self.key, None)
        return value

    def text(self, figures: TotalFigures | None) -> str:
        """The column's figure; a dash if there is none."""
        return figure_cell(self.of(figures), self.unit)

    def difference(self, planned: TotalFigures | None, measured: TotalFigures | None) -> str:
        """The measured minus the planned figure, relative to the planned one; "" unless both exist."""
        left, right = self.of(planned), self.of(measured)
        return f"{(right - left) / left:+.1%}" if left and right is not None else ""


COLUMNS = (
    Column("sending_rate_bps", "sending rate\n", "bit/s"),
    Column("ps_ingress_bytes", "PS ingress\n", "bytes"),
    Column("communication_time_s", "comm. time\n", "s"),
    Column("aggregation_ratio", "INA\nratio"),
)


def planners_report(record: RunRecord) -> NamedTable:
    """A table with three rows per planner: planned, measured, difference; for several jobs, per job and in total."""
    fabric, several = record.fabric, len(jobs_of(record)) > 1
    headings = [each.heading.removeprefix("sending ") if several else each.heading for each in COLUMNS]  # 80 columns
    table = Table(
        *names("planner", *(("job",) if several else ()), ""),
        *figures(*headings, no_wrap=True),
        *names("verdict"),
        title=f"{fabric.name}: {fabric.switches} switches{in_pipelines(fabric)}, {fabric.hosts} hosts, "
        f"{fabric.workers} workers; switch {record.switch}, {record.mode}",
        caption=f"per iteration; bits and bytes count whole frames{OF_JOBS if several else ''}",
        **NARROW,
    )
    for name, entry in record.planners.items():
        for number, (job, planned, measured) in enumerate(compared(entry, several=several)):
            first, found, exact = ("", "", "") if number else (name, verdict(entry), exactness(entry))
            of_job, none = ((job,), ("",)) if several else ((), ())
            table.add_row(first, *of_job, "planned", *(column.text(planned) for column in COLUMNS), found)
            table.add_row("", *none, "measured", *(column.text(measured) for column in COLUMNS), exact)
            table.add_row("", *none, "off by", *(column.difference(planned, measured) for column in COLUMNS), "")
        table.add_section()
    return NamedTable(table)


def in_pipelines(fabric: FabricSummary) -> str:
    """The number of pipelines per switch, in words; empty if every switch has one."""
    numbers = {len(switch["pipelines"]) for switch in fabric.description["switches"].values()}
    most = max(numbers, default=1)
    return "" if most == 1 else f" ({'up to ' if len(numbers) > 1 else ''}{most} pipelines)"


def jobs_of(record: RunRecord) -> set[str]:
    """The numbers of a run's jobs, from its planned figures."""
    return {job for entry in record.planners.values() for job in entry.planned.jobs}


def compared(entry: PlannerRecord, *, several: bool) -> Iterator[tuple[str, TotalFigures, TotalFigures | None]]:
    """Yield a planner's planned and measured figures: for every job and in total, or once for a single job."""
    planned, measured = entry.planned, entry.measured
    if not several:
        yield "", planned, measured
        return
    for job, of_job in planned.jobs.items():
        yield job, of_job, None if measured is None else measured.jobs.get(job)
    yield TOTAL, planned.total, None if measured is None else measured.total


def scale_line(record: RunRecord) -> str:
    """A line with the measured rates converted to the rates of the described fabric."""
    scale = record.fabric.scale
    rates = {name: entry.measured.sending_rate_bps for name, entry in record.planners.items() if entry.measured}
    of = " (of the slowest job)" if len(jobs_of(record)) > 1 else ""
    found = ", ".join(f"{name} {in_words(rate / scale, 'bit/s')}" for name, rate in rates.items())
    return (
        f"emulated at {scale:g} of the described rates; converted to those, the measured sending rates{of} are {found}"
    )


def exactness(entry: PlannerRecord) -> str:
    """The exactness of a planner's sums, in colour; empty if it was not checked."""
    return {True: "[green]sums exact[/]", False: "[bold red]sums not exact[/]", None: ""}[entry.exact]


def verdict(entry: PlannerRecord) -> str:
    """A planner's verdict, in colour."""
    return styled(entry.verdict or "-")
