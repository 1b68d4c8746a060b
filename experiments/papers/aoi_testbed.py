"""P4INC-AOI's Figures 6 and 7 with real packets: four racks, an optical circuit switch, concurrent training jobs.

Section VII-B: two GPU and two CPU racks of four servers; jobs of ResNet50 and VGG16 come by a Poisson process, one in a
slot of a second, with 2 or 4 workers and a PS. Each scheduler's slots are carried out on an emulated network, and the
measured completion times held against those that follow from the schedule. Rates and sizes are scaled, time is not.

The paper does not say: how many optical ports a rack has (four here, as many as servers), where workers are (on any
GPU servers, which scatters most jobs over both racks), how many iterations a job has, and how long an iteration
computes and a PS updates. A rack's switch carries all of its servers' links up and down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from rich.console import Console

from experiments.outcome import WRONG, Outcome
from experiments.papers import Request
from experiments.papers.aoi_testbed_report import Row, claims, draw, reductions_table, rows_table
from experiments.papers.trials import Trial, run_trials
from experiments.record import RunFolder
from experiments.report import VALID
from experiments.scheduled import Course, Ran, emulate
from planner.aoi.schedule import Figures, figures
from planner.aoi.schemes import find_scheme
from planner.aoi.system import DataCenter, PlacedJob, Scheduling, Unit
from switch.target import Target
from traffic.reliable import Progress

SCALE = 1 / 5000
"""Of rates and sizes: a port's 40 Gbit/s are 8 Mbit/s."""
PORT_BPS = 40e9 * SCALE
STEP_BPS = 10e9 * SCALE
GPU_RACKS, CPU_RACKS = ("gpu1", "gpu2"), ("cpu1", "cpu2")
SERVERS = 4
OPTICAL_PORTS = 4
INC_JOBS = 4
SLOT_S = 1.0
RECONFIGURATION_S = 0.05
ITERATIONS = 5
UPDATED_BYTES_PER_S = 4e9
JOBS, QUICK_JOBS = 12, 6
SEED = 3

SCENARIOS = ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW")
QUICK_SCENARIOS = ("noINC-FCFS", "INC-TW")


@dataclass(frozen=True)
class Model:
    """A model's size, and how long a worker computes in an iteration with a batch of 32."""

    size_bytes: float
    compute_s: float


MODELS = {"ResNet50": Model(102e6, 0.15), "VGG16": Model(528e6, 0.2)}


def center() -> DataCenter:
    """The four racks."""
    switch_bps = 2 * SERVERS * PORT_BPS
    units = (Unit(name, SERVERS, OPTICAL_PORTS, switch_bps, INC_JOBS) for name in (*GPU_RACKS, *CPU_RACKS))
    return DataCenter(tuple(units), PORT_BPS, RECONFIGURATION_S, SLOT_S, STEP_BPS)


def jobs(count: int, seed: int) -> Iterator[tuple[str, PlacedJob]]:
    """Jobs in the order of their arrival, each with its model."""
    draws = Random(seed)
    servers = [rack for rack in GPU_RACKS for _ in range(SERVERS)]
    arrival_s = 0.0
    for number in range(1, count + 1):
        arrival_s += draws.expovariate(1 / SLOT_S)
        workers = Counter(draws.sample(servers, draws.choice((2, 4))))
        name = draws.choice(list(MODELS))
        model = MODELS[name]
        yield (
            name,
            PlacedJob(
                number,
                dict(sorted(workers.items())),
                draws.choice(CPU_RACKS),
                round(model.size_bytes * SCALE),
                update_s=model.size_bytes / UPDATED_BYTES_PER_S,
                arrival=int(arrival_s / SLOT_S),
                iterations=ITERATIONS,
                compute_s=model.compute_s,
            ),
        )


@dataclass
class Testbed:
    """The runs of one figure: what each scenario's schedule says, and what became of it."""

    models: Mapping[int, str]
    scheduling: Scheduling
    simulated: dict[str, Figures] = field(default_factory=dict)
    ran: dict[str, Ran] = field(default_factory=dict)

    @staticmethod
    def of(count: int, seed: int) -> Testbed:
        drawn = list(jobs(count, seed))
        models = {job.number: name for name, job in drawn}
        return Testbed(models, Scheduling(center(), tuple(job for _, job in drawn)))

    def trial(self, scenario: str) -> Trial:
        schedule = find_scheme(scenario).schedule(self.scheduling)
        self.simulated[scenario] = figures(self.scheduling, schedule)
        course = Course.of(self.scheduling, schedule)
        setting = {"scheduling": asdict(self.scheduling), "schedule": asdict(schedule)}
        return Trial(scenario, course.problem, course.plan, setting, emulate=partial(self.run, course))

    def run(self, course: Course, trial: Trial, target: Target, folder: RunFolder, progress: Progress) -> Outcome:
        self.ran[trial.name] = emulate(course, target, own_folder(folder, trial), progress)
        return self.ran[trial.name].outcome

    def row(self, scenario: str) -> Row:
        simulated, ran = self.simulated[scenario], self.ran[scenario]
        return Row(
            scenario=scenario,
            simulated_jct_s=self.by_model(simulated.jct_s),
            measured_jct_s=self.by_model(ran.jct_s),
            simulated_connections=simulated.connections,
            connections=ran.connections,
            lost=ran.lost,
            retransmissions=ran.outcome.measured.retransmissions,
            exact=ran.outcome.measured.exact is True,
            verdict=ran.outcome.verdict,
        )

    def by_model(self, jct_s: Mapping[int, float]) -> dict[str, float]:
        """The total over the jobs of each model."""
        return {name: sum(s for job, s in jct_s.items() if self.models[job] == name) for name in MODELS}


def own_folder(folder: RunFolder, trial: Trial) -> Path:
    path = folder.path / trial.name
    path.mkdir()
    return path


def run(console: Console, request: Request) -> str:
    """Run all scenarios, print Figures 6 and 7 beside the paper's sentences, and say whether the claims hold."""
    testbed = Testbed.of(QUICK_JOBS if request.quick else JOBS, SEED)
    scenarios: Sequence[str] = QUICK_SCENARIOS if request.quick else SCENARIOS
    done = run_trials("p4inc-aoi-testbed", [testbed.trial(name) for name in scenarios], request, console)
    rows = [testbed.row(name) for name in scenarios]
    cells = [row.cells() for row in rows]
    done.folder.write_rows("testbed.csv", list(cells[0]), [list(each.values()) for each in cells])
    draw(rows, done.folder.path / "testbed")
    console.print(rows_table(rows))
    console.print(reductions_table(rows))
    found = list(claims(rows))
    for claim in found:
        console.print(claim.line(), highlight=False)
    done.tell(console)
    return WRONG if done.verdict == VALID and not all(claim.holds for claim in found) else done.verdict
