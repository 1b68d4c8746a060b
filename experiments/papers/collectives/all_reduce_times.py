"""The times of all-reduces by in-network aggregation (INA) and by collectives, by real packets in virtual time.

`inakit reproduce collectives crossover` shows them over the message size, on fabrics of several oversubscriptions:
where INA begins to win. `inakit reproduce collectives scale` shows those of a short message over the number of workers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median

from rich.table import Table

from inakit.experiments.papers.common.drawing import Panel, Place
from inakit.experiments.papers.common.estimates import Estimate, estimate
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.report.method_styles import INK, MINT, MUSTARD, NAVY, PLUM, RED, SKY, Style
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.topo.errors import RunError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_delay
from inakit.traffic.measure.comparison import bus_bandwidth_bps, bytes_by_tier, core_bytes
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

LINK_BPS, LINK_DELAY_S = 100e9, 1e-6
COLLECTIVE_STYLES = {
    "ring": Style(NAVY, "s"),
    "halving-doubling": Style(SKY, "D"),
    "double-tree": Style(MINT, "^"),
    "hierarchical": Style(MUSTARD, "v"),
    "ps-sharded": Style(PLUM, "P"),
}
TIME = Quantity("seconds", "time of an all-reduce (µs)", of_mean=lambda seconds, _: 1e6 * seconds)


def run_exactly(trial: Trial, prepared: Prepared) -> Outcome:
    """Run a plan in virtual time. Raises `RunError` for wrong sums."""
    outcome = run_plan(Run(prepared), find_world("virtual"))
    if not outcome.measured.exact:
        raise RunError(f"{trial}: sums are not exact: {'; '.join(outcome.measured.wrong)}")
    return outcome


# -- Over the message size; longer messages are planned only. INA appears with several numbers of aggregator slots,
# because slots bound its rate: it sums at most a window of fragments per round trip.

WORKERS = 16
LEAF_SPINE = partial(leaf_spine, 4, 4, 8, capacity_bps=LINK_BPS)
FAT_TREE = partial(fat_tree, 4, hosts_per_edge=4, capacity_bps=LINK_BPS)
FABRICS: dict[str, Callable[[], Fabric]] = {
    "leaf-spine 1:1": partial(LEAF_SPINE, oversubscription=1),
    "leaf-spine 4:1": partial(LEAF_SPINE, oversubscription=4),
    "fat-tree 1:1": partial(FAT_TREE, oversubscription=1),
    "fat-tree 4:1": partial(FAT_TREE, oversubscription=4),
}
"""Fabrics of 32 hosts, with their oversubscription."""
QUICK_FABRICS = ("leaf-spine 4:1",)
MEASURED, QUICK_MEASURED = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20), (1 << 10, 1 << 14, 1 << 18)
PLANNED = (1 << 22, 1 << 24, 1 << 26)
"""Messages in bytes; those above 1 MB are planned only."""
SEEDS = (5, 2)
"""The number of random selections of hosts."""
PROCESSES = 2
NEAR = 0.1
"""The measured times of a line agree with its plans if their median relative difference is at most this."""

INA = {"INA, 512 slots": 512, "INA, 128 slots": 128, "INA, 32 slots": 32}
"""By line, the number of aggregator slots in each switch, for planner `aro`; the window is half of them."""
COLLECTIVES = {name: name for name in (*COLLECTIVE_STYLES, "ring-random")}
OTHERS = COLLECTIVES | {"PS": "lbmm"}
STYLES = {
    "INA, 512 slots": Style(RED, "o"),
    "INA, 128 slots": Style(RED, "h", "--"),
    "INA, 32 slots": Style(RED, "x", ":"),
    **COLLECTIVE_STYLES,
    "ring-random": Style(NAVY, "d", ":"),
    "PS": Style(INK, "X"),
}


def fabric_of(trial: Trial) -> Fabric:
    fabric = with_delay(FABRICS[str(trial["fabric"])](), LINK_DELAY_S)
    return with_aggregators(fabric, slots=INA.get(str(trial["line"]), 512))


def problem_of(trial: Trial) -> Problem:
    """One job, whose workers and PS the seed draws."""
    fabric = fabric_of(trial)
    server, *workers = random.Random(int(trial["seed"])).sample([host.name for host in fabric.hosts], WORKERS + 1)
    ordered = tuple(host.name for host in fabric.hosts if host.name in workers)
    return Problem(fabric, (Job(1, ordered, (server,), int(trial["bytes"])),), FRAGMENT)


def promised_s(prepared: Prepared) -> float:
    """The planned time of a plan: that of sending all fragments, then of the last fragment's path and its result.

    With few slots the plan's rate is not reached; the slots limit it to one window of fragments per round trip.
    """
    problem, plan, job = prepared.problem, prepared.plan, prepared.prediction.jobs[1]
    if plan.collectives:
        return job.communication_time_s
    windows = [each.tree.window for each in plan.trees if each.tree.window]
    fragments = FRAGMENT.count(problem.jobs[0].gradient_bytes)
    held_s = max((fragments / window * job.way_s for window in windows), default=0.0)
    return max(job.communication_time_s + job.way_s, held_s)


def measure(trial: Trial) -> Result:
    """Measure a trial, or take the prediction of its plan if it is only planned. Raises `RunError` for wrong sums."""
    prepared = plan_to_run(problem_of(trial), OTHERS.get(str(trial["line"]), "aro"), int(trial["seed"]))
    promised = promised_s(prepared)
    if int(trial["bytes"]) in PLANNED:
        return {"seconds": promised, "promised_s": promised}
    outcome = run_exactly(trial, prepared)
    seconds, tiers = outcome.measured.communication_time_s, bytes_by_tier(prepared.problem.fabric, outcome.monitor)
    return {
        "seconds": seconds,
        "promised_s": promised,
        "valid": int(outcome.verdict == VALID),
        "busbw_bps": bus_bandwidth_bps(int(trial["bytes"]), seconds, WORKERS),
        "host_bytes": tiers[1],
        "core_bytes": core_bytes(tiers),
        "retransmissions": outcome.measured.retransmissions,
    }


LINES_OF = {line: {"line": line} for line in (*INA, *OTHERS)}


def fabrics_of(request: Request) -> tuple[str, ...]:
    return QUICK_FABRICS if request.quick else tuple(FABRICS)


def measured_at(request: Request) -> tuple[int, ...]:
    return QUICK_MEASURED if request.quick else MEASURED


def chart_of(fabric: str, request: Request) -> Chart:
    """The times on a fabric over the messages' sizes in bytes."""
    places = (*measured_at(request), *PLANNED)
    return Chart(TIME, {size: {"fabric": fabric, "bytes": size} for size in places}, LINES_OF, log="xy", styles=STYLES)


def show(found: Findings) -> Iterator[Part]:
    charts = {fabric: chart_of(fabric, found.request) for fabric in fabrics_of(found.request)}
    for fabric, chart in charts.items():
        yield times_table(found, fabric, chart)
        yield wins_table(found, fabric, chart)
        yield bytes_table(found, fabric, chart)
    yield Picture(panel(found, fabric, chart) for fabric, chart in charts.items())
    for line, off in differences(found).items():
        yield f"{line}: {median(off):.1%} from its plans by the median, {max(off):.1%} at most"


def panel(found: Findings, fabric: str, chart: Chart) -> Panel:
    """Measured times, predicted times for longer messages, and all predictions as dashes."""
    promised = {
        line: [1e6 * found.mean(chart.cell(line, place), "promised_s") for place in chart.places]
        for line in chart.lines
    }
    return replace(
        found.panel(chart), places=[float(place) / 1e3 for place in chart.places],
        xlabel="message (kB); above 1 MB planned only", title=f"{fabric}, {WORKERS} workers", planned=promised,
    )  # fmt: skip


def differences(found: Findings) -> dict[str, list[float]]:
    """By line, the relative deviation of each point's mean measured time from the planned one."""
    cells: list[Trial] = [
        {"fabric": fabric, "bytes": size} for fabric in fabrics_of(found.request) for size in measured_at(found.request)
    ]

    def off(cell: Trial) -> float:
        return abs(found.mean(cell, "seconds") / found.mean(cell, "promised_s") - 1)

    return {line: [off({**cell, **own}) for cell in cells] for line, own in LINES_OF.items()}


def verdict(found: Findings, _: list[Statement]) -> str:
    """VALID if times agree with the plans and all runs of end-host collectives are VALID.

    With few slots INA does not reach its plans' rates.
    """
    near = all(median(off) <= NEAR for off in differences(found).values())
    charts = [chart_of(fabric, found.request) for fabric in fabrics_of(found.request)]
    trials = [trial for chart in charts for cell in chart.cells for trial in found.trials(cell)]
    measured = [trial for trial in trials if int(trial["bytes"]) not in PLANNED and trial["line"] not in INA]
    return VALID if near and all(found.result(trial)["valid"] for trial in measured) else Verdict.DIFFERS


def size_name(message_bytes: Place) -> str:
    """A size as tables show it: "64 kB" for 65,536 bytes."""
    size = int(message_bytes)
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} kB"


def times_table(found: Findings, fabric: str, chart: Chart) -> Table:
    """A row for each line, a column for each message; stars mark values that are planned only."""
    headings = (f"{size_name(place)}{'*' * (place in PLANNED)}" for place in chart.places)
    table = Table("", *headings, title=f"time (µs), {fabric} (* planned)")
    for line, times in found.curves(chart).items():
        table.add_row(line, *(f"{time:,.1f}" for time in times))
    return table


def wins_table(found: Findings, fabric: str, chart: Chart) -> Table:
    """The quickest collective's time over INA's, with its interval: INA is faster where it is above 1."""
    table = Table("", *map(size_name, chart.places), title=f"quickest collective over INA, {fabric}")
    for line in INA:
        table.add_row(line, *(interval(ratio(found, chart, line, place)) for place in chart.places))
    curves = found.curves(chart)
    quickest = (min(COLLECTIVES, key=lambda name: curves[name][at]) for at in range(len(chart.places)))
    table.add_row("quickest", *quickest)
    return table


def ratio(found: Findings, chart: Chart, line: str, place: Place) -> Estimate:
    """The time of the quickest rack-aware collective over the time of an INA line; the interval is over seeds."""
    informed = [name for name in COLLECTIVES if name != "ring-random"]
    own, *others = (found.of(chart.cell(name, place), "seconds") for name in (line, *informed))
    return estimate([min(times) / mine for mine, *times in zip(own, *others, strict=True)])


def interval(value: Estimate) -> str:
    """A value with its interval, if it has one: "1.31 (1.27-1.35)"."""
    ends = "" if value.low is None else f" ({value.low:.2f}-{value.high:.2f})"
    return f"{value.value:.2f}{ends}"


def bytes_table(found: Findings, fabric: str, chart: Chart) -> Table:
    """Traffic of the largest measured message, by line: bus bandwidth, bytes on host links and on core links."""
    place = measured_at(found.request)[-1]
    title = f"{size_name(place)}, {fabric}"
    table = Table("", "busbw (Gbit/s)", "links of hosts (MB)", "core (MB)", "sent again", title=title)
    columns = (
        ("busbw_bps", 1e9, ".1f"),
        ("host_bytes", 1e6, ".2f"),
        ("core_bytes", 1e6, ".2f"),
        ("retransmissions", 1, ".0f"),
    )
    for line in chart.lines:
        cell = chart.cell(line, place)
        table.add_row(line, *(format(found.mean(cell, key) / unit, form) for key, unit, form in columns))
    return table


# -- A short message over the number of workers.
#
# Leaf-spines with 32 hosts under a leaf and 8 spines, without oversubscription; all hosts but one, the PS, and those
# beyond the number of workers take part, rack by rack. The longest rings are planned only: their 2 (n - 1) steps depend
# on each other.

MESSAGE_BYTES = 4096
SCALES, QUICK_SCALES = (16, 64, 256, 1024), (16, 64)
HOSTS_PER_LEAF, SPINES = 32, 8
LONGEST_RING = 256
"""Rings of more workers are planned only: with 1,024 workers a ring has 2,046 steps."""
AS_PLANNED = 0.05
"""A measured time agrees with its plan if it differs by at most this fraction of it."""
PLANNERS = {"aro": Style(RED, "o"), **COLLECTIVE_STYLES}


def problem_of_size(workers: int) -> Problem:
    """One job on the first hosts; the first host is the PS."""
    bare = leaf_spine(workers // HOSTS_PER_LEAF + 1, SPINES, HOSTS_PER_LEAF, capacity_bps=LINK_BPS, oversubscription=1)
    fabric = with_delay(bare, LINK_DELAY_S)
    server, *others = (host.name for host in fabric.hosts)
    return Problem(fabric, (Job(1, tuple(others[:workers]), (server,), MESSAGE_BYTES),), FRAGMENT)


def is_planned_only(planner: str, workers: int) -> bool:
    """Whether a point is planned only, without a measurement."""
    return planner == "ring" and workers > LONGEST_RING


def measure_scale(trial: Trial) -> Result:
    """The time of a planner's plan, planned and measured. Raises `RunError` for wrong sums."""
    problem, planner = problem_of_size(int(trial["workers"])), str(trial["planner"])
    prepared = plan_to_run(problem, planner, 0)
    job = prepared.prediction.jobs[1]
    promised_s = job.communication_time_s + (0.0 if prepared.plan.collectives else job.way_s)
    if is_planned_only(planner, int(trial["workers"])):
        return {"seconds": promised_s, "promised_s": promised_s, "valid": 1}
    outcome = run_exactly(trial, prepared)
    seconds = outcome.measured.communication_time_s
    return {"seconds": seconds, "promised_s": promised_s, "valid": int(outcome.verdict == VALID)}


def scale_chart(request: Request) -> Chart:
    places: dict[Place, Trial] = {
        workers: {"workers": workers} for workers in (QUICK_SCALES if request.quick else SCALES)
    }
    lines: dict[str, Trial] = {planner: {"planner": planner} for planner in PLANNERS}
    return Chart(TIME, places, lines, "workers", title=f"{MESSAGE_BYTES >> 10} kB", log="xy", styles=PLANNERS)


def show_scale(found: Findings) -> Iterator[Part]:
    chart = scale_chart(found.request)
    title = f"time (µs) of {MESSAGE_BYTES >> 10} kB over workers, and how much more than planned"
    table = Table("", *map(str, chart.places), title=title)
    for planner in PLANNERS:
        table.add_row(planner, *(time_of(found.result(chart.cell(planner, at)), planner, at) for at in chart.places))
    yield table
    yield Picture([found.panel(chart)])


def time_of(result: Result, planner: str, workers: Place) -> str:
    """The time of a planner for this number of workers, and its difference from the planned time."""
    seconds, promised_s = float(result["seconds"]), float(result["promised_s"])
    said = "planned" if is_planned_only(planner, int(workers)) else f"{seconds / promised_s - 1:+.1%}"
    return f"{1e6 * seconds:,.1f} ({said})"


def holds(result: Result) -> bool:
    """Whether a run is VALID and its time agrees with its plan."""
    return bool(result["valid"]) and abs(float(result["seconds"]) / float(result["promised_s"]) - 1) <= AS_PLANNED


def scale_verdict(found: Findings, _: list[Statement]) -> str:
    """VALID if all runs are VALID and their times agree with the plans."""
    return VALID if all(map(holds, found.results.values())) else Verdict.DIFFERS


FIGURES = {
    "crossover": SweptFigure(
        "collectives-crossover", "collectives-trials", measure,
        lambda request: (cell for fabric in fabrics_of(request) for cell in chart_of(fabric, request).cells),
        show, SEEDS, verdict=verdict, processes=PROCESSES,
    ),
    "scale": SweptFigure(
        "collectives-scale", "collectives-scale-trials", measure_scale, lambda request: scale_chart(request).cells,
        show_scale, draws=once, verdict=scale_verdict,
    ),
}  # fmt: skip
