"""What every switch target offers, and the registry that the command line chooses from.

A target is a Mininet switch class whose running nodes speak `RunningSwitch`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from switch.entries import MulticastGroup, SwitchEntries, TableEntry
from switch.handle import Handle
from switch.program import Program
from switch.sources import check_sources
from topo.errors import MachineError, unknown_name

PROGRAM = Path(__file__).resolve().parents[1] / "p4" / "build" / "ina.json"
"""What switches run unless they are told otherwise."""


class SwitchView(Protocol):
    """What can be read of a switch, also by another process than the one that runs it."""

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, by its full name in the P4 program, ordered by key."""
        ...

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        ...

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array, by its full name in the P4 program."""
        ...

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of an indirect counter, by default of all."""
        ...


class RunningSwitch(SwitchView, Protocol):
    """A switch that processes packets: in the kernel, in BMv2, or inside this process."""

    name: str

    def install(self, entries: SwitchEntries) -> None:
        """Add table entries, multicast groups and register presets; `InputError` if the program has no such thing."""
        ...

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there, by their tables and keys, other actions and parameters, while packets pass."""
        ...

    def wipe(self) -> None:
        """Set all registers to 0, as a restart does. No packet may pass meanwhile: it would meet with half a state."""
        ...

    def check(self) -> None:
        """Raise `RunError` if the switch has stopped processing packets."""
        ...


@dataclass(frozen=True)
class Target:
    """A way of running the P4 program. `missing` says what this machine lacks for it, or None."""

    name: str
    node: str
    view: str
    missing: Callable[[], str | None]

    def node_class(self) -> type[Any]:
        """The Mininet switch class; constructed with the keyword `fabric_switch`."""
        loaded: type[Any] = load(self.node)
        return loaded

    def attach(self, handle: Handle, program: Program) -> SwitchView:
        """A running switch of another process; `program` is what `program_of` gives for its handle."""
        view: SwitchView = load(self.view)(handle, program)
        return view


def load(name: str) -> Any:
    """What `module:attribute` names."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


def missing_for_bmv2() -> str | None:
    if shutil.which("simple_switch") is None:
        return "simple_switch is not installed: run `vagrant up`, or install p4lang's package p4lang-bmv2"
    if importlib.util.find_spec("p4utils") is None:
        return "the Python module p4utils is not installed: run `vagrant up`, or install p4-utils"
    return None


def missing_for_fast() -> str | None:
    if os.geteuid() != 0:
        return "root is needed to load programs into the kernel: run with sudo"
    if shutil.which("clang") is None:
        return "clang is not installed: apt install clang"
    return None


TARGETS: dict[str, Target] = {
    "bmv2": Target("bmv2", "switch.bmv2.node:Bmv2Switch", "switch.bmv2.runtime:view", missing_for_bmv2),
    "fast": Target("fast", "switch.fast.node:FastSwitch", "switch.fast.view:KernelView", missing_for_fast),
}


def choose_target(name: str = "auto", program: Path | None = None) -> Target:
    """The target called `name`, to run `program` (the kit's own); `auto` is bmv2 where it is installed, else fast.

    Raises `InputError` where the program's sources have changed since it was compiled.
    """
    check_sources(program or PROGRAM)
    if name == "auto":
        return choose_target("bmv2" if TARGETS["bmv2"].missing() is None else "fast", program)
    if name not in TARGETS:
        raise unknown_name("switch target", name, [*TARGETS, "auto"])
    reason = TARGETS[name].missing()
    if reason is not None:
        raise MachineError(f"switch target '{name}' cannot run here: {reason}")
    return TARGETS[name]
