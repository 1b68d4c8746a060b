"""How much load a plan puts on this machine's processors, how much they are known to carry, and the file that says so.

The endpoints have one processor, and the switches share the others (`inakit.topo.live.priority`). A calibration says
how many packets per second both handled at the highest rate that stayed VALID, and how busy that kept them. The
processor time per packet follows. It holds for about as many hosts as the calibration had: with many hosts each
has few packets at a time, and an endpoint's packet costs more.

What calibrations and probes found is kept in the user's cache folder. A file of another machine, kernel or version of
the kit says nothing about this machine: it counts as empty, and the next result to be saved replaces it.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from rich.console import Console

from inakit import __version__
from inakit.planner.core.evaluate import Prediction
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.topo.errors import writing
from inakit.topo.live.priority import quotas


@dataclass(frozen=True)
class Load:
    """Packets per second that endpoints send or receive, and that pass through switches."""

    endpoint_pps: float
    switch_pps: float


def hosts_at_work(problem: Problem) -> int:
    """Workers and parameter servers of all jobs, each counted once."""
    return len({host for job in problem.jobs for host in (*job.workers, *job.servers)})


def planned_load(problem: Problem, prediction: Prediction) -> Load:
    """The load while all jobs send.

    A gradient packet counts once at each switch that it reaches, a result packet once for each copy that leaves
    a switch.
    """
    switches, packet_bits = problem.fabric.switch_by_name, 8 * problem.fragment.wire_bytes
    gradients, results = prediction.link_loads_bps, prediction.result_loads_bps
    at_hosts = [bps for loads in (gradients, results) for (a, b), bps in loads.items() if not {a, b} <= set(switches)]
    arriving = [bps for (_, node), bps in gradients.items() if node in switches]
    leaving = [bps for (node, _), bps in results.items() if node in switches]
    return Load(sum(at_hosts) / packet_bits, (sum(arriving) + sum(leaving)) / packet_bits)


@dataclass(frozen=True)
class Use:
    """The shares of the time for which the endpoints' processor and the switches' processors are busy; 1 is always."""

    endpoint: float
    switches: float

    @property
    def most(self) -> float:
        """The greater share of the two."""
        return max(self.endpoint, self.switches)


@dataclass(frozen=True)
class Capacity:
    """What one calibration found: `target` with `hosts` hosts carried `load`, which used the shares `busy`."""

    target: str
    hosts: int
    load: Load
    busy: Use
    date: str

    def use(self, load: Load) -> Use:
        """The shares of the processors that `load` would need; a share above 1 is more than there is."""
        return Use(
            load.endpoint_pps * self.busy.endpoint / self.load.endpoint_pps,
            load.switch_pps * self.busy.switches / self.load.switch_pps,
        )

    def carried_share(self, load: Load) -> float:
        """The part of `load` that uses the busier processors as much as the calibration did; over 1 if it is light."""
        return self.busy.most / self.use(load).most


def nearest(capacities: Sequence[Capacity], target: str, hosts: int) -> Capacity | None:
    """The calibration of that target whose number of hosts is nearest, as a ratio; None if the target has none."""
    of_target = [capacity for capacity in capacities if capacity.target == target]
    return min(of_target, key=lambda capacity: abs(math.log(capacity.hosts / hosts)), default=None)


@dataclass(frozen=True)
class Forecast:
    """Whether this machine can carry a plan, and a line that says so."""

    text: str
    carried: bool


def forecast(capacity: Capacity, load: Load, scale: float) -> Forecast:
    """The forecast for a plan before its run; `scale` is the one at which `load` was planned."""
    use, share = capacity.use(load), capacity.carried_share(load)
    made = f"(calibrated {capacity.date} with {capacity.hosts} hosts)"
    if share >= 1:
        need = f"needs {use.endpoint:.0%} of the endpoint processor and {use.switches:.0%} of the switches'"
        return Forecast(f"{need} {made}", True)
    fits = f"this machine carries about {share:.2f} of the planned rates: --scale {rounded_down(scale * share):g} fits"
    return Forecast(f"{fits} {made}", False)


def rounded_down(number: float) -> float:
    """The number rounded down to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.floor(number / unit + 1e-9) * unit


FILE_VERSION = 2


@checked_dataclass(frozen=True)
class Machine:
    """The machine that a calibration is for. `quota`: the CPU quotas of its control groups; `kit`: inakit's version."""

    processor: str
    processors: int
    quota: str
    kernel: str
    kit: str


@checked_dataclass(frozen=True)
class Fit:
    """What a probe found: on `fabric`, with `hosts` hosts at work, `target` carries a fastest link of `link_bps`."""

    target: str
    fabric: str
    hosts: int
    link_bps: float


@checked_dataclass(frozen=True)
class Calibrations:
    """The contents of the file."""

    version: int
    machine: Machine
    capacities: tuple[Capacity, ...] = ()
    fits: tuple[Fit, ...] = ()


def this_machine() -> Machine:
    """This machine, with the processors that this process may use."""
    processors = len(os.sched_getaffinity(0))
    return Machine(processor_model(), processors, ", ".join(quotas()), platform.release(), __version__)


def processor_model() -> str:
    """The processor's model as the kernel names it; the architecture where the kernel has no name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "model name")
    return next(names, platform.machine())


def default_file() -> Path:
    """The file with all results: in `$XDG_CACHE_HOME`, by default in `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "inakit" / "calibration.json"


def load_capacities(file: Path, machine: Machine) -> tuple[Capacity, ...]:
    """What calibrations found on `machine`."""
    return load(file, machine).capacities


def load_fits(file: Path, machine: Machine) -> tuple[Fit, ...]:
    """What probes found on `machine`."""
    return load(file, machine).fits


def load(file: Path, machine: Machine) -> Calibrations:
    """The file's contents; empty where the file is missing, damaged, of another version or of another machine."""
    with suppress(OSError, ValidationError):
        found = TypeAdapter(Calibrations).validate_json(file.read_bytes())
        if (found.version, found.machine) == (FILE_VERSION, machine):
            return found
    return Calibrations(FILE_VERSION, machine)


def save_capacity(file: Path, machine: Machine, capacity: Capacity) -> None:
    """Add `capacity` to the file; it replaces an earlier one of the same target and number of hosts."""
    known = load(file, machine)
    others = (c for c in known.capacities if (c.target, c.hosts) != (capacity.target, capacity.hosts))
    write(file, replace(known, capacities=(*others, capacity)))


def save_fit(file: Path, machine: Machine, fit: Fit) -> None:
    """Add `fit` to the file; it replaces an earlier one of the same target, fabric and number of hosts."""
    known = load(file, machine)
    others = (f for f in known.fits if (f.target, f.fabric, f.hosts) != (fit.target, fit.fabric, fit.hosts))
    write(file, replace(known, fits=(*others, fit)))


def write(file: Path, content: Calibrations) -> None:
    """Write the file whole or not at all. Raises `OutputError`."""
    draft = file.with_suffix(f".{os.getpid()}")
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(asdict(content), indent=2) + "\n")
        draft.replace(file)


HINT = "not known whether this machine carries these rates: run `inakit calibrate` once to find out"


def announce(console: Console, problem: Problem, plans: Mapping[str, Prepared], target: str, scale: float) -> None:
    """Print a forecast for each plan, or `HINT` if there is no calibration of the target.

    The rates of the problem's fabric are the described ones times `scale`.
    """
    capacity = nearest(load_capacities(default_file(), this_machine()), target, hosts_at_work(problem))
    if capacity is None:
        console.print(HINT, style="dim", highlight=False)
        return
    for name, prepared in plans.items():
        load = planned_load(problem, prepared.prediction)
        said = forecast(capacity, load, scale)
        style = "dim" if said.carried else "yellow"
        console.print(f"{name}: {said.text}", style=style, highlight=False, soft_wrap=True)
