"""What calibrations of this machine have found, kept in the user's cache folder.

What is kept for another machine, kernel or version of the kit says nothing about this one: it is left out,
and the next calibration replaces it.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from experiments.calibrate.capacity import Capacity
from topo.errors import writing

FILE_VERSION = 1


@dataclass(frozen=True)
class Machine:
    """What a calibration depends on."""

    processor: str
    processors: int
    kernel: str
    kit: str


@dataclass(frozen=True)
class Calibrations:
    """The contents of the file."""

    version: int
    machine: Machine
    capacities: tuple[Capacity, ...]


def this_machine() -> Machine:
    return Machine(processor_model(), len(os.sched_getaffinity(0)), platform.release(), version("inakit"))


def processor_model() -> str:
    """As the kernel names it; on processors that it gives no name, the architecture."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "model name")
    return next(names, platform.machine())


def default_file() -> Path:
    """In `$XDG_CACHE_HOME`, by default `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "inakit" / "calibration.json"


def load_capacities(file: Path, machine: Machine) -> tuple[Capacity, ...]:
    """What is known of `machine`; nothing where the file is missing, damaged, of another version or machine."""
    try:
        found = TypeAdapter(Calibrations).validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return ()
    return found.capacities if (found.version, found.machine) == (FILE_VERSION, machine) else ()


def save_capacity(file: Path, machine: Machine, capacity: Capacity) -> None:
    """Add `capacity`; it takes the place of an earlier one of the same target and number of hosts."""
    others = [c for c in load_capacities(file, machine) if (c.target, c.hosts) != (capacity.target, capacity.hosts)]
    write(file, machine, [*others, capacity])


def write(file: Path, machine: Machine, capacities: Sequence[Capacity]) -> None:
    """Whole or not at all."""
    content = asdict(Calibrations(FILE_VERSION, machine, tuple(capacities)))
    draft = file.with_suffix(f".{os.getpid()}")
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(file)
