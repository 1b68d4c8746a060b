"""The highest link rate at which this machine carries a plan, found by repeated trials, as a single one can mislead.

`--curve` measures how packet rate, set-up, memory and idle CPU grow with the size of a fat-tree: a `Curve` says which
figures of each size are printed, written and drawn; `CALIBRATED` is the curve of emulated networks. `--verify` checks
whether an overloaded run is always judged OVERLOADED, and a lighter one VALID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from inakit.experiments.calibrate.capacity import (
    Capacity,
    Load,
    Use,
    hosts_at_work,
    load_results,
    nearest,
    planned_load,
    save_result,
)
from inakit.experiments.calibrate.rate_probe import Trial, TrialNetwork
from inakit.experiments.run.console import NARROW, figures, working
from inakit.experiments.run.printed_report import styled, without_names
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.planner.core.evaluate import evaluate
from inakit.topo.errors import MachineError, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.reader import write_csv
from inakit.topo.live.priority import switch_processors
from inakit.traffic.measure.processors import locked_bytes
from inakit.traffic.measure.verdict import OVERLOADED, VALID

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def memory_bytes() -> int:
    """The memory of this process, of its child processes, and of the eBPF maps and programs that it holds."""
    own = psutil.Process()
    return sum(process_bytes(process) for process in (own, *own.children(recursive=True))) + locked_bytes(own.pid)


def process_bytes(process: psutil.Process) -> int:
    """The memory of a process, counting its proportional part of shared pages (PSS); 0 if the process has ended."""
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0


STEP = 1.1
"""The ratio of two neighbouring rates of the search."""
LEAPS = (0, 4, 12, 28, 60)
"""Distances from the start in steps, tried in turn until a rate on the other side of the limit is found."""
AGREEING = 2
"""The number of trials that must agree on a rate: other work on the machine can spoil one, and luck can save one."""


def highest_rate(carried: Callable[[float], bool], start: float) -> float | None:
    """Return the highest rate for which `carried` is true; None if there is none.

    Rates are `start` times powers of `STEP`. Leaps up or down from the start find one rate that is carried and one
    that is not; bisection between them ends at two neighbouring rates.
    """

    def settled(step: int) -> bool:
        return agreed(lambda: carried(start * STEP**step))

    low, high = bracket(settled)
    if low is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if settled(middle) else (low, middle)
    return start * STEP**low


def bracket(settled: Callable[[int], bool]) -> tuple[int | None, int]:
    """Return a step that is carried, None if there is none, and a higher step that is not carried.

    If the highest of `LEAPS` is carried, the next step counts as not carried.
    """
    if settled(0):
        higher = ((low, high) for low, high in pairwise(LEAPS) if not settled(high))
        return next(higher, (LEAPS[-1], LEAPS[-1] + 1))
    lower = ((-low, -high) for high, low in pairwise(LEAPS) if settled(-low))
    return next(lower, (None, -LEAPS[-1]))


def agreed(trial: Callable[[], bool]) -> bool:
    """Repeat `trial` until `AGREEING` of its answers are the same, and return that answer."""
    answers: Counter[bool] = Counter()
    while True:
        answer = trial()
        answers[answer] += 1
        if answers[answer] == AGREEING:
            return answer


A_GUESS = Capacity("", 1, Load(1e5, 2e5), Use(1.0, 1.0), "")
"""The capacity that the search assumes for a machine without a calibration: it decides only the first trial."""


@dataclass(frozen=True)
class Calibration:
    """The result: the last VALID trial at the highest carried rate, and the network's set-up time and memory."""

    fabric: Fabric
    workers: int
    trial: Trial
    setup_s: float
    memory_bytes: int

    @property
    def link_bps(self) -> float:
        """The capacity of the fastest link at the scale that was found."""
        return max(self.fabric.capacities_bps.values()) * self.trial.scale

    @property
    def idle(self) -> float:
        """The idle share of all processors while gradients were sent."""
        switches, busy = len(switch_processors()), self.trial.busy
        return 1 - (busy.endpoint + switches * busy.switches) / (1 + switches)


def find_limit(bed: TrialNetwork, console: Console) -> Calibration:
    """Search for the highest link rate on a running network, and save it. Raises `MachineError` if none is carried."""
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
    today = datetime.now(UTC).date().isoformat()
    save_result(Capacity(bed.world.name, hosts_at_work(bed.problem), trial.load, trial.busy, today))
    workers = {worker for job in bed.problem.jobs for worker in job.workers}
    return Calibration(bed.problem.fabric, len(workers), trial, bed.setup_s, memory_bytes())


def first_scale(bed: TrialNetwork) -> float:
    """The scale of the first trial: the highest that this machine carries according to its nearest calibration."""
    load = planned_load(bed.problem, evaluate(bed.problem, bed.plan))
    known = nearest(load_results().capacities, bed.world.name, hosts_at_work(bed.problem))
    return (known or A_GUESS).carried_share(load)


def shown(bed: TrialNetwork, scale: float, console: Console) -> Trial:
    """Run a trial, and print its verdict and its first reason."""
    with working(console, f"links of {rates(bed.problem.fabric, scale)}"):
        trial = bed.trial(scale)
    console.print(f"links of {rates(bed.problem.fabric, scale)}: {words_of(trial)}", highlight=False, soft_wrap=True)
    return trial


def words_of(trial: Trial) -> str:
    """The verdict of a trial and, below it, its first reason."""
    more = f" (and {len(trial.reasons) - 1} more reasons)" if len(trial.reasons) > 1 else ""
    return "\n".join([styled(trial.verdict), *(escape(f"  - {reason}{more}") for reason in trial.reasons[:1])])


def rates(fabric: Fabric, scale: float) -> str:
    """The capacities of a fabric's links at a scale, in words: one rate, or the lowest and the highest."""
    found = sorted({capacity * scale / 1e6 for capacity in fabric.capacities_bps.values()})
    return " to ".join(f"{rate:.3g}" for rate in dict.fromkeys((found[0], found[-1]))) + " Mbit/s"


def print_calibration(console: Console, found: Calibration, scale: float) -> None:
    """Print the result; the fabric's rates are the described rates times `scale`."""
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


T = TypeVar("T")


@dataclass(frozen=True)
class Quantity(Generic[T]):
    """A column of a curve: its name in files, its value and, where it is printed, its heading and format."""

    name: str
    value: Callable[[T], float]
    heading: str = ""
    format: str = ""


@dataclass(frozen=True)
class Curve(Generic[T]):
    """A table's title, its columns, the name of each row, and the plots over the number of switches.

    `quantities` include "switches". `panels`: the names of the quantities of each plot.
    """

    title: str
    name: Callable[[T], str]
    quantities: Sequence[Quantity[T]]
    panels: Sequence[Sequence[str]]


QUANTITIES: tuple[Quantity[Calibration], ...] = (
    Quantity("switches", lambda found: len(found.fabric.switches), "switches", "d"),
    Quantity("hosts", lambda found: len(found.fabric.hosts)),
    Quantity("workers", lambda found: found.workers, "workers", "d"),
    Quantity("link_mbps", lambda found: found.link_bps / 1e6, "links\nMbit/s", ".2f"),
    Quantity("worker_mbps", lambda found: found.trial.worker_bps / 1e6),
    Quantity("endpoint_pps", lambda found: found.trial.load.endpoint_pps, "endpoints\npackets/s", ",.0f"),
    Quantity("switch_pps", lambda found: found.trial.load.switch_pps, "switches\npackets/s", ",.0f"),
    Quantity("setup_s", lambda found: found.setup_s, "set-up\ns", ".1f"),
    Quantity("memory_mb", lambda found: found.memory_bytes / 1e6, "memory\nMB", ",.0f"),
    Quantity("idle", lambda found: found.idle, "idle\nCPU", ".0%"),
)
PANELS = (("endpoint_pps", "switch_pps"), ("link_mbps",), ("setup_s",), ("memory_mb",), ("idle",))


CALIBRATED = Curve(
    "fat-trees at the highest link rate that stays VALID", lambda found: found.fabric.name, QUANTITIES, PANELS
)


def curve_table(curve: Curve[T], found: Sequence[T]) -> Table:
    """A table of the quantities that have a heading, with a row for each fat-tree."""
    printed = [quantity for quantity in curve.quantities if quantity.heading]
    table = Table(*figures(*(each.heading for each in printed), no_wrap=True), title=curve.title, **NARROW)
    for one in found:
        table.add_row(*(format(quantity.value(one), quantity.format) for quantity in printed))
    return table


def write_curve(curve: Curve[T], found: Sequence[T], folder: Path) -> list[Path]:
    """Write `curve.csv` and `curve.png` to the folder, and return their paths."""
    table, picture = folder / "curve.csv", folder / "curve.png"
    headings = ("fabric", *(quantity.name for quantity in curve.quantities))
    write_csv(table, headings, ([curve.name(one), *(q.value(one) for q in curve.quantities)] for one in found))
    with writing(picture):
        draw_curve(curve, found).savefig(picture, dpi=150)
    return [table, picture]


def draw_curve(curve: Curve[T], found: Sequence[T]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415, matplotlib takes a second

    by_name = {quantity.name: quantity for quantity in curve.quantities}
    switches = [by_name["switches"].value(one) for one in found]
    figure = Figure(figsize=(3 * len(curve.panels), 3), layout="constrained")
    panels: Any = figure.subplots(1, len(curve.panels))
    for panel, names in zip(panels, curve.panels, strict=True):
        for quantity in (by_name[name] for name in names):
            panel.plot(
                switches, [quantity.value(one) for one in found], "o-", label=quantity.heading.replace("\n", " ")
            )
        panel.set_xlabel("switches")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return figure


LIGHT, HEAVY = 0.7, (1.5, 2.0, 4.0)
"""The rates of the runs, as multiples of the calibrated rate: the machine carries only the light one."""
RUNS_PER_MISS = 30
"""One light run in this many may fail, because other work on the machine can spoil it; no heavy run may pass."""


@dataclass(frozen=True)
class Verified:
    """The trials at one multiple of the calibrated rate."""

    multiple: float
    trials: tuple[Trial, ...]

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(trial.verdict for trial in self.trials)

    @property
    def kept(self) -> bool:
        """Whether the promise is kept: heavy runs all OVERLOADED, light ones VALID but for one in `RUNS_PER_MISS`."""
        if self.multiple > 1:
            return self.verdicts[OVERLOADED] == len(self.trials)
        return len(self.trials) - self.verdicts[VALID] <= len(self.trials) // RUNS_PER_MISS

    def reasons(self) -> Counter[str]:
        return Counter(kind for trial in self.trials for kind in {without_names(reason) for reason in trial.reasons})


@dataclass(frozen=True)
class Multiple:
    """A run at a multiple of the calibrated rate, with links of `rates`."""

    multiple: float
    rates: str

    def __str__(self) -> str:
        return f"{self.multiple:g} times the calibrated, links of {self.rates}"


def verify(bed: TrialNetwork, calibrated: float, runs: int, console: Console) -> bool:
    """Try `runs` runs at each multiple of the calibrated scale, print the verdicts; return whether all are as promised.

    After an error or an interrupt the table has the runs so far. A run that ends in an error is a broken promise.
    """
    multiples = [Multiple(each, rates(bed.problem.fabric, each * calibrated)) for each in (LIGHT, *HEAVY)]

    def show(rows: Sequence[Row[Multiple, Trial]]) -> bool:
        tried = {row.asked.multiple: [each.found for each in rows if each.asked == row.asked] for row in rows}
        found = [Verified(multiple, tuple(filter(None, trials))) for multiple, trials in tried.items()]
        if found:
            console.print(verification_table(found))
        return all(one.kept for one in found) and not any(row.error for row in rows)

    asked = [each for each in multiples for _ in range(runs)]
    return measure_rows(asked, lambda each: bed.trial(each.multiple * calibrated), words_of, show, console)


def verification_table(found: list[Verified]) -> Table:
    """A row for each multiple of the calibrated rate: the verdicts, and the checks that found the overload."""
    headings = ("times the\ncalibrated", "runs", VALID, OVERLOADED, "promise", "caught by (runs)")
    table = Table(*headings, **NARROW)
    for verified in found:
        reasons = "\n".join(f"{kind} ({count})" for kind, count in verified.reasons().most_common(4))
        counts = (len(verified.trials), verified.verdicts[VALID], verified.verdicts[OVERLOADED])
        kept = "[green]kept[/]" if verified.kept else "[bold red]broken[/]"
        table.add_row(f"{verified.multiple:g}", *map(str, counts), kept, reasons)
    return table
