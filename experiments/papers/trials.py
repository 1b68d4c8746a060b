"""The runs behind a figure: each plan on a network of its own, watched, judged and kept in one run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from rich.console import Console

from experiments.emulate import bar, completing, overall
from experiments.outcome import Outcome, planned_figures, watch
from experiments.papers import Request
from experiments.record import RunFolder, RunRecord
from experiments.report import VERDICT_STYLES, shortened
from planner.entries import entries
from planner.evaluate import evaluate
from planner.files import save_plan
from planner.plan import Plan
from planner.problem import Problem
from switch.target import Target, choose_target
from topo.document import document_of
from topo.network import DEFAULT_QUEUE_PACKETS, Network, check_machine
from traffic.faults import Interference
from traffic.fidelity import Excuses
from traffic.port import host_ports
from traffic.reliable import Progress, ReliableOptions, run_reliable


@dataclass(frozen=True)
class Trial:
    """One run. `excuses` is what `interference` accounts for; `setting` is where it stands in the figure.

    `queue_packets`: how long the queue before every link is.
    `emulate` runs it where it takes more than a network of its fabric with the plan's entries.
    """

    name: str
    problem: Problem
    plan: Plan
    setting: Mapping[str, Any] = field(default_factory=dict)
    options: ReliableOptions | None = None
    interference: Interference | None = None
    excuses: Excuses | None = None
    queue_packets: int = DEFAULT_QUEUE_PACKETS
    emulate: Callable[[Trial, Target, RunFolder, Progress], Outcome] | None = None


@dataclass(frozen=True)
class Trials:
    """What came of all runs, in their order, and the folder that keeps it."""

    folder: RunFolder
    outcomes: tuple[Outcome, ...]
    verdict: str
    reasons: tuple[str, ...]

    def tell(self, console: Console) -> None:
        """Print the verdict of all runs together, why, and where everything is."""
        console.print(f"verdict: [{VERDICT_STYLES.get(self.verdict, 'bold yellow')}]{self.verdict}[/]", highlight=False)
        for reason in shortened(self.reasons):
            console.print(f"  - {reason}", highlight=False, markup=False, soft_wrap=True)
        console.print(f"everything of these runs: {self.folder.path}", highlight=False)


def run_trials(figure: str, trials: Sequence[Trial], request: Request, console: Console) -> Trials:
    """Run them one after another; `run.json` says before what is to come. Raises `InakitError`."""
    target = choose_target(request.switch)
    check_machine()
    folder = RunFolder(request.results, figure)
    record = new_record(trials, target)
    folder.write_record(record)
    outcomes = []
    with completing(folder, record), bar(console, f"{figure} on {target.name}") as progress:
        for number, trial in enumerate(trials):
            emulate = trial.emulate or measure
            outcome = emulate(trial, target, folder, part_of(progress, number, len(trials)))
            outcomes.append(outcome)
            record.planners[trial.name] |= outcome.as_json()
            folder.write_record(record)
        record.finish(*overall(record.planners))
    return Trials(folder, tuple(outcomes), record.verdict, tuple(record.reasons))


def part_of(progress: Progress, number: int, count: int) -> Progress:
    """The progress of one of `count` runs, as part of that of all."""
    return lambda share: progress((number + share) / count)


def measure(trial: Trial, target: Target, folder: RunFolder, progress: Progress) -> Outcome:
    """One run. Raises `RunError` when a switch dies or the traffic stalls."""
    installed = entries(trial.problem, trial.plan)
    own = folder.path / trial.name
    own.mkdir()
    save_plan(trial.plan, own / "plan.json")
    fabric, queue = trial.problem.fabric, trial.queue_packets
    with Network(fabric, target.node_class(), run_dir=own / "switches", queue_packets=queue) as network:
        for name, switch in network.switches.items():
            switch.install(installed.of(name))
        hosts = host_ports(network.hosts.values())
        send = partial(
            run_reliable, hosts, trial.problem, trial.plan,
            options=trial.options, progress=progress, interference=trial.interference,
        )  # fmt: skip
        return watch(network, hosts, trial.problem, trial.plan, send, trial.excuses)


def new_record(trials: Sequence[Trial], target: Target) -> RunRecord:
    """The record before anything runs. All trials are on the first one's fabric."""
    fabric = trials[0].problem.fabric
    return RunRecord(
        fabric={
            "name": fabric.name,
            "switches": len(fabric.switches),
            "hosts": len(fabric.hosts),
            "scale": 1.0,
            "description": document_of(fabric),
        },
        switch=target.name,
        mode="reliable",
        seed=0,
        configuration={
            trial.name: {**trial.setting, "jobs": [asdict(job) for job in trial.problem.jobs]} for trial in trials
        },
        planners={trial.name: {"planned": planned_figures(evaluate(trial.problem, trial.plan))} for trial in trials},
    )
