"""What calibrations and probes of this machine have found, kept in a file in the user's cache folder.

A file of another machine, kernel or version of the kit says nothing about this machine: it counts as empty, and
the next result to be saved replaces it.
"""

from __future__ import annotations

import json
import os
import platform
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from inakit import __version__
from inakit.experiments.calibrate.capacity import Capacity
from inakit.topo.errors import writing
from inakit.topo.live.control_groups import quotas

FILE_VERSION = 2


@dataclass(frozen=True)
class Machine:
    """The machine that a calibration is for. `quota`: the CPU quotas of its control groups; `kit`: inakit's version."""

    processor: str
    processors: int
    quota: str
    kernel: str
    kit: str


@dataclass(frozen=True)
class Fit:
    """What a probe found: on `fabric`, with `hosts` hosts at work, `target` carries a fastest link of `link_bps`."""

    target: str
    fabric: str
    hosts: int
    link_bps: float


@dataclass(frozen=True)
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
