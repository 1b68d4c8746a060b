"""The runs behind GOAT's training figures: an exchange of a model's gradients on its testbed, at a thousandth.

The paper's sizes and rates are a thousandth here, so that seconds are its seconds. What it does not state is derived
from what it does, as `NOTES.md` in this folder explains: a PS takes in what follows from Geryon's 704 MB in 1.95 s, a
worker's link is as fast, and the worker fills it to the share that section IV-C draws.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from inakit.experiments.papers.common.emulated_runs import EmulatedRun, name_in_world, run_emulated
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.goat.testbed import Paces, patient, plan_of
from inakit.experiments.run.outcome import Outcome, measured_figures
from inakit.planner.core.models import BYTES_PER_PARAMETER, find_model
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import RunError, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import goat_testbed
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.fidelity import Excuses, planned_rates
from inakit.traffic.measure.verdict import VALID
from inakit.traffic.wire.frames import FRAGMENT

SCALE = 1000
"""All sizes and rates are smaller than the paper's by this factor."""
MIB = 2**20
FRAGMENT_BYTES = BYTES_PER_PARAMETER * FRAGMENT.values
SLOTS = 20 * MIB // SCALE // FRAGMENT_BYTES
"""The slots of a switch, which has 20 MB (section IV-B)."""
INTAKE_BPS = 8 * 704 * MIB / 1.95 / SCALE * FRAGMENT.wire_bytes / FRAGMENT_BYTES
"""The rate at which the PS takes in frames: Geryon's traffic over its time (Figures 8a and 9a). Workers' links have the
same rate."""
BETWEEN_SWITCHES = 10
"""Links between switches are faster by this factor: in the paper, hosts are far from filling links of 100 Gbit/s."""
MEAN_SHARE, SPREAD = 0.5, 0.2
"""The mean and spread of a worker's share of its link's rate: the reading of section IV-C with which Figures 10 and 11
agree."""
RATE_ERROR = 0.05
MOST_WORKERS = 16
ATTEMPTS = 2
DRAW = 0
"""The seed of the workers' rates, the same for every scheme and model."""
PACED = ("goat", "geryon")
"""The schemes whose workers wait for nothing and send nothing twice: their rates have to be the planned ones."""


@dataclass(frozen=True)
class EpochRun:
    """A run: an epoch of a model, by a number of workers, under a scheme."""

    model: str
    workers: int
    scheme: str

    @property
    def name(self) -> str:
        """The run's name in its folder."""
        return f"{self.scheme}-{self.model}-{self.workers}"

    def emulated_run(self) -> EmulatedRun:
        """The run on the testbed, with workers that send at drawn rates."""
        problem = testbed(self.model, self.workers)
        plan = plan_of(self.scheme, problem)
        drawn = Stragglers(SPREAD, MEAN_SHARE, DRAW).shares(problem)
        own = own_shares(plan, drawn)
        excuses = Excuses(hosts=frozenset(own), rates=True)
        return EmulatedRun(
            self.name,
            problem,
            plan,
            asdict(self),
            patient(fragments(problem), INTAKE_BPS, min(drawn.values())),
            Paces(own, fragments(problem)),
            excuses,
            queue_packets=self.workers * fragments(problem),
        )


def testbed(model: str, workers: int) -> Problem:
    """The testbed with a job of so many workers, half under each of two switches; its other hosts are idle."""
    fabric = with_aggregators(goat_testbed(MOST_WORKERS // 2, INTAKE_BPS), slots=SLOTS)
    fabric = with_wide_links(fabric, BETWEEN_SWITCHES * INTAKE_BPS)
    half = MOST_WORKERS // 2
    names = [f"w{1 + number % 2 * half + number // 2}" for number in range(workers)]
    parameters = -(-find_model(model).parameters // SCALE)
    job = Job(1, tuple(names), ("ps",), BYTES_PER_PARAMETER * parameters, model=model)
    return Problem(fabric, (job,), FRAGMENT)


def with_wide_links(fabric: Fabric, rate_bps: float) -> Fabric:
    """The fabric with links of this rate between switches."""
    links = (
        link
        if {link.a, link.b} & fabric.host_names
        else replace(link, capacity_ab_bps=rate_bps, capacity_ba_bps=rate_bps)
        for link in fabric.links
    )
    return replace(fabric, links=tuple(links))


def fragments(problem: Problem) -> int:
    """The fragments of a worker's gradient."""
    return problem.fragment.count(problem.jobs[0].gradient_bytes)


def own_shares(plan: Plan, drawn: Mapping[str, float]) -> dict[str, float]:
    """The share of its planned rate at which each worker sends: its `drawn` share of its link, but at most 1."""
    return {worker: min(1.0, drawn[worker] * INTAKE_BPS / rate) for (_, worker), rate in planned_rates(plan).items()}


@dataclass(frozen=True)
class Epoch:
    """The figures of a run in the paper's sizes, whose MB are MiB. `rate_error` is that of the worker furthest off."""

    communication_time_s: float
    ps_ingress_mb: float
    rate_error: float
    retransmissions: float
    verdict: str

    def trusted(self, scheme: str) -> bool:
        """Whether the run is valid and, where rates have to be the planned ones, none is off by more than 5 %."""
        return self.verdict == VALID and (scheme not in PACED or self.rate_error <= RATE_ERROR)


def epoch(run: EmulatedRun, outcome: Outcome) -> Epoch:
    """The figures of a run."""
    figures, (iteration,) = measured_figures(outcome.measured, outcome.monitor), outcome.measured.iterations
    assert isinstance(run.interference, Paces)
    own = run.interference.shares
    paces = {worker: rate * own[worker] for (_, worker), rate in planned_rates(run.plan).items()}
    return Epoch(
        communication_time_s=figures["communication_time_s"],
        ps_ingress_mb=figures["ps_ingress_bytes"] / FRAGMENT.wire_bytes * FRAGMENT_BYTES * SCALE / MIB,
        rate_error=max(abs(rate / paces[worker] - 1) for worker, rate in iteration.sending_rate_bps.items()),
        retransmissions=figures["retransmissions"],
        verdict=outcome.verdict,
    )


def measured(settings: Sequence[EpochRun], request: Request, console: Console) -> dict[EpochRun, Epoch]:
    """The epochs of all runs; those that an earlier figure has measured are read from its file.

    A run that is not to be trusted is repeated once. Raises `RunError` if it still is not.
    """
    file = request.results / f"{name_in_world('goat-testbed', request.switch)}.jsonl"
    for _ in range(ATTEMPTS):
        missing = [setting for setting in settings if setting not in kept(file)]
        if missing:
            settings_of = {setting.name: setting for setting in missing}

            def note(run: EmulatedRun, outcome: Outcome, named: dict[str, EpochRun] = settings_of) -> None:
                keep(file, [(named[run.name], epoch(run, outcome))])

            runs = [setting.emulated_run() for setting in missing]
            run_emulated("goat-testbed", runs, request, console, note).tell(console)
    found = kept(file)
    failed = [setting.name for setting in settings if setting not in found]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(settings)} runs are no result, {failed[0]} for one: let nothing else run on this "
            "machine, and try again; the others are kept"
        )
    return found


def kept(file: Path) -> dict[EpochRun, Epoch]:
    """The epochs in the file, by run; a line that an interruption cut off is left out."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            entry = json.loads(line)
            found[EpochRun(**entry["trial"])] = Epoch(**entry["result"])
    return found


def keep(file: Path, runs: Iterable[tuple[EpochRun, Epoch]]) -> None:
    """Add the runs that can be trusted to the file."""
    with writing(file), file.open("a") as lines:
        for setting, found in runs:
            if found.trusted(setting.scheme):
                lines.write(json.dumps({"trial": asdict(setting), "result": asdict(found)}) + "\n")
