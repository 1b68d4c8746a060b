"""The switch targets by name, from which the command line chooses.

A target is a Mininet switch class whose running nodes speak `inakit.switch.running_switch.RunningSwitch`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inakit.switch.handle import Handle
from inakit.switch.program.program import Program
from inakit.switch.program.read import check_sources
from inakit.switch.running_switch import PROGRAM, SwitchView
from inakit.topo.errors import MachineError, unknown_name


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
        """A running switch of another process, for reading; `program` is what `program_of` gives for its handle."""
        view: SwitchView = load(self.view)(handle, program)
        return view


def load(name: str) -> Any:
    """The attribute that `module:attribute` names; targets are imported only when they are used."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


BMV2_MODULES = {
    "thrift": "thrift",
    "bm_runtime": "BMv2's Python modules",
    "sswitch_runtime": "BMv2's Python modules",
    "bmpy_utils": "BMv2's Python modules",
    "p4utils": "p4-utils",
}
"""What the switch target needs of other people's Python, and which package has it."""


def missing_for_bmv2() -> str | None:
    """What this machine lacks to run simple_switch under Mininet, or None."""
    if shutil.which("simple_switch") is None:
        return "simple_switch is not installed: run `vagrant up`, or install p4lang's package p4lang-bmv2"
    for module, package in BMV2_MODULES.items():
        if importlib.util.find_spec(module) is None:
            return f"the Python module {module} is not installed: run `vagrant up`, or install {package}"
    return None


def missing_for_fast() -> str | None:
    """What this machine lacks to run programs in the kernel, or None."""
    if os.geteuid() != 0:
        return "root is needed to load programs into the kernel: run with sudo"
    if shutil.which("clang") is None:
        return "clang is not installed: apt install clang"
    asked: Callable[[], str | None] = load("inakit.switch.fast.load.kernel_needs:missing_here")
    return asked()


TARGETS: dict[str, Target] = {
    "bmv2": Target(
        "bmv2", "inakit.switch.bmv2.bmv2_switch:Bmv2Switch", "inakit.switch.bmv2.runtime:view", missing_for_bmv2
    ),
    "fast": Target(
        "fast",
        "inakit.switch.fast.load.fast_switch:FastSwitch",
        "inakit.switch.fast.load.kernel_switch:KernelView",
        missing_for_fast,
    ),
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
