"""The single entry point for running a plan: `run_plan` takes a `Run` and a world, and returns an `Outcome`.

    run = Run(prepare(problem, plan), interferences=faults.interferences)
    outcome = run_plan(run, find_world("fast"))

All commands that run a plan use it: emulate, train, exactness, calibrate, schedules of circuits and the figures of the
papers. The worlds are those of `inakit.experiments.worlds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from inakit.experiments.inspect.capture import Place
from inakit.experiments.run.console import Report, Stage, unseen
from inakit.experiments.run.controller import Controller
from inakit.experiments.run.dilation import in_own_time, options_for, replay_in_own_time
from inakit.experiments.run.interference import Interference, Interferences, Scene
from inakit.experiments.run.observation import check_observation, observed
from inakit.experiments.run.outcome import Outcome, watch
from inakit.experiments.run.pace import Pace
from inakit.experiments.worlds.world import Feature, LiveNetwork, Observation, Wiring, World
from inakit.planner.core.method import Options
from inakit.planner.install.plan_entries import many_copies
from inakit.planner.prepared import OfPrepared, Prepared
from inakit.switch.entries import Entries
from inakit.topo.errors import InputError, PlanError
from inakit.topo.fabric.circuits import Interconnect
from inakit.topo.fabric.fabric import Fabric
from inakit.traffic.closed_loop import Interfering, ReliableOptions, run_reliable
from inakit.traffic.endpoints.gradient import Gradients
from inakit.traffic.measure.measured import Measured
from inakit.traffic.replay import ReplayOptions, run_replay


@dataclass(frozen=True)
class Run(OfPrepared):
    """A prepared plan and the conditions of its run. A run is independent of the world in which it runs.

    - `gradients`: random unless they are given
    - `options`: the options of the closed loop; by default the endpoints' timeouts fit the links' rates
    - `replay`: the options of a replay
    - `interferences`: deliberate changes to the run, such as faults
    - `captures`: the switch ports whose packets are kept as pcap files
    - `folder`: the folder for pcap files and the logs of switches
    - `interconnect`: optical links exist only as its circuits
    - `queue_packets`: the length of the queue before every link; None selects the world's default
    - `observation`: the links' series and the fragments to record
    - `replans`: between iterations a controller plans anew with these options, as InArt's second phase does
    """

    prepared: Prepared
    gradients: Gradients | None = None
    options: ReliableOptions | None = None
    replay: ReplayOptions | None = None
    interferences: tuple[Interference, ...] = ()
    captures: tuple[Place, ...] = ()
    folder: Path | None = None
    interconnect: Interconnect | None = None
    queue_packets: int | None = None
    observation: Observation | None = None
    replans: Options | None = None

    @cached_property
    def installed(self) -> Entries:
        """The entries to install in the switches: the plan's entries after the changes of interferences.

        Switches without entries are absent, unless the run replans.
        """
        installed = self.prepared.entries
        for each in self.interferences:
            installed = each.entries(self.prepared, installed)
        if self.replans is None:
            return installed
        names = [switch.name for switch in self.problem.fabric.switches]  # another plan can use any of them
        return Entries(tuple(installed.of(name) for name in names))


def check_features(
    world: World,
    fabric: Fabric,
    mode: str,
    captures: Sequence[Place],
    interferences: Sequence[Interference],
    interconnect: Interconnect | None,
) -> None:
    """Raise `InputError` for features that the world does not have, `MachineError` for tools missing on this machine.

    The check comes before a network is built.
    """
    needs = {
        Feature.REPLAY: mode == "replay",
        Feature.CAPTURES: bool(captures),
        Feature.CIRCUITS: interconnect is not None,
    }
    needed = [feature for feature, is_needed in needs.items() if is_needed]
    needed += dict.fromkeys(feature for each in interferences for feature in each.needs if feature not in needed)
    missing = [feature for feature in needed if feature not in world.features]
    if missing:
        raise InputError(f"switch '{world.name}' has no {' and no '.join(missing)}: choose fast, bmv2 or virtual")
    world.check_fabric(fabric)
    world.check_tools(needed)


def send_reliably(
    run: Run, network: LiveNetwork, progress: Report, interference: Interfering | None, controller: Controller | None
) -> Measured:
    """Run the closed loop, by default with timeouts that fit the links' rates."""
    return run_reliable(
        network.hosts,
        run.problem,
        run.plan,
        options=run.options or options_for(run.problem),
        gradients=run.gradients,
        progress=progress,
        interference=interference,
        endpoints=network.endpoints,
        replanning=controller,
    )


def send_replayed(
    run: Run, network: LiveNetwork, progress: Report, _: Interfering | None, controller: Controller | None
) -> Measured:
    assert controller is None
    return run_replay(
        network.hosts,
        run.problem,
        run.plan,
        options=run.replay,
        gradients=run.gradients,
        progress=progress,
        replaying=network.replaying,
    )


MODES: dict[str, Callable[[Run, LiveNetwork, Report, Interfering | None, Controller | None], Measured]] = {
    "reliable": send_reliably,
    "replay": send_replayed,
}
"""The ways of sending gradients, by the name of the mode."""


def run_plan(
    run: Run, world: World, *, stage: Stage = unseen, paced: Callable[[Report], Pace | None] = lambda _: None
) -> Outcome:
    """Run a plan on a new network in a world.

    `stage` shows the progress of each part of the run. `paced` takes the function that shows the progress, and returns
    the `Pace` that ends a run which is too slow, or None. Raises `InputError` for features that the world does not
    have, `PlanError` for an invalid plan, `TooSlowError` if the machine clearly does not keep up, `RunError` if a
    switch dies or traffic stalls.
    """
    check_observation(world, asked=run.observation is not None)
    check_features(world, run.problem.fabric, run.mode, run.captures, run.interferences, run.interconnect)
    run = replace(run, prepared=run.prepared.fitted(world.program))
    for line in () if Feature.MANY_COPIES in world.features else many_copies(run.problem.fabric, run.plan):
        raise PlanError(line)
    if not world.real_time:
        run = made_for_own_time(run)
    installed, started = run.installed, time.monotonic()
    fabric = run.problem.fabric
    wiring = Wiring(run.interconnect, run.queue_packets, run.folder and run.folder / "switches")
    with ExitStack() as stack:
        with stage(f"setting up {len(fabric.switches)} switches of {world.name}") as progress:
            network = stack.enter_context(world.up(fabric, installed, wiring, progress))
        setup_s = time.monotonic() - started
        progress = stack.enter_context(stage(f"{run.mode} on {world.name}"))
        return replace(carry_out(run, network, progress, paced(progress)), setup_s=setup_s)


def made_for_own_time(run: Run) -> Run:
    """The run with options for a world in virtual time."""
    if run.mode == "replay":
        return replace(run, replay=run.replay or replay_in_own_time(run.prepared))
    options = run.options or options_for(run.problem)
    return replace(run, options=in_own_time(options, run.prepared))


def carry_out(run: Run, network: LiveNetwork, progress: Report, pace: Pace | None = None) -> Outcome:
    """Run a plan on a network that is up and has its entries, and judge it.

    Raises `RunError` if a switch dies or traffic stalls and, with a `pace`, `TooSlowError`.
    """
    send, controller = MODES[run.mode], controller_of(run, network)
    interferences = Interferences(run.interferences, Scene(network, run.prepared, run.installed))

    def sending() -> Measured:
        with interferences.acting() as interference:
            return send(run, network, pace or progress, interference, controller)

    with network.capturing(run.captures, run.folder) as captured, network.observing(run.observation) as noted:
        outcome = watch(network, run.prepared, sending, interferences.excuses(), pace)
    found = None if noted is None else observed(noted, run.problem, run.plan, outcome.monitor.after.at_s)
    done = [each.as_record(outcome.monitor) for each in interferences.own]
    done += [controller.as_record()] if controller else []
    return replace(outcome, captured=captured, interferences=tuple(done), observed=found)


def controller_of(run: Run, network: LiveNetwork) -> Controller | None:
    """The controller of a run that replans; None for other runs. Raises `InputError` for a replay."""
    if run.replans is None:
        return None
    if run.mode != "reliable":
        raise InputError(f"mode '{run.mode}': plans change between the iterations of a closed loop; choose reliable")
    return Controller(network, run.prepared, run.installed, run.replans, run.options)
