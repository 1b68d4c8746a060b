"""`inakit reproduce collectives crossover`: for which messages in-network aggregation beats end-host collectives.

Time of an all-reduce over the size of the message, on fabrics of several oversubscriptions, by real packets in virtual
time; of messages that are too long for that, what plans promise. INA appears with several numbers of aggregator slots,
because slots bound its rate: no more than a window of fragments is summed in a round trip.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import median

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import LINES, Panel, save
from inakit.experiments.papers.common.estimates import Estimate, estimate
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.report.method_styles import INK, MINT, MUSTARD, NAVY, PLUM, RED, SKY, Style
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.topo.errors import RunError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_delay
from inakit.traffic.measure.bandwidth import bus_bandwidth_bps, bytes_by_tier, core_bytes
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

WORKERS = 16
LINK_BPS, LINK_DELAY_S = 100e9, 1e-6
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
SEEDS, QUICK_SEEDS = 5, 2
"""Draws of hosts."""
PROCESSES = 2
NEAR = 0.1
"""Measured times are near those of plans if they differ by no more than this share, by the median of a line."""

INA = {"INA, 512 slots": 512, "INA, 128 slots": 128, "INA, 32 slots": 32}
"""`aro` with so many aggregator slots in each switch, of which half are a window."""
COLLECTIVES = {
    name: name for name in ("ring", "halving-doubling", "double-tree", "hierarchical", "ps-sharded", "ring-random")
}
OTHERS = COLLECTIVES | {"PS": "lbmm"}
STYLES = {
    "INA, 512 slots": Style(RED, "o"),
    "INA, 128 slots": Style(RED, "h", "--"),
    "INA, 32 slots": Style(RED, "x", ":"),
    "ring": Style(NAVY, "s"),
    "halving-doubling": Style(SKY, "D"),
    "double-tree": Style(MINT, "^"),
    "hierarchical": Style(MUSTARD, "v"),
    "ps-sharded": Style(PLUM, "P"),
    "ring-random": Style(NAVY, "d", ":"),
    "PS": Style(INK, "X"),
}


def lines() -> tuple[str, ...]:
    """The lines of the figure."""
    return (*INA, *OTHERS)


def trial_of(line: str, fabric: str, message_bytes: int, seed: int) -> Trial:
    """The trial of a line at a place for a draw of hosts."""
    return {"line": line, "fabric": fabric, "bytes": message_bytes, "seed": seed}


def fabric_of(trial: Trial) -> Fabric:
    fabric = with_delay(FABRICS[str(trial["fabric"])](), LINK_DELAY_S)
    return with_aggregators(fabric, slots=INA.get(str(trial["line"]), 512))


def problem_of(trial: Trial) -> Problem:
    """One job, whose workers and PS the seed draws."""
    fabric = fabric_of(trial)
    server, *workers = random.Random(int(trial["seed"])).sample([host.name for host in fabric.hosts], WORKERS + 1)
    ordered = tuple(host.name for host in fabric.hosts if host.name in workers)
    return Problem(fabric, (Job(1, ordered, (server,), int(trial["bytes"])),), FRAGMENT)


def planned(trial: Trial) -> tuple[Problem, Plan]:
    problem = problem_of(trial)
    planner = OTHERS.get(str(trial["line"]), "aro")
    return problem, plan_to_run(problem, planner, int(trial["seed"])).plan


def promised_s(trial: Trial) -> float:
    """The time that the plan of a trial promises: that of its fragments, and of the last one's way and result.

    With few slots a plan's rate is not reached; what slots leave of it is a window of fragments in a round trip.
    """
    problem, plan = planned(trial)
    job = evaluate(problem, plan).jobs[1]
    if plan.collectives:
        return job.communication_time_s
    windows = [each.tree.window for each in plan.trees if each.tree.window]
    fragments = FRAGMENT.count(int(trial["bytes"]))
    held_s = max((fragments / window * job.way_s for window in windows), default=0.0)
    return max(job.communication_time_s + job.way_s, held_s)


def measure(trial: Trial) -> Result:
    """Measure a trial, or take what its plan promises if it is only planned. Raises `RunError` for wrong sums."""
    promised = promised_s(trial)
    if int(trial["bytes"]) in PLANNED:
        return {"seconds": promised, "promised_s": promised}
    problem, plan = planned(trial)
    outcome = run_plan(Run(Prepared(problem, plan)), find_world("virtual"))
    if not outcome.measured.exact:
        raise RunError(f"{trial}: sums are not exact: {'; '.join(outcome.measured.wrong)}")
    seconds, tiers = outcome.measured.communication_time_s, bytes_by_tier(problem.fabric, outcome.monitor)
    return {
        "seconds": seconds,
        "promised_s": promised,
        "valid": int(outcome.verdict == VALID),
        "busbw_bps": bus_bandwidth_bps(int(trial["bytes"]), seconds, WORKERS),
        "host_bytes": tiers[1],
        "core_bytes": core_bytes(tiers),
        "retransmissions": outcome.measured.retransmissions,
    }


@dataclass(frozen=True)
class Crossover:
    """The figure's measurements: `places` are messages in bytes, in ascending order."""

    measured: Measured
    places: Sequence[int]
    seeds: int

    def trials(self, line: str, fabric: str, message_bytes: int) -> list[Trial]:
        """The trials of a point."""
        return [trial_of(line, fabric, message_bytes, seed) for seed in range(self.seeds)]

    def point(self, line: str, fabric: str, message_bytes: int) -> Estimate:
        """The time of a point in microseconds, with its interval over the seeds."""
        found = self.measured.estimate("seconds", self.trials(line, fabric, message_bytes))
        return found.map(lambda seconds: seconds * 1e6)

    def ratio(self, line: str, fabric: str, message_bytes: int) -> Estimate:
        """The time of the quickest collective that knows the racks, over that of an INA line; interval over seeds."""
        own = self.measured.of("seconds", self.trials(line, fabric, message_bytes))
        informed = [name for name in COLLECTIVES if name != "ring-random"]
        others = [self.measured.of("seconds", self.trials(name, fabric, message_bytes)) for name in informed]
        return estimate([min(times) / mine for mine, *times in zip(own, *others, strict=True)])

    def quickest(self, fabric: str, message_bytes: int) -> str:
        """The collective that is quickest by the mean."""
        return min(COLLECTIVES, key=lambda name: self.point(name, fabric, message_bytes).value)

    def panel(self, fabric: str) -> Panel:
        """The panel of a fabric: what was measured, for longer messages what plans promise, and promises as dashes."""
        series = {line: [self.point(line, fabric, place) for place in self.places] for line in lines()}
        promised = {
            line: [1e6 * self.measured.mean("promised_s", self.trials(line, fabric, place)) for place in self.places]
            for line in lines()
        }
        return Panel(
            LINES, [place / 1e3 for place in self.places], series, "message (kB); above 1 MB planned only",
            "time of an all-reduce (µs)", f"{fabric}, {WORKERS} workers",
            planned=promised, log="xy", styles=STYLES,
        )  # fmt: skip


def trials_of(fabrics: Sequence[str], places: Sequence[int], seeds: int) -> list[Trial]:
    """All trials; those of the first draw come first, so that an unfinished figure has whole draws."""
    return [
        trial_of(line, fabric, place, seed)
        for seed, place, fabric, line in product(range(seeds), places, fabrics, lines())
    ]


def run(console: Console, request: Request) -> str:
    """Measure, print and draw the figure; VALID if all runs are, and times are near those of plans."""
    measured_at = QUICK_MEASURED if request.quick else MEASURED
    fabrics = QUICK_FABRICS if request.quick else tuple(FABRICS)
    seeds, places = QUICK_SEEDS if request.quick else SEEDS, (*measured_at, *PLANNED)
    trials = trials_of(fabrics, places, seeds)
    found = Crossover(sweep(trials, measure, request.results / "collectives-trials", console, PROCESSES), places, seeds)
    for fabric in fabrics:
        console.print(times_table(found, fabric))
        console.print(wins_table(found, fabric))
        console.print(bytes_table(found, fabric, measured_at[-1]))
    save(request.results / "collectives-crossover", *(found.panel(fabric) for fabric in fabrics))
    offs = differences(found, fabrics, measured_at)
    for line, off in offs.items():
        said = f"{line}: {median(off):.1%} from its plans by the median, {max(off):.1%} at most"
        console.print(said, highlight=False)
    near = all(median(off) <= NEAR for off in offs.values())
    return VALID if near and not invalid(found, trials) else Verdict.DIFFERS


def invalid(found: Crossover, trials: Sequence[Trial]) -> list[Trial]:
    """The measured trials of end hosts whose runs are not VALID. With few slots INA does not reach its plans' rates."""
    measured = [trial for trial in trials if int(trial["bytes"]) not in PLANNED and trial["line"] not in INA]
    return [trial for trial in measured if not found.measured.result(trial)["valid"]]


def differences(found: Crossover, fabrics: Sequence[str], places: Sequence[int]) -> dict[str, list[float]]:
    """By line, how far the measured time of each of its points is from the promised one, as a share of it."""
    return {
        line: [difference(found, found.trials(line, fabric, place)) for fabric, place in product(fabrics, places)]
        for line in lines()
    }


def difference(found: Crossover, trials: Sequence[Trial]) -> float:
    """How far the mean measured time of trials is from the promised one, as a share of it."""
    return abs(found.measured.mean("seconds", trials) / found.measured.mean("promised_s", trials) - 1)


def size_name(message_bytes: int) -> str:
    """A size as tables show it: "64 kB" for 65,536 bytes."""
    return f"{message_bytes >> 20} MB" if message_bytes >= 1 << 20 else f"{message_bytes >> 10} kB"


def times_table(found: Crossover, fabric: str) -> Table:
    """A row for each line, a column for each message; stars mark what is planned only."""
    headings = (f"{size_name(place)}{'*' * (place in PLANNED)}" for place in found.places)
    table = Table("", *headings, title=f"time (µs), {fabric} (* planned)")
    for line in lines():
        table.add_row(line, *(f"{found.point(line, fabric, place).value:,.1f}" for place in found.places))
    return table


def wins_table(found: Crossover, fabric: str) -> Table:
    """How many times the quickest collective's time is that of INA, with its interval: above 1 INA wins."""
    table = Table("", *map(size_name, found.places), title=f"quickest collective over INA, {fabric}")
    for line in INA:
        table.add_row(line, *(interval(found.ratio(line, fabric, place)) for place in found.places))
    table.add_row("quickest", *(found.quickest(fabric, place) for place in found.places))
    return table


def interval(value: Estimate) -> str:
    """A value with its interval, if it has one: "1.31 (1.27-1.35)"."""
    ends = "" if value.low is None else f" ({value.low:.2f}-{value.high:.2f})"
    return f"{value.value:.2f}{ends}"


def bytes_table(found: Crossover, fabric: str, place: int) -> Table:
    """What each line sends for one message: bus bandwidth, bytes on links of hosts and of the core."""
    title = f"{size_name(place)}, {fabric}"
    table = Table("", "busbw (Gbit/s)", "links of hosts (MB)", "core (MB)", "sent again", title=title)
    for line in lines():
        trials = found.trials(line, fabric, place)
        means = {key: found.measured.mean(key, trials) for key in ("busbw_bps", "host_bytes", "core_bytes")}
        again = found.measured.mean("retransmissions", trials)
        table.add_row(
            line, f"{means['busbw_bps'] / 1e9:.1f}", f"{means['host_bytes'] / 1e6:.2f}",
            f"{means['core_bytes'] / 1e6:.2f}", f"{again:.0f}",
        )  # fmt: skip
    return table
