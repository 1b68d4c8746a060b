"""The highest link rate at which this machine carries a plan, found by running it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console

from experiments.calibrate.cache import default_file, load_capacities, save_capacity, this_machine
from experiments.calibrate.capacity import Capacity, Load, Use, hosts_at_work, nearest, planned_load
from experiments.calibrate.memory import memory_bytes
from experiments.calibrate.search import highest_rate
from experiments.calibrate.trials import Trial, TrialNetwork
from experiments.run.progress import working
from experiments.run.report import VERDICT_STYLES
from planner.core.evaluate import evaluate
from topo.errors import MachineError
from topo.fabric.fabric import Fabric
from topo.live.processors import switch_processors
from traffic.measure.verdict import VALID

A_GUESS = Capacity("", 1, Load(1e5, 2e5), Use(1.0, 1.0), "")
"""Where the search begins on a machine that nothing is known of."""


@dataclass(frozen=True)
class Calibration:
    """What was found: the last trial at the highest rate that is carried, and what the network takes."""

    fabric: Fabric
    workers: int
    trial: Trial
    setup_s: float
    memory_bytes: int

    @property
    def idle(self) -> float:
        """The idle share of all processors while gradients were sent."""
        switches, busy = len(switch_processors()), self.trial.busy
        return 1 - (busy.endpoint + switches * busy.switches) / (1 + switches)


def find_limit(bed: TrialNetwork, console: Console) -> Calibration:
    """Search on a running network, and keep what is found. Raises `MachineError` when no rate is carried."""
    trials: list[Trial] = []

    def carried(scale: float) -> bool:
        trials.append(shown(bed, scale, console))
        return trials[-1].verdict == VALID

    scale = highest_rate(carried, first_scale(bed))
    if scale is None:
        raise MachineError(
            f"this machine carries this plan at no link rate down to {rates(bed.problem.fabric, trials[-1].scale)}: "
            + "; ".join(trials[-1].reasons[:1])
        )
    trial = [trial for trial in trials if trial.scale == scale and trial.verdict == VALID][-1]
    keep(bed, trial)
    workers = {worker for job in bed.problem.jobs for worker in job.workers}
    return Calibration(bed.problem.fabric, len(workers), trial, bed.setup_s, memory_bytes())


def first_scale(bed: TrialNetwork) -> float:
    """Where this machine should be full, by what is known of it."""
    load = planned_load(bed.problem, evaluate(bed.problem, bed.plan))
    known = load_capacities(default_file(), this_machine())
    return (nearest(known, bed.world.name, hosts_at_work(bed.problem)) or A_GUESS).carried_share(load)


def keep(bed: TrialNetwork, trial: Trial) -> None:
    """For what `emulate` says before its runs, and the next calibration's start."""
    today = datetime.now(UTC).date().isoformat()
    hosts = hosts_at_work(bed.problem)
    save_capacity(default_file(), this_machine(), Capacity(bed.world.name, hosts, trial.load, trial.busy, today))


def shown(bed: TrialNetwork, scale: float, console: Console) -> Trial:
    """A trial, and a line about it."""
    with working(console, f"links of {rates(bed.problem.fabric, scale)}"):
        trial = bed.trial(scale)
    style = VERDICT_STYLES.get(trial.verdict, "bold yellow")
    console.print(f"links of {rates(bed.problem.fabric, scale)}: [{style}]{trial.verdict}[/]", highlight=False)
    for reason in trial.reasons[:1]:
        more = f" (and {len(trial.reasons) - 1} more reasons)" if len(trial.reasons) > 1 else ""
        console.print(f"  - {reason}{more}", highlight=False, markup=False, soft_wrap=True)
    return trial


def rates(fabric: Fabric, scale: float) -> str:
    """The capacities of a fabric's links at a scale: one, or the least and the greatest."""
    found = sorted({capacity * scale / 1e6 for capacity in fabric.capacities_bps.values()})
    return " to ".join(f"{rate:.3g}" for rate in dict.fromkeys((found[0], found[-1]))) + " Mbit/s"


def print_calibration(console: Console, found: Calibration, scale: float) -> None:
    """The result; `scale` is the one that the fabric was described with."""
    trial, fabric = found.trial, found.fabric
    lines = (
        f"the highest link rate that stays VALID: {rates(fabric, trial.scale)} (--scale {trial.scale * scale:.3g})",
        f"each of {found.workers} workers sends at {trial.worker_bps / 1e6:.3g} Mbit/s",
        f"{trial.load.endpoint_pps:,.0f} packets/s at the endpoints, whose processor is {trial.busy.endpoint:.0%} busy",
        f"{trial.load.switch_pps:,.0f} packets/s through {len(fabric.switches)} switches, "
        f"whose processors are {trial.busy.switches:.0%} busy; {found.idle:.0%} of the machine is idle",
        f"set-up {found.setup_s:.1f} s, memory {found.memory_bytes / 1e6:,.0f} MB",
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
