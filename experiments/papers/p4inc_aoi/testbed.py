"""P4INC-AOI's Figures 6 and 7 by real packets: four racks, an optical circuit switch, concurrent training jobs.

Racks, models, jobs and policies are those of the simulated figures (section VII-B), but ResNet50 and VGG16 alternate,
and a job has few iterations. Each policy's schedule is executed slot by slot on an emulated network, and the measured
completion times are compared with the schedule's. Rates and sizes are scaled, time is not; with `--scale 1` a port has
the paper's 40 Gbit/s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from math import inf, isinf
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.emulated_figure import (
    EmulatedFigure,
    EmulatedRun,
    EmulatedRuns,
    wrong_unless_all_hold,
)
from inakit.experiments.papers.common.estimates import MISSING, exact
from inakit.experiments.papers.common.figure_engine import Part, Picture, Rows
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.p4inc_aoi.setting import (
    COMPARED,
    INC_JOBS,
    NIC_BPS,
    PORT_BPS,
    RECONFIGURATION_S,
    STEP_BPS,
)
from inakit.experiments.report.method_styles import categories
from inakit.experiments.run.circuit_schedule import CircuitFault, Course, CourseOutcome, run_course
from inakit.experiments.run.console import NARROW, names
from inakit.experiments.run.console import figures as numbers
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.printed_report import styled
from inakit.experiments.run.run_folder import RunFolder
from inakit.experiments.worlds.registry import is_virtual
from inakit.experiments.worlds.world import World
from inakit.planner.methods.p4inc_aoi.job_traces import UPDATE_BYTES_PER_S, arrivals
from inakit.planner.methods.p4inc_aoi.optical_network import scaled
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import Schedule, ScheduleFigures, figures, traffic_bps
from inakit.planner.registry import find_scheduler
from inakit.topo.fabric.fabric import QUEUE_PACKETS
from inakit.topo.files.quantities import in_words
from inakit.traffic.closed_loop import Progress


@dataclass(frozen=True)
class Model:
    """A model on the testbed: its size, and the computing time of a worker for a batch of 32 images."""

    gradient_bytes: int
    compute_s: float

    @property
    def update_s(self) -> float:
        """The time of an update at a PS."""
        return self.gradient_bytes / UPDATE_BYTES_PER_S


MODELS = {
    "ResNet50": Model(102_000_000, 0.16),
    "ResNet101": Model(178_000_000, 0.30),
    "ResNet152": Model(241_000_000, 0.45),
    "VGG11": Model(507_000_000, 0.123),
    "VGG16": Model(528_000_000, 0.25),
    "VGG19": Model(548_000_000, 0.316),
}
"""Computing takes 0.16 s for ResNet50 and 0.25 s for VGG16, as a 1080Ti does some 200 and 128 images/s; for the others
of each family it is in proportion to multiplications. The paper does not state it."""
TRAINED = ("ResNet50", "VGG16")
"""The models of Figures 6 and 7."""
ITERATIONS = 20
TOGETHER = 0.8
"""The share of jobs whose workers are all in one unit; the text leaves it open. Of the shares of
`inakit reproduce p4inc-aoi testbed-readings` it is nearest to the abstract's two numbers."""
TESTBED = DataCenter(
    tuple(
        Unit(name, 4, 8, 2 * 4 * NIC_BPS, INC_JOBS, gpus=gpus, nic_bps=NIC_BPS)
        for name, gpus in (("gpu1", 1), ("gpu2", 1), ("cpu1", 0), ("cpu2", 0))
    ),
    PORT_BPS, RECONFIGURATION_S, slot_s=1.0, step_bps=STEP_BPS, inc_across=False,
)  # fmt: skip
"""Racks of four servers with one GPU and one link each, or without GPUs; INC serves jobs inside one rack (VI-A)."""


def testbed_jobs(
    model: Model, count: int, seed: int, together: float = TOGETHER, iterations: int = ITERATIONS
) -> tuple[PlacedJob, ...]:
    """Random jobs, one per second: two or four workers in one GPU unit or half in each; the PS in a CPU unit."""
    draws = np.random.default_rng(seed)
    found = []
    for number, arrival in enumerate(arrivals(count, 1.0, draws), start=1):
        workers, first = int(draws.choice((2, 4))), int(draws.integers(2))
        units = ("gpu1", "gpu2")
        inside = bool(draws.random() < together)
        placed = {units[first]: workers} if inside else dict.fromkeys(units, workers // 2)
        found.append(
            PlacedJob(
                number, placed, f"cpu{draws.integers(1, 3)}", model.gradient_bytes, model.update_s, int(arrival),
                iterations, model.compute_s,
            )
        )  # fmt: skip
    return tuple(found)


@dataclass(frozen=True)
class Totals:
    """Totals over all jobs: completion times by model, and reconfigured connections."""

    jct_s: Mapping[str, float]
    connections: int

    @property
    def total_jct_s(self) -> float:
        """The sum of the completion times of all jobs."""
        return sum(self.jct_s.values())


@dataclass(frozen=True)
class ScenarioRow:
    """A scenario that was run. `lost` is the number of packets that reached a port during its reconfiguration.

    `behind_s` is the time for which slots waited for late jobs.
    """

    scenario: str
    planned: Totals
    measured: Totals
    lost: int
    retransmissions: int
    behind_s: float
    exact: bool
    verdict: str

    @property
    def ratio(self) -> float:
        return self.measured.total_jct_s / self.planned.total_jct_s

    def cells(self) -> dict[str, object]:
        """The row of the CSV, by column."""
        both = {"planned": self.planned, "measured": self.measured}
        jct = {f"{kind}_jct_{model}_s": s for kind, totals in both.items() for model, s in totals.jct_s.items()}
        connections = {f"{kind}_connections": totals.connections for kind, totals in both.items()}
        rest = {name: getattr(self, name) for name in ("lost", "retransmissions", "behind_s", "exact", "verdict")}
        return {"scenario": self.scenario} | jct | connections | rest


def rows_table(rows: Sequence[ScenarioRow]) -> Table:
    """Connections and JCT, planned and measured; packets lost and sent again; the time that slots waited."""
    connections, jct = ("connec-\nplanned", "tions\nmade"), ("total\nplanned", "JCT (s)\nmeasured", "\nratio")
    columns = [
        *names(""),
        *numbers(*connections, *jct, "lost,\ndark", "sent\nagain", "slots\nlate (s)", no_wrap=True),
        *names("\nverdict"),
    ]
    table = Table(*columns, title="P4INC-AOI's testbed: Figures 6 and 7", **NARROW)
    for row in rows:
        connected = (str(totals.connections) for totals in (row.planned, row.measured))
        jct_s = (f"{totals.total_jct_s:.2f}" for totals in (row.planned, row.measured))
        packets = (f"{count:,}" for count in (row.lost, row.retransmissions))
        table.add_row(
            row.scenario, *connected, *jct_s, f"{row.ratio:.3f}", *packets, f"{row.behind_s:.2f}", styled(row.verdict)
        )
    return table


def claims(rows: Sequence[ScenarioRow]) -> Iterator[Statement]:
    """What the runs have to confirm of their schedules; Figures 6 and 7 judge the paper's claims."""
    inexact = sum(not row.exact for row in rows)
    yield statements.is_below("runs with inexact sums, reconfigurations included", inexact, 0)
    furthest = max(abs(row.ratio - 1) for row in rows)
    yield statements.is_below("largest deviation of measured total JCT from planned", furthest, statements.ABOUT)


MADE = "reconfigured"


def panels(rows: Sequence[ScenarioRow]) -> list[Panel]:
    """Figure 6 and Figure 7 as bars, with a line across each bar at the schedule's value."""
    scenarios, models = [row.scenario for row in rows], list(rows[0].measured.jct_s)
    made = {MADE: [exact(row.measured.connections) for row in rows]}
    planned = {MADE: [float(row.planned.connections) for row in rows]}
    jct = {model: [exact(row.measured.jct_s[model]) for row in rows] for model in models}
    jct_planned = {model: [row.planned.jct_s[model] for row in rows] for model in models}
    styles = categories([MADE, *models])
    return [
        Panel(BARS, scenarios, made, "", "connections", "Fig. 6", planned=planned, styles=styles),
        Panel(BARS, scenarios, jct, "", "total JCT (s)", "Fig. 7", planned=jct_planned, styles=styles),
    ]


ByScenario = Mapping[str, Totals]


@dataclass(frozen=True)
class Reduction:
    """The average percentage by which `value` of each pair's second scenario is below that of its first."""

    what: str
    paper: float
    value: Callable[[Totals], float]
    pairs: tuple[tuple[str, str], ...]

    def ours(self, totals: ByScenario) -> float | None:
        """Our percentage; None where a scenario is missing or its value is 0."""
        if not all(name in totals for pair in self.pairs for name in pair):
            return None
        values = [(self.value(totals[one]), self.value(totals[other])) for one, other in self.pairs]
        return fmean(100 * (1 - after / before) for before, after in values) if all(b for b, _ in values) else None


INC = (("noINC-FCFS", "INC-FCFS"), ("noINC-TW", "INC-TW"))
TW = (("noINC-FCFS", "noINC-TW"), ("INC-FCFS", "INC-TW"))
REDUCTIONS = (
    Reduction("connections, by INC", 48.8, lambda totals: totals.connections, INC),
    Reduction("connections, by TW", 47.5, lambda totals: totals.connections, TW),
    Reduction("ResNet50's JCT, by INC with FCFS", 33.57, lambda totals: totals.jct_s["ResNet50"], INC[:1]),
    Reduction("VGG16's JCT, by INC with FCFS", 43.96, lambda totals: totals.jct_s["VGG16"], INC[:1]),
    Reduction("ResNet50's JCT, by INC with TW", 46.66, lambda totals: totals.jct_s["ResNet50"], INC[1:]),
    Reduction("VGG16's JCT, by INC with TW", 56.34, lambda totals: totals.jct_s["VGG16"], INC[1:]),
    Reduction("ResNet50's JCT, by TW without INC", 12.34, lambda totals: totals.jct_s["ResNet50"], TW[:1]),
    Reduction("VGG16's JCT, by TW without INC", 12.7, lambda totals: totals.jct_s["VGG16"], TW[:1]),
    Reduction("ResNet50's JCT, by TW with INC", 29.62, lambda totals: totals.jct_s["ResNet50"], TW[1:]),
    Reduction("VGG16's JCT, by TW with INC", 32.0, lambda totals: totals.jct_s["VGG16"], TW[1:]),
)
"""Section VII-B: averages over 10 to 60 jobs."""


def reductions_table(kinds: Mapping[str, ByScenario]) -> Table:
    """A table of the paper's reductions and ours, by kind."""
    headings = ("\npaper", *(each for kind in kinds for each in (kind.replace(", ", ",\n"), "\nratio")))
    table = Table(*names("of what"), *numbers(*headings, no_wrap=True), title="reductions (%)", **NARROW)
    for each in REDUCTIONS:
        found = (each.ours(totals) for totals in kinds.values())
        pairs = (("-", "-") if ours is None else (f"{ours:.1f}", f"{ours / each.paper:.2f}") for ours in found)
        table.add_row(each.what, f"{each.paper:.1f}", *chain.from_iterable(pairs))
    return table


def reductions_panel(kinds: Mapping[str, ByScenario]) -> Panel:
    """Bars of our reductions, by kind, with those that the text gives."""
    names = [each.what for each in REDUCTIONS]
    series = {
        kind: [MISSING if (ours := each.ours(totals)) is None else exact(ours) for each in REDUCTIONS]
        for kind, totals in kinds.items()
    }
    paper: Printed = {kind: {name: each.paper for name, each in zip(names, REDUCTIONS, strict=True)} for kind in kinds}
    return Panel(BARS, names, series, "", "reduction (%)", "values in the text", paper, styles=categories(kinds))


SCALE = 1 / 5000
"""The default scale of rates and sizes, with which a port's 40 Gbit/s become 8 Mbit/s.

At larger scales queues are proportionally longer, so that retransmissions after a reconfiguration wait equally long."""
JOBS, VIRTUAL_JOBS, QUICK_JOBS = 12, 60, 6
"""The jobs that are run: in real time, in virtual time (as many as the paper's), and in the quick form."""
SEED = 2
"""The draw of jobs that is run: of the first three draws, the one that takes the least time."""
DRAWS, QUICK_DRAWS = 20, 5
"""The number of draws that are only scheduled; they show the spread around the single draw that is run."""
QUICK_SCENARIOS = ("noINC-FCFS", "INC-TW")


@dataclass
class Testbed:
    """A draw of jobs on the testbed: by scenario, its schedule's figures and the values measured at the scale."""

    scheduling: Scheduling
    models: Mapping[int, str]
    scale: float = SCALE
    planned: dict[str, ScheduleFigures] = field(default_factory=dict)
    ran: dict[str, CourseOutcome] = field(default_factory=dict)

    @staticmethod
    def of(count: int, seed: int, scale: float = SCALE) -> Testbed:
        """A testbed with `count` jobs that a seed draws; the models alternate."""
        names = [TRAINED[number % len(TRAINED)] for number in range(count)]
        drawn = {name: testbed_jobs(MODELS[name], count, seed) for name in TRAINED}
        jobs = tuple(replace(drawn[name][place], iterations=5) for place, name in enumerate(names))
        models = {job.number: name for job, name in zip(jobs, names, strict=True)}
        return Testbed(Scheduling(TESTBED, jobs), models, scale)

    def plan(self, scenario: str) -> Schedule:
        """Return a scenario's checked schedule, and store its figures in `planned`."""
        schedule = find_scheduler(scenario).schedule(self.scheduling)
        self.planned[scenario] = figures(self.scheduling, schedule)
        return schedule

    def emulated_run(self, scenario: str, lasting_s: float | None = None) -> EmulatedRun:
        """The run that executes a scenario's schedule at the scale.

        With `lasting_s`, a circuit is dark for this time in the slot in which units exchange most.
        """
        smaller, schedule = scaled(self.scheduling, self.plan(scenario), self.scale)
        course = Course.of(smaller, schedule)
        setting = {"scale": self.scale, "scheduling": asdict(smaller), "schedule": asdict(schedule)}
        name, fault = scenario, None
        if lasting_s is not None:
            name = f"{scenario}-{lasting_s:g}"
            exchanged = [sum(traffic_bps(smaller, schedule, slot).values()) for slot in schedule.slots]
            if max(exchanged) > 0:  # else no job uses a circuit, and none can fail
                fault = CircuitFault(exchanged.index(max(exchanged)), FAULT_AFTER_S, lasting_s)
                setting["fault"] = asdict(fault) | {"lasting_s": FOR_GOOD if isinf(lasting_s) else lasting_s}
        queue = round(QUEUE_PACKETS * max(1.0, self.scale / SCALE))
        return EmulatedRun(
            name, course.problem, course.plan, setting, queue_packets=queue, emulate=partial(self.run, course, fault)
        )

    def run(
        self, course: Course, fault: CircuitFault | None, asked: EmulatedRun, world: World, folder: RunFolder,
        progress: Progress,
    ) -> Outcome:  # fmt: skip
        """Execute the schedule of one run, and store the measured values in `ran`."""
        own = folder.path / asked.name
        self.ran[asked.name] = run_course(course, world, own, progress, asked.queue_packets, fault)
        return self.ran[asked.name].outcome

    def row(self, scenario: str) -> ScenarioRow:
        """The row of a scenario that was run."""
        ran = self.ran[scenario]
        return ScenarioRow(
            scenario=scenario,
            planned=self.planned_totals(scenario),
            measured=self.totals(ran.jct_s, ran.connections),
            lost=ran.lost,
            retransmissions=ran.outcome.measured.retransmissions,
            behind_s=ran.behind_s,
            exact=ran.outcome.measured.exact is True,
            verdict=ran.outcome.verdict,
        )

    def jobs(self, scenario: str) -> list[tuple[str, int, str, float, float]]:
        """A row for each job: scenario, number, model, JCT as planned and as measured."""
        planned, measured = self.planned[scenario].jct_s, self.ran[scenario].jct_s
        return [(scenario, job, model, planned[job], measured[job]) for job, model in self.models.items()]

    def planned_totals(self, scenario: str) -> Totals:
        return self.totals(self.planned[scenario].jct_s, self.planned[scenario].connections)

    def totals(self, jct_s: Mapping[int, float], connections: int) -> Totals:
        sums = {name: sum(s for job, s in jct_s.items() if self.models[job] == name) for name in TRAINED}
        return Totals(sums, connections)


def planned_totals(draws: int, count: int) -> dict[str, Totals]:
    """By scenario, the totals of the schedules of `draws` draws of `count` jobs."""
    testbeds = [Testbed.of(count, seed) for seed in range(draws)]
    for testbed in testbeds:
        for scenario in COMPARED:
            testbed.plan(scenario)
    every = {scenario: [testbed.planned_totals(scenario) for testbed in testbeds] for scenario in COMPARED}
    return {
        scenario: Totals(
            {model: sum(part.jct_s[model] for part in parts) for model in TRAINED},
            sum(part.connections for part in parts),
        )
        for scenario, parts in every.items()
    }


def run(console: Console, request: Request) -> str:
    """Run all scenarios, and show Figures 6 and 7, the reductions beside the paper's, and whether the claims hold."""
    jobs = QUICK_JOBS if request.quick else VIRTUAL_JOBS if is_virtual(request.switch) else JOBS
    testbed = Testbed.of(jobs, SEED, SCALE if request.scale is None else request.scale)
    scenarios = QUICK_SCENARIOS if request.quick else COMPARED
    figure = EmulatedFigure(
        "p4inc-aoi-testbed", lambda _: [testbed.emulated_run(name) for name in scenarios], partial(show, testbed),
        wrong_unless_all_hold, COMPARES_SCHEDULERS,
    )  # fmt: skip
    return figure(console, request)


def show(testbed: Testbed, request: Request, done: EmulatedRuns) -> Iterator[Part]:
    names = [run.name for run in done.runs]
    rows = [testbed.row(name) for name in names]
    cells = [row.cells() for row in rows]
    yield Rows("scenarios.csv", list(cells[0]), [list(each.values()) for each in cells])
    columns = ("scenario", "job", "model", "planned_jct_s", "measured_jct_s")
    yield Rows("jobs.csv", columns, [job for name in names for job in testbed.jobs(name)])
    draws = QUICK_DRAWS if request.quick else DRAWS
    kinds = {
        f"planned, {draws} draws": planned_totals(draws, len(testbed.models)),
        "measured, one draw": {row.scenario: row.measured for row in rows},
    }
    yield Picture(panels(rows), "testbed")
    yield Picture([reductions_panel(kinds)], "reductions")
    yield rows_table(rows)
    yield f"ports of {in_words(TESTBED.port_bps * testbed.scale, 'bit/s')}"
    yield reductions_table(kinds)
    yield list(claims(rows))


# -- A circuit that fails in a slot (ours).

FAULT_AFTER_S, FAULTS_S, QUICK_FAULTS_S = 0.1, (0.0, 0.1, 0.5, 2.0, inf), (0.0, 0.5, inf)
FOR_GOOD = "for good"
FAILING = ("noINC-TW", "INC-TW")


def run_faults(console: Console, request: Request) -> str:
    """Run TW's schedules while a circuit is dark for some time: the total JCT, and whether sums stay exact.

    After one that is dark for good, the next slots are planned anew.
    """
    testbed = Testbed.of(QUICK_JOBS if request.quick else JOBS, SEED, SCALE if request.scale is None else request.scale)
    lasting = QUICK_FAULTS_S if request.quick else FAULTS_S
    figure = EmulatedFigure(
        "p4inc-aoi-fault", lambda _: [testbed.emulated_run(name, each) for name in FAILING for each in lasting],
        partial(show_faults, testbed, lasting),
        wrong_unless_all_hold, COMPARES_SCHEDULERS,
    )  # fmt: skip
    return figure(console, request)


def show_faults(testbed: Testbed, lasting: Sequence[float], _: Request, done: EmulatedRuns) -> Iterator[Part]:
    """By scheme and time for which the circuit is dark: total JCT, waits of slots, packets lost and sent again."""
    cells = []
    for name in FAILING:
        for each in lasting:
            ran = testbed.ran[f"{name}-{each:g}"]
            measured = ran.outcome.measured
            cells.append(
                (name, each, sum(ran.jct_s.values()), ran.behind_s, ran.lost, measured.retransmissions, measured.exact)
            )
    columns = ("scheme", "dark (s)", "total JCT (s)", "slots late (s)", "lost", "sent again", "exact")
    yield Rows("faults.csv", columns, cells)
    unused = {run.name for run in done.runs if "fault" not in run.setting}
    table = Table(*names(columns[0]), *numbers(*columns[1:6]), title="a circuit fails in the busiest slot", **NARROW)
    for scheme, each, jct, behind_s, lost, again, _exact in cells:
        dark = "no circuit" if f"{scheme}-{each:g}" in unused else FOR_GOOD if isinf(each) else f"{each:g}"
        table.add_row(scheme, dark, f"{jct:.2f}", f"{behind_s:.2f}", f"{lost:,}", f"{again:,}")
    yield table
    yield Picture([faults_panel(lasting, {name: [row[2] for row in cells if row[0] == name] for name in FAILING})])
    yield [statements.is_below("runs with inexact sums, failed circuits included", sum(not row[6] for row in cells), 0)]


def faults_panel(lasting: Sequence[float], jct_s: Mapping[str, Sequence[float]]) -> Panel:
    """Bars of the total JCT by the time for which the circuit is dark."""
    series = {name: [exact(value) for value in own] for name, own in jct_s.items()}
    return Panel(
        BARS,
        [FOR_GOOD if isinf(each) else f"{each:g} s" for each in lasting],
        series,
        "circuit dark",
        "total JCT (s)",
        "a circuit fails",
    )


FIGURES = {"fig7-emulated": run, "fault": run_faults}
