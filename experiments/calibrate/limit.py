"""The highest link rate at which this machine carries a plan, found by running it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape

from inakit.experiments.calibrate.cache import default_file, load_capacities, save_capacity, this_machine
from inakit.experiments.calibrate.capacity import Capacity, Load, Use, hosts_at_work, nearest, planned_load
from inakit.experiments.calibrate.memory import memory_bytes
from inakit.experiments.calibrate.rate_search import highest_rate
from inakit.experiments.calibrate.trials import Trial, TrialNetwork
from inakit.experiments.run.printed.progress import working
from inakit.experiments.run.printed.report import VERDICT_STYLES
from inakit.planner.core.evaluate import evaluate
from inakit.topo.errors import MachineError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.live.processors import switch_processors
from inakit.traffic.measure.verdict import VALID

A_GUESS = Capacity("", 1, Load(1e5, 2e5), Use(1.0, 1.0), "")
"""The capacity that the search assumes for a machine without a calibration: it decides only the first trial."""


@dataclass(frozen=True)
class Calibration:
    """What was found: the last VALID trial at the highest carried rate, and the network's set-up time and memory."""

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
    """Search for the highest link rate on a running network, and keep it. Raises `MachineError` if none is carried."""
    trials: list[Trial] = []

    def carried(scale: float) -> bool:
        trials.append(shown(bed, scale, console))
        return trials[-1].verdict == VALID

    try:
        scale = highest_rate(carried, first_scale(bed))
    except BaseException as error:
        if valid := [trial.scale for trial in trials if trial.verdict == VALID]:
            error.add_note(f"VALID until then at up to {rates(bed.problem.fabric, max(valid))}")
        raise
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
    """The scale of the first trial: the one that this machine should just carry, by its nearest calibration."""
    load = planned_load(bed.problem, evaluate(bed.problem, bed.plan))
    known = load_capacities(default_file(), this_machine())
    return (nearest(known, bed.world.name, hosts_at_work(bed.problem)) or A_GUESS).carried_share(load)


def keep(bed: TrialNetwork, trial: Trial) -> None:
    """Keep the trial in the cache, for the forecasts of `emulate` and for the start of the next calibration."""
    today = datetime.now(UTC).date().isoformat()
    hosts = hosts_at_work(bed.problem)
    save_capacity(default_file(), this_machine(), Capacity(bed.world.name, hosts, trial.load, trial.busy, today))


def shown(bed: TrialNetwork, scale: float, console: Console) -> Trial:
    """Run a trial, and print its verdict and its first reason."""
    with working(console, f"links of {rates(bed.problem.fabric, scale)}"):
        trial = bed.trial(scale)
    console.print(f"links of {rates(bed.problem.fabric, scale)}: {words_of(trial)}", highlight=False, soft_wrap=True)
    return trial


def words_of(trial: Trial) -> str:
    """The verdict of a trial and, below it, its first reason."""
    style = VERDICT_STYLES.get(trial.verdict, "bold yellow")
    more = f" (and {len(trial.reasons) - 1} more reasons)" if len(trial.reasons) > 1 else ""
    return "\n".join([f"[{style}]{trial.verdict}[/]", *(escape(f"  - {reason}{more}") for reason in trial.reasons[:1])])


def rates(fabric: Fabric, scale: float) -> str:
    """The capacities of a fabric's links at a scale, in words: one, or the least and the greatest."""
    found = sorted({capacity * scale / 1e6 for capacity in fabric.capacities_bps.values()})
    return " to ".join(f"{rate:.3g}" for rate in dict.fromkeys((found[0], found[-1]))) + " Mbit/s"


def print_calibration(console: Console, found: Calibration, scale: float) -> None:
    """Print the result; the fabric's rates are the described ones times `scale`."""
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
