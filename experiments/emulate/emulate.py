"""One emulation run: plan, build the network, install the entries, send gradients, measure, judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from inakit.experiments.calibrate.capacity import announce
from inakit.experiments.emulate.defaults import NOTHING_FREE, Free, choose_rates, faults_at, problem_at, rate_to_try
from inakit.experiments.inspect.capture import Counts, Place, warn_of_losses
from inakit.experiments.report.write import report_beside
from inakit.experiments.run.console import Report, bar, working
from inakit.experiments.run.faults_file import FaultPlan, check_mode
from inakit.experiments.run.forks import Forks, available_bytes, processors
from inakit.experiments.run.interference import Interference
from inakit.experiments.run.long_transfers import check_sampled, run_sampled
from inakit.experiments.run.observation import AUTO, Sampling, check_observation
from inakit.experiments.run.outcome import Outcome, planned_figures, write_planned_links
from inakit.experiments.run.pace import Pace, TooSlowError, planned_progress
from inakit.experiments.run.planning import chip_cost, make_plan, print_headroom, write_plan
from inakit.experiments.run.printed_report import print_report
from inakit.experiments.run.record import Configuration, PlanRecord, Results, RunRecord, begin_record
from inakit.experiments.run.run import MODES, Run, check_features, run_plan
from inakit.experiments.run.run_folder import RunFolder, check_results
from inakit.experiments.worlds.registry import find_world, print_choice, program_of
from inakit.experiments.worlds.world import World, in_real_time
from inakit.planner.core.check import check as check_plan
from inakit.planner.core.method import AFTERWARDS, Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.prepared import Prepared, prepare
from inakit.planner.registry import by_name, find_method, find_own, is_known
from inakit.planner.replan import Replanner
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.circuits import Interconnect, patch_panel
from inakit.traffic.endpoints.gradient import Gradients
from inakit.traffic.measure.verdict import OVERLOADED, worst_of


@dataclass(frozen=True)
class Emulation:
    """The emulation that the user asks for. Each planner is measured on a new network: one after another in real time,
    several at once in virtual time.

    - `scale`: the factor that has been applied to the fabric's described rates
    - `captures`: the switch ports whose packets are kept as pcap files
    - `faults`: the faults of every planner's run
    - `policies`: the slot policies under which every plan is measured; by default a plan keeps its method's policy
    - `replan`: every plan is measured unchanged, and with a controller that plans anew between iterations
    - `patch_panel`: all optical links go through one circuit switch
    - `free`: the values that the kit chooses to fit this machine
    - `keep_going`: a run continues even if it is clearly too slow
    - `sampling`: the observation of links and fragments, and its interval
    - `headroom`: the time at which planners make room for results
    - `program`: the data-plane program of the switches
    - `sample`: in virtual time, runs that are steady are sent by pieces, and the rest is computed
    """

    problem: Problem
    planners: tuple[str, ...]
    switch: str = "auto"
    mode: str = "reliable"
    seed: int = 0
    results: Path = Path("results")
    scale: float = 1.0
    captures: tuple[Place, ...] = ()
    faults: FaultPlan | None = None
    policies: tuple[str, ...] = ()
    replan: bool = False
    patch_panel: bool = False
    free: Free = NOTHING_FREE
    keep_going: bool = False
    sampling: Sampling = AUTO
    headroom: str = AFTERWARDS
    program: str = "ina"
    sample: bool = False

    @property
    def interconnect(self) -> Interconnect | None:
        """The patch panel. Raises `FabricError` for a fabric without optical links."""
        return patch_panel(self.problem.fabric) if self.patch_panel else None

    @property
    def interferences(self) -> tuple[Interference, ...]:
        """The faults as interferences of each run."""
        return () if self.faults is None else self.faults.interferences

    def at(self, scale: float) -> Emulation:
        """The emulation with every rate times `scale` and, if gradients are free, with matching gradient sizes."""
        return replace(
            self,
            problem=problem_at(self.problem, scale, gradients=self.free.gradients),
            faults=faults_at(self.faults, scale),
            scale=self.scale * scale if self.free.described else self.scale,
        )

    def pace(self, prepared: Prepared, progress: Report) -> Pace | None:
        """The pace that ends a run if it is clearly too slow; None with `keep_going`.

        Progress is compared with the plan only if an overload is the only possible cause of a slow run: in mode
        `reliable`, without faults, and without shared slots.
        """
        if self.keep_going:
            return None
        only_overload_slows = self.mode == "reliable" and self.faults is None and not prepared.plan.jobs_sharing_slots
        compared = planned_progress(self.problem, prepared.prediction) if only_overload_slows else ()
        return Pace(compared, progress)


def run(emulation: Emulation, console: Console, plans: Mapping[str, Prepared] | None = None) -> RunRecord:
    """Run, print the report, and return the record with its verdict. Raises `InakitError`.

    The request is checked before a file or an interface is made. Without `plans`, the planners make them, and free
    rates are chosen; given `plans` run at the emulation's rates.
    """
    world = check(emulation, planned=plans is not None)
    if plans is None:
        emulation, plans = planned_and_settled(emulation, world, console)
    plans = {name: prepared.fitted(world.program) for name, prepared in plans.items()}
    folder = RunFolder(emulation.results, emulation.problem.fabric.name)
    record = new_record(emulation, plans, world)
    with completing(emulation, plans, record, folder, console) as runs:
        at_once = runs_at_once(emulation.problem, world, len(runs))
        shown = console if at_once == 1 else Console(quiet=True)
        if at_once > 1:
            import inakit.experiments.run.series_picture  # noqa: F401, PLC0415, once for all processes
        calls = {name: partial(carry_out, emulation, name, run, world, folder, shown) for name, run in runs.items()}
        with Forks(calls, at_once) as forks:
            for name in runs:
                with keeping(emulation, name, record, folder):
                    with nullcontext() if at_once == 1 else working(console, f"{name} and others: running"):
                        results, captured = forks.result(name)
                    record.planners[name].take(results)
                    warn_of_losses(console, name, captured)
    return record


def carry_out(
    emulation: Emulation, name: str, run: Run, world: World, folder: RunFolder, console: Console
) -> tuple[Results, Mapping[str, Counts]]:
    """Measure a plan, and write and draw what was observed. Return its results, and the counts of captures."""
    observed = replace(run, observation=emulation.sampling.of(world, run.prepared))
    outcome = measure(emulation, name, observed, world, console)
    outcome.write(folder, name)
    draw(name, outcome, folder, emulation.problem.fabric.name)
    return outcome.results, outcome.captured


RUN_BYTES, SWITCH_BYTES = 200_000_000, 2_300_000
"""The memory of a process in virtual time without its network, and of a compiled switch."""


def runs_at_once(problem: Problem, world: World, runs: int) -> int:
    """The number of runs beside each other: in virtual time as many as there are processors and memory for."""
    if world.real_time or (most := min(runs, processors())) == 1:
        return 1
    gradients = sum(len(job.workers) * job.gradient_bytes for job in problem.jobs)
    return max(1, min(most, available_bytes() // (RUN_BYTES + len(problem.fabric.switches) * SWITCH_BYTES + gradients)))


@contextmanager
def completing(
    emulation: Emulation, plans: Mapping[str, Prepared], record: RunRecord, folder: RunFolder, console: Console
) -> Iterator[dict[str, Run]]:
    """Write the plans, yield the run of each plan, and complete the record with the verdict and the report."""
    runs = runs_of(emulation, plans, folder)
    with folder.completing(record):
        yield runs
        record.finish(*overall(record.planners))
    print_report(console, record)
    console.print(f"all files of this run: {folder.path}", highlight=False)
    report_beside(folder.path, console)


@contextmanager
def keeping(emulation: Emulation, name: str, record: RunRecord, folder: RunFolder) -> Iterator[None]:
    """Write the record after the run of a plan, even if the run was ended early."""
    try:
        yield
    except TooSlowError as slow:
        record.planners[name].take(ended_early(slow, emulation))
    folder.write_record(record)


def runs_of(emulation: Emulation, plans: Mapping[str, Prepared], folder: RunFolder) -> dict[str, Run]:
    """Return the run of each plan, by the plan's name. Write the plan and its table entries to the run's folder."""
    runs = {}
    for name, prepared in plans.items():
        runs[name] = Run(
            prepared,
            interferences=emulation.interferences,
            captures=emulation.captures,
            folder=folder.path / name,
            interconnect=emulation.interconnect,
            replans=replans(emulation, name),
        )
        write_plan(folder.path / name, prepared)
        write_planned_links(folder, name, prepared)
    return runs


def planned_and_settled(
    emulation: Emulation, world: World, console: Console
) -> tuple[Emulation, Mapping[str, Prepared]]:
    """Print the world that "auto" selected, make plans, and return the emulation and its plans as they run."""
    print_choice(console, emulation.switch, world.name)
    return settled(emulation, make_plans(emulation, console), world, console)


def settled(
    emulation: Emulation, plans: Mapping[str, Prepared], world: World, console: Console
) -> tuple[Emulation, Mapping[str, Prepared]]:
    """Return the emulation and its plans at the given rates or, if rates are free, at rates that this machine carries.

    Print the chosen rates or, for given rates in mode `reliable`, whether this machine can carry them. A world in
    virtual time carries any rates.
    """
    if not in_real_time(world):
        return emulation, plans
    if not emulation.free.rates:
        if emulation.mode == "reliable":
            announce(console, emulation.problem, plans, world.name, emulation.scale)
        return emulation, plans
    chosen = choose_rates(emulation.problem, plans, emulation.switch, world, console, panel=emulation.patch_panel)
    scaled = emulation.at(chosen)
    return scaled, {name: prepared.at(scaled.problem, chosen) for name, prepared in plans.items()}


def ended_early(slow: TooSlowError, emulation: Emulation) -> Results:
    """The results of a plan whose run was ended early: no figures, the cause, and a rate to try."""
    try_next = rate_to_try(emulation.problem, emulation.scale, slow.share, emulation.free)
    return Results(verdict=OVERLOADED, reasons=[str(slow), *slow.causes, try_next])


def check(emulation: Emulation, *, planned: bool = False) -> World:
    """Return the world to run in. Raises `InakitError` for a request that is wrong or that this machine cannot run.

    If the emulation is already `planned`, its planners can be unknown methods.
    """
    check_results(emulation.results)
    if emulation.mode not in MODES:
        raise unknown_name("mode", emulation.mode, MODES)
    if not emulation.planners:
        raise InputError("no planner: name at least one, such as --planners aro")
    for planner in () if planned else by_name(emulation.planners).values():
        find_method(planner)
    world = find_world(emulation.switch, program_of(emulation.program))
    fabric = emulation.problem.fabric
    check_features(world, fabric, emulation.mode, emulation.captures, emulation.interferences, emulation.interconnect)
    check_observation(world, asked=emulation.sampling.asked)
    if emulation.sample:
        check_sampled(world)
    if emulation.faults is not None:
        check_mode(emulation.mode)
    if emulation.replan:
        check_replanning(emulation)
    for policy in emulation.policies:
        if policy_of(policy).needs_root and emulation.mode != "reliable":
            raise InputError(
                f"slot policy '{policy}' in mode '{emulation.mode}': no PS would receive a sum; choose reliable"
            )
    return world


def check_replanning(emulation: Emulation) -> None:
    """Raise `InputError` unless traffic off the routes is the only fault, and runs have several iterations."""
    faults, jobs = emulation.faults or FaultPlan(), emulation.problem.jobs
    if not faults.background:
        raise InputError("--replan needs background traffic: give --faults a file with background traffic")
    if faults.links or faults.events or faults.stragglers or faults.hostile:
        raise InputError("--replan knows no other faults than background traffic: remove them from the faults file")
    if emulation.patch_panel:
        raise InputError("--replan reads counters of links, which are others behind a panel: remove --patch-panel")
    if any(job.iterations < 2 for job in jobs):
        raise InputError("--replan changes plans between iterations: give jobs 2 iterations or more")
    hosts = {host for job in jobs for host in (*job.workers, *job.servers)}
    free = [host.name for host in emulation.problem.fabric.hosts if host.name not in hosts]
    for flow in faults.background:
        if flow.destination in hosts:
            way = f"choose one of {', '.join(free)}" if free else "give --workers a smaller number, so that one is free"
            raise InputError(
                f"background traffic to '{flow.destination}' follows the job's routes: send it to a host without a "
                f"part in the job: {way}"
            )


def make_plans(emulation: Emulation, console: Console) -> dict[str, Prepared]:
    """Make the plans of all planners under all slot policies, by name.

    In a closed loop, results flow while gradients are sent, so rates are lowered to leave room for results.
    """
    problem, plans = emulation.problem, dict[str, Prepared]()
    for name, planner in by_name(emulation.planners).items():
        with working(console, f"{name}: planning"):
            made = make_plan(problem, planner, emulation.seed, emulation.headroom)
        for variant, plan in variants(emulation, name, made):
            for full_name, under in under_policies(problem, variant, plan, emulation.policies):
                plans[full_name] = prepare(problem, under, emulation.mode)
                if emulation.replan:
                    Replanner(plans[full_name], Options(seed=emulation.seed))  # refuses plans that it cannot replace
                print_headroom(console, full_name, plans[full_name])
    return plans


REPLANNED = "-replanned"
"""The end of the name of a plan that runs with a controller, before the name of a slot policy."""


def variants(emulation: Emulation, name: str, plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plan and, with `replan`, the plan with which a controller begins; each with its name."""
    yield name, plan
    if emulation.replan:
        yield name + REPLANNED, plan


def replans(emulation: Emulation, name: str) -> Options | None:
    """The options with which the controller of a plan's run plans anew; None if it has no controller."""
    with_controller = emulation.replan and name.partition("+")[0].endswith(REPLANNED)
    return Options(seed=emulation.seed) if with_controller else None


def under_policies(problem: Problem, name: str, plan: Plan, policies: Sequence[str]) -> Iterator[tuple[str, Plan]]:
    """Yield the plan under each slot policy, or unchanged without policies. Names distinguish several policies."""
    if not policies:
        yield name, plan
    for policy in dict.fromkeys(policies):
        under = with_policy(problem, plan, policy)
        check_plan(problem, under)
        yield f"{name}+{policy}" if len(policies) > 1 else name, under


def new_record(emulation: Emulation, plans: Mapping[str, Prepared], world: World) -> RunRecord:
    """The record before any run, with the planned figures of every plan."""
    return begin_record(
        emulation.problem,
        scale=emulation.scale,
        world=world.name,
        mode=emulation.mode,
        seed=emulation.seed,
        configuration=Configuration(
            planners=list(plans),
            policies=list(emulation.policies),
            headroom=emulation.headroom,
            program=emulation.program,
            jobs=list(emulation.problem.jobs),
            faults=None if emulation.faults is None else dict(emulation.faults.document),
            code=own_code(emulation.planners),
        ),
        planners={name: planned_entry(emulation, name, prepared) for name, prepared in plans.items()},
    )


def own_code(planners: Iterable[str]) -> dict[str, dict[str, str]]:
    """The file or the package, and the SHA-256, of the user-defined planners, by their names."""
    found = {name: find_own(planner) for name, planner in by_name(planners).items()}
    return {name: own.record for name, own in found.items() if own is not None}


def planned_entry(emulation: Emulation, name: str, prepared: Prepared) -> PlanRecord:
    """A planner's entry before its run: the planned figures and, if switches have chips, the chips' cost."""
    entry = PlanRecord(planned=planned_figures(prepared.prediction))
    planner = by_name(emulation.planners).get(name)
    if planner is not None and is_known(planner):
        cost = chip_cost(prepared, planner, seed=emulation.seed, headroom=emulation.headroom)
        if cost is not None:
            entry.chips = cost
    return entry


def measure(
    emulation: Emulation, name: str, run: Run, world: World, console: Console, gradients: Gradients | None = None
) -> Outcome:
    """Run one plan of an emulation, and show its progress. Raises the errors of `run_plan`."""
    asked, stage = replace(run, gradients=gradients), lambda part: bar(console, f"{name}: {part}")
    if emulation.sample:
        return run_sampled(asked, world, stage=stage)
    return run_plan(
        asked,
        world,
        stage=stage,
        paced=lambda progress: emulation.pace(run.prepared, progress) if world.real_time else None,
    )


def draw(name: str, outcome: Outcome, folder: RunFolder, fabric: str) -> None:
    """Draw the series of a run if it was observed."""
    if outcome.observed is not None:
        from inakit.experiments.run.series_picture import draw_series  # noqa: PLC0415, matplotlib takes a second

        started_s = [iteration.started_s for iteration in outcome.measured.iterations]
        draw_series(f"{name} on {fabric}", outcome.observed, folder.path / name / "series.png", started_s)


def overall(planners: Mapping[str, Results]) -> tuple[str, list[str]]:
    """The verdict of the whole emulation, which is the planners' worst verdict, and the reasons of every planner."""
    verdicts = [entry.verdict for entry in planners.values() if entry.verdict is not None]
    reasons = [f"{name}: {reason}" for name, entry in planners.items() for reason in entry.reasons]
    return worst_of(verdicts), reasons
