"""The switch targets by name, for the command line, and the constructs of v1model that each supports.

A target is a Mininet switch class whose running nodes implement `inakit.switch.running_switch.RunningSwitch`.

The list of constructs comes from the tables of handlers: `python -m inakit.switch.targets` prints the table of the
README. A construct without a handler is refused when a program is loaded, with its name and its line of P4.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inakit.switch.control.entry_check import KEY_TYPES
from inakit.switch.fast.compile.actions import PRIMITIVES as COMPILED_PRIMITIVES
from inakit.switch.fast.compile.calculations import ALGORITHMS as COMPILED_ALGORITHMS
from inakit.switch.fast.compile.expressions import OPERATORS as COMPILED_OPERATORS
from inakit.switch.fast.compile.expressions import REWRITTEN
from inakit.switch.fast.compile.parser import PARSER_OPERATIONS as COMPILED_PARSER_OPERATIONS
from inakit.switch.handle import Handle
from inakit.switch.interpret.actions import HANDLERS, JUMPING
from inakit.switch.interpret.calculations import ALGORITHMS
from inakit.switch.interpret.expressions import ON_STACKS, OPERATORS
from inakit.switch.interpret.parser import PARSER_OPERATIONS
from inakit.switch.program.bmv2_json import check_sources, read_program
from inakit.switch.program.program import STANDARD_METADATA, Program
from inakit.switch.running_switch import PROGRAM, SwitchView
from inakit.topo.errors import MachineError, unknown_name


@dataclass(frozen=True)
class Target:
    """A way of running the P4 program. `missing` returns the reason why this machine cannot, or None."""

    name: str
    node: str
    view: str
    missing: Callable[[], str | None]

    def node_class(self) -> type[Any]:
        """The Mininet switch class; its constructor takes the keyword `fabric_switch`."""
        loaded: type[Any] = load(self.node)
        return loaded

    def attach(self, handle: Handle, program: Program) -> SwitchView:
        """A running switch of another process, for reading; `program` is `program_of` of its handle."""
        view: SwitchView = load(self.view)(handle, program)
        return view


def load(name: str) -> Any:
    """The attribute that `module:attribute` names; targets are imported only on use."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


BMV2_MODULES = {
    "thrift": "thrift",
    "bm_runtime": "BMv2's Python modules",
    "sswitch_runtime": "BMv2's Python modules",
    "bmpy_utils": "BMv2's Python modules",
    "p4utils": "p4-utils",
}
"""The Python modules of others that the target needs, and the package of each."""


def missing_for_bmv2() -> str | None:
    """The reason why this machine cannot run simple_switch under Mininet, or None."""
    if shutil.which("simple_switch") is None:
        return "simple_switch is not installed: run `vagrant up`, or install p4lang's package p4lang-bmv2"
    for module, package in BMV2_MODULES.items():
        if importlib.util.find_spec(module) is None:
            return f"the Python module {module} is not installed: run `vagrant up`, or install {package}"
    return None


def missing_for_fast() -> str | None:
    """The reason why this machine cannot run programs in the kernel, or None."""
    if os.geteuid() != 0:
        return "root is needed to load programs into the kernel: run with sudo"
    if shutil.which("clang") is None:
        return "clang is not installed: apt install clang"
    asked: Callable[[], str | None] = load("inakit.switch.fast.load.kernel_needs:missing_here")
    return asked()


TARGETS: dict[str, Target] = {
    "bmv2": Target(
        "bmv2", "inakit.switch.bmv2.bmv2_switch:Bmv2Switch", "inakit.switch.bmv2.thrift_client:view", missing_for_bmv2
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

    Raises `InputError` if the program's sources have changed since it was compiled.
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


@dataclass(frozen=True)
class Features:
    """Constructs of one kind: those that the generator compiles (for the kernel and a process), and the rest."""

    kind: str
    compiled: tuple[str, ...]
    interpreted: tuple[str, ...]


def features() -> list[Features]:
    """Every construct that has a handler, by kind."""
    fields = read_program(PROGRAM).headers[STANDARD_METADATA].fields
    standard = [field.name for field in fields if not field.name.startswith("_")]  # padding, which p4c adds
    return [
        split("primitives", COMPILED_PRIMITIVES, HANDLERS | JUMPING),
        split("parser", COMPILED_PARSER_OPERATIONS, PARSER_OPERATIONS),
        split("operators", [*COMPILED_OPERATORS, *REWRITTEN], OPERATORS | ON_STACKS),
        split("hashes", COMPILED_ALGORITHMS, ALGORITHMS),
        split("keys", KEY_TYPES, KEY_TYPES),
        split("standard_metadata", standard, standard),
    ]


def split(kind: str, compiled: Iterable[str], handled: Iterable[str]) -> Features:
    """The features of one kind, from the names of compiled constructs and of all handled ones."""
    names = set(compiled)
    return Features(kind, tuple(sorted(names)), tuple(sorted(set(handled) - names)))


def markdown() -> str:
    """The table of `switch/README.md`."""
    lines = ["| | kernel and in process | in process only |", "|---|---|---|"]
    for each in features():
        cells = (" ".join(f"`{name}`" for name in names) for names in (each.compiled, each.interpreted))
        lines.append(f"| {each.kind} | {' | '.join(cells)} |".replace("`|`", "`\\|`"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
