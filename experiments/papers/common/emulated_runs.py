"""The runs behind a figure: each plan on a network of its own, watched, judged and kept in one run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import Console

from experiments.calibrate.fit import fit, packets
from experiments.emulate.defaults import rate_words, tell_choice
from experiments.emulate.emulate import overall
from experiments.papers.common.figure import Request
from experiments.run.dilation import as_described, slowed_options, slowed_problem
from experiments.run.outcome import Outcome, planned_figures
from experiments.run.progress import bar
from experiments.run.record import RunFolder, RunRecord, check_results
from experiments.run.report import VERDICT_STYLES, shortened
from experiments.run.run import Run, always, run_plan
from experiments.worlds.emulated import EmulatedWorld
from planner.core.evaluate import evaluate
from planner.core.files import save_plan
from planner.core.plan import Plan
from planner.core.problem import Problem
from switch.targets import Target, choose_target
from topo.files.fabric_records import document_of
from topo.live.network import check_machine
from traffic.measure.fidelity import Excuses
from traffic.runs.closed_loop import Interference, Progress, ReliableOptions


@dataclass(frozen=True)
class EmulatedRun:
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
    queue_packets: int | None = None
    emulate: Callable[[EmulatedRun, Target, RunFolder, Progress], Outcome] | None = None


@dataclass(frozen=True)
class EmulatedRuns:
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


def run_emulated(figure: str, runs: Sequence[EmulatedRun], request: Request, console: Console) -> EmulatedRuns:
    """Run them one after another; `run.json` says before what is to come. Raises `InakitError`.

    Where this machine does not carry the runs' rates all are slowed down alike. What comes of them is told as if
    they were not.
    """
    target = choose_target(request.switch)
    check_machine()
    check_results(request.results)
    tell_choice(console, request.switch, target)
    scale = scale_of(runs, target, console)
    folder = RunFolder(request.results, figure)
    record = new_record(runs, target, scale)
    folder.write_record(record)
    outcomes = []
    with folder.completing(record), bar(console, f"{figure} on {target.name}") as progress:
        for number, run in enumerate(runs):
            emulate = run.emulate or measure
            outcome = emulate(slowed(run, scale), target, folder, part_of(progress, number, len(runs)))
            outcome = replace(outcome, measured=as_described(outcome.measured, scale))
            outcomes.append(outcome)
            record.planners[run.name] |= outcome.as_json()
            folder.write_record(record)
        record.finish(*overall(record.planners))
    return EmulatedRuns(folder, tuple(outcomes), record.verdict, tuple(record.reasons))


def scale_of(runs: Sequence[EmulatedRun], target: Target, console: Console) -> float:
    """What to slow all runs down by so that this machine carries them; says so unless it is 1.

    EmulatedRuns that are run in a way of their own keep their rates.
    """
    if any(run.emulate for run in runs):
        return 1.0
    heaviest = max(runs, key=lambda run: packets(run.problem, run.plan))
    found = fit(heaviest.problem, {heaviest.name: heaviest.plan}, target, console, panel=False)
    if found.scale < 1:
        line = (
            f"slowed down to {found.scale:.3g} of their rates: links of {rate_words(found.link_bps)} at most are what "
        )
        console.print(f"{line}{target.name} carries here", highlight=False, soft_wrap=True)
    return found.scale


def slowed(run: EmulatedRun, scale: float) -> EmulatedRun:
    """The run at a scale of its rates."""
    if scale == 1:
        return run
    return replace(
        run,
        problem=slowed_problem(run.problem, scale),
        plan=run.plan.with_rates_times(scale),
        options=slowed_options(run.options, scale),
    )


def part_of(progress: Progress, number: int, count: int) -> Progress:
    """The progress of one of `count` runs, as part of that of all."""
    return lambda share: progress((number + share) / count)


def measure(run: EmulatedRun, target: Target, folder: RunFolder, progress: Progress) -> Outcome:
    """One run. Raises `RunError` when a switch dies or the traffic stalls."""
    own = folder.path / run.name
    own.mkdir()
    save_plan(run.plan, own / "plan.json")
    asked = Run(
        run.problem,
        run.plan,
        options=run.options or ReliableOptions(),
        folder=own,
        queue_packets=run.queue_packets,
        led_by=None if run.interference is None else always(run.interference),
        excuses=run.excuses,
    )
    return run_plan(asked, EmulatedWorld(target.name), stage=lambda _: nullcontext(progress))


def new_record(runs: Sequence[EmulatedRun], target: Target, scale: float) -> RunRecord:
    """The record before anything runs. All runs are on the first one's fabric, and slowed down to `scale`."""
    fabric = runs[0].problem.fabric
    return RunRecord(
        fabric={
            "name": fabric.name,
            "switches": len(fabric.switches),
            "hosts": len(fabric.hosts),
            "scale": scale,
            "description": document_of(fabric),
        },
        switch=target.name,
        mode="reliable",
        seed=0,
        configuration={run.name: {**run.setting, "jobs": [asdict(job) for job in run.problem.jobs]} for run in runs},
        planners={run.name: {"planned": planned_figures(evaluate(run.problem, run.plan))} for run in runs},
    )
