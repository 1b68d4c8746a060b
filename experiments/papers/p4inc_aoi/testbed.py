"""P4INC-AOI's Figures 6 and 7 by real packets: four racks, an optical circuit switch, concurrent training jobs.

Racks, models, jobs and policies are those of the simulated figures (`testbed_setting`, section VII-B), but ResNet50 and
VGG16 alternate, and a job has few iterations. Each policy's schedule is carried out, slot by slot, on an emulated
network, and the measured completion times are compared with the schedule's. Rates and sizes are scaled, time is not;
with `--scale 1` a port has the paper's 40 Gbit/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from rich.console import Console

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.emulated_runs import EmulatedRun, run_emulated
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.own_planners import COMPARES_SCHEDULERS, leave_out
from inakit.experiments.papers.p4inc_aoi.testbed_reductions import reductions_panel, reductions_table
from inakit.experiments.papers.p4inc_aoi.testbed_report import ScenarioRow, Totals, claims, panels, rows_table
from inakit.experiments.papers.p4inc_aoi.testbed_setting import MODELS, POLICIES, TESTBED, testbed_jobs
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.record import RunFolder
from inakit.experiments.run.scheduled import Course, CourseOutcome, run_course
from inakit.experiments.worlds.world import World
from inakit.planner.core.files import save_plan
from inakit.planner.methods.p4inc_aoi.network import scaled
from inakit.planner.methods.p4inc_aoi.online.slot_by_slot import Simulation
from inakit.planner.methods.p4inc_aoi.problem.check_schedule import check
from inakit.planner.methods.p4inc_aoi.problem.schedule import Figures, Schedule, figures
from inakit.planner.methods.p4inc_aoi.problem.system import Scheduling
from inakit.topo.fabric.fabric import QUEUE_PACKETS
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.runs.closed_loop import Progress

SCALE = 1 / 5000
"""The scale of rates and sizes unless a request has one of its own: a port's 40 Gbit/s are 8 Mbit/s.

At larger scales queues are longer in proportion, so that what is sent again after the dark waits in them as long."""
ITERATIONS = 5
JOBS, QUICK_JOBS = 12, 6
SEED = 2
"""The one of the first three draws of jobs that takes the least time."""
DRAWS, QUICK_DRAWS = 20, 5
"""Draws of jobs that are only scheduled: they show what is chance in the one draw that is run."""
QUICK_SCENARIOS = ("noINC-FCFS", "INC-TW")


@dataclass
class Testbed:
    """A draw of jobs on the testbed: by scenario, the figures of its schedule and what was measured at the scale."""

    scheduling: Scheduling
    models: Mapping[int, str]
    scale: float = SCALE
    planned: dict[str, Figures] = field(default_factory=dict)
    ran: dict[str, CourseOutcome] = field(default_factory=dict)

    @staticmethod
    def of(count: int, seed: int, scale: float = SCALE) -> Testbed:
        """A testbed with so many jobs, which a seed draws; the models alternate."""
        names = [list(MODELS)[number % len(MODELS)] for number in range(count)]
        drawn = {name: testbed_jobs(model, count, seed) for name, model in MODELS.items()}
        jobs = tuple(replace(drawn[name][place], iterations=ITERATIONS) for place, name in enumerate(names))
        models = {job.number: name for job, name in zip(jobs, names, strict=True)}
        return Testbed(Scheduling(TESTBED, jobs), models, scale)

    def plan(self, scenario: str) -> Schedule:
        """The schedule of a scenario, checked, whose figures are kept in `planned`."""
        schedule = Simulation(self.scheduling, POLICIES[scenario]).run(scenario)
        check(self.scheduling, schedule)
        self.planned[scenario] = figures(self.scheduling, schedule)
        return schedule

    def emulated_run(self, scenario: str) -> EmulatedRun:
        """The run that carries out a scenario's schedule at the scale."""
        smaller, schedule = scaled(self.scheduling, self.plan(scenario), self.scale)
        course = Course.of(smaller, schedule)
        setting = {"scale": self.scale, "scheduling": asdict(smaller), "schedule": asdict(schedule)}
        queue = round(QUEUE_PACKETS * max(1.0, self.scale / SCALE))
        return EmulatedRun(
            scenario, course.problem, course.plan, setting, queue_packets=queue, emulate=partial(self.run, course)
        )

    def run(self, course: Course, asked: EmulatedRun, world: World, folder: RunFolder, progress: Progress) -> Outcome:
        """Carry out the schedule of one run, and keep what was measured in `ran`."""
        own = folder.path / asked.name
        own.mkdir()
        save_plan(course.plan, own / "plan.json")
        self.ran[asked.name] = run_course(course, world, own, progress, asked.queue_packets)
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
            exact=ran.outcome.measured.exact is True,
            verdict=ran.outcome.verdict,
        )

    def jobs(self, scenario: str) -> list[tuple[str, int, str, float, float]]:
        """A row for each job: scenario, number, model, JCT as planned and as measured."""
        planned, measured = self.planned[scenario].jct_s, self.ran[scenario].jct_s
        return [(scenario, job, model, planned[job], measured[job]) for job, model in self.models.items()]

    def planned_totals(self, scenario: str) -> Totals:
        """The totals of a scenario's schedule."""
        return self.totals(self.planned[scenario].jct_s, self.planned[scenario].connections)

    def totals(self, jct_s: Mapping[int, float], connections: int) -> Totals:
        """The sums of JCTs by model, and the connections."""
        sums = {name: sum(s for job, s in jct_s.items() if self.models[job] == name) for name in MODELS}
        return Totals(sums, connections)


def planned_totals(draws: int, count: int) -> dict[str, Totals]:
    """For each scenario, the totals of the schedules of `draws` draws of `count` jobs."""
    testbeds = [Testbed.of(count, seed) for seed in range(draws)]
    for testbed in testbeds:
        for scenario in POLICIES:
            testbed.plan(scenario)
    return {scenario: Totals.sum(testbed.planned_totals(scenario) for testbed in testbeds) for scenario in POLICIES}


def run(console: Console, request: Request) -> str:
    """Run all scenarios, and print Figures 6 and 7, the reductions beside the paper's, and whether the claims hold."""
    count, draws = (QUICK_JOBS, QUICK_DRAWS) if request.quick else (JOBS, DRAWS)
    testbed = Testbed.of(count, SEED, SCALE if request.scale is None else request.scale)
    scenarios = QUICK_SCENARIOS if request.quick else tuple(POLICIES)
    done = run_emulated("p4inc-aoi-testbed", [testbed.emulated_run(name) for name in scenarios], request, console)
    rows = [testbed.row(name) for name in scenarios]
    cells = [row.cells() for row in rows]
    done.folder.write_rows("scenarios.csv", list(cells[0]), [list(each.values()) for each in cells])
    each_job = [job for name in scenarios for job in testbed.jobs(name)]
    done.folder.write_rows("jobs.csv", ["scenario", "job", "model", "planned_jct_s", "measured_jct_s"], each_job)
    many = planned_totals(draws, count)
    save(done.folder.path / "testbed", *panels(rows))
    save(done.folder.path / "reductions", reductions_panel(rows, many, draws))
    console.print(rows_table(rows))
    console.print(f"ports of {rate_words(TESTBED.port_bps * testbed.scale)}", highlight=False)
    console.print(reductions_table(rows, many, draws))
    found = list(claims(rows))
    console.print(statements.table_of(found))
    leave_out(console, COMPARES_SCHEDULERS)
    done.tell(console)
    return Verdict.WRONG if done.verdict == VALID and not all(claim.holds for claim in found) else done.verdict
