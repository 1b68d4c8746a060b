"""The load that a plan puts on this machine's processors, the load that they carry, and the file of calibrations.

The endpoints have one processor, and the switches share the others (`inakit.topo.live.priority`). A calibration records
the packets per second of both at the highest rate that stayed VALID, and how busy their processors were. The processor
time per packet follows. It holds for similar numbers of hosts: with many hosts each has few packets at a time, and an
endpoint's packet costs more.

The user's cache folder keeps the results of calibrations and probes. A file of another machine, kernel or version of
the kit does not apply to this machine: it counts as empty, and the next saved result replaces it.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from rich.console import Console

from inakit import __version__
from inakit.planner.core.evaluate import Prediction
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.topo.errors import writing
from inakit.topo.files.reader import write_whole
from inakit.topo.live.priority import quotas


@dataclass(frozen=True)
class Load:
    """Packets per second that endpoints send or receive, and that pass through switches."""

    endpoint_pps: float
    switch_pps: float


def hosts_at_work(problem: Problem) -> int:
    """The number of hosts that are workers or parameter servers of any job."""
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
    """The busy shares of the endpoints' processor and of the switches' processors, from 0 to 1."""

    endpoint: float
    switches: float

    @property
    def most(self) -> float:
        return max(self.endpoint, self.switches)


@dataclass(frozen=True)
class Capacity:
    """The result of one calibration: `target` with `hosts` hosts carried `load`, which used the shares `busy`."""

    target: str
    hosts: int
    load: Load
    busy: Use
    date: str

    def use(self, load: Load) -> Use:
        """The shares of the processors that `load` would need; above 1 if they are too slow."""
        return Use(
            load.endpoint_pps * self.busy.endpoint / self.load.endpoint_pps,
            load.switch_pps * self.busy.switches / self.load.switch_pps,
        )

    def carried_share(self, load: Load) -> float:
        """The part of `load` that uses the busier processors as much as the calibration did; can be above 1."""
        return self.busy.most / self.use(load).most

    @property
    def subject(self) -> tuple[object, ...]:
        """The key of the result; a later result with the same key replaces it."""
        return self.target, self.hosts


def nearest(capacities: Sequence[Capacity], target: str, hosts: int) -> Capacity | None:
    """The calibration of the target whose number of hosts is nearest, as a ratio; None if the target has none."""
    of_target = [capacity for capacity in capacities if capacity.target == target]
    return min(of_target, key=lambda capacity: abs(math.log(capacity.hosts / hosts)), default=None)


def forecast(capacity: Capacity, load: Load, scale: float) -> tuple[str, bool]:
    """A line about a plan before its run, and whether this machine can carry it.

    `load` was planned at `scale`.
    """
    use, share = capacity.use(load), capacity.carried_share(load)
    made = f"(calibrated {capacity.date} with {capacity.hosts} hosts)"
    if share >= 1:
        need = f"needs {use.endpoint:.0%} of the endpoint processor and {use.switches:.0%} of the switches'"
        return f"{need} {made}", True
    fits = f"this machine carries about {share:.2f} of the planned rates: --scale {rounded_down(scale * share):g} fits"
    return f"{fits} {made}", False


def rounded_down(number: float) -> float:
    """The number rounded down to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.floor(number / unit + 1e-9) * unit


FILE_VERSION = 2


@checked_dataclass(frozen=True)
class Machine:
    """The machine of a calibration. `quota`: the CPU quotas of its control groups; `kit`: inakit's version."""

    processor: str
    processors: int
    quota: str
    kernel: str
    kit: str


@checked_dataclass(frozen=True)
class Fit:
    """The result of a probe: on `fabric`, with `hosts` hosts at work, `target` carries a fastest link of `link_bps`."""

    target: str
    fabric: str
    hosts: int
    link_bps: float

    @property
    def subject(self) -> tuple[object, ...]:
        """The key of the result; a later result with the same key replaces it."""
        return self.target, self.fabric, self.hosts


@checked_dataclass(frozen=True)
class Calibrations:
    """The contents of the file."""

    version: int
    machine: Machine
    capacities: tuple[Capacity, ...] = ()
    fits: tuple[Fit, ...] = ()


def this_machine() -> Machine:
    """Describe this machine, with the processors that this process may use."""
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    model = next((value.strip() for key, _, value in lines if key.strip() == "model name"), platform.machine())
    processors = len(os.sched_getaffinity(0))
    return Machine(model, processors, ", ".join(quotas()), platform.release(), __version__)


def default_file() -> Path:
    """The file with all results: in `$XDG_CACHE_HOME`, by default in `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "inakit" / "calibration.json"


def load_results(file: Path | None = None, machine: Machine | None = None) -> Calibrations:
    """Load the results of a machine, by default of this one from the default file.

    The result is empty if the file is missing, damaged, of another version or of another machine.
    """
    machine = machine or this_machine()
    with suppress(OSError, ValidationError):
        found = TypeAdapter(Calibrations).validate_json((file or default_file()).read_bytes())
        if (found.version, found.machine) == (FILE_VERSION, machine):
            return found
    return Calibrations(FILE_VERSION, machine)


def save_result(result: Capacity | Fit, file: Path | None = None, machine: Machine | None = None) -> None:
    """Add a result to the file in place of an earlier one with the same key. Raises `OutputError`."""
    file, known = file or default_file(), load_results(file, machine)
    kind = "capacities" if isinstance(result, Capacity) else "fits"
    others = [each for each in getattr(known, kind) if each.subject != result.subject]
    content = asdict(known) | {kind: [asdict(each) for each in (*others, result)]}
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(content, indent=2) + "\n")


HINT = "unknown whether this machine carries these rates: run `inakit calibrate` once to find out"


def announce(console: Console, problem: Problem, plans: Mapping[str, Prepared], target: str, scale: float) -> None:
    """Print a forecast for each plan, or `HINT` if there is no calibration of the target.

    The rates of the problem's fabric are the described rates times `scale`.
    """
    capacity = nearest(load_results().capacities, target, hosts_at_work(problem))
    if capacity is None:
        console.print(HINT, style="dim", highlight=False)
        return
    for name, prepared in plans.items():
        told, carried = forecast(capacity, planned_load(problem, prepared.prediction), scale)
        console.print(f"{name}: {told}", style="dim" if carried else "yellow", highlight=False, soft_wrap=True)
