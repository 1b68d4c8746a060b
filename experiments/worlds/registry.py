"""The worlds by name. `auto` selects the reference bmv2, else the embedded switch, else virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.experiments.worlds.world import World
from inakit.planner.install.ina_program import INA, DataPlaneProgram, find_program
from inakit.switch.program.p4_source import compiled
from inakit.switch.targets import TARGETS
from inakit.topo.errors import InputError, unknown_name

AUTO = "auto"
OTHERS = {
    "bmv2": "--switch fast produces the same packets, 32 to 105 times as fast (`inakit bench`)",
    "fast": "it sends the packets of bmv2, the reference, 32 to 105 times as fast (`inakit bench`)",
    "virtual": "time is simulated and links have the described rates, so that figures do not depend on this machine; "
    "they agree with VALID emulations of the same plans to 0.2 % (`inakit agree`)",
}
"""A remark on each world that compares it with the others."""


def worlds_here() -> list[str]:
    """The names of the worlds that this machine can emulate, the reference first; if there are none, "virtual"."""
    return [name for name in TARGETS if EmulatedWorld(name).missing() is None] or [VirtualWorld.name]


def print_choice(console: Console, switch: str, world: str) -> None:
    """Print the world that "auto" selected, and the reason; for "virtual" by name, print only the remark."""
    if switch == AUTO:
        console.print(f"{why(world)}; {OTHERS[world]}", highlight=False, soft_wrap=True)
    elif world == VirtualWorld.name:
        console.print(f"{world}: {OTHERS[world]}", highlight=False, soft_wrap=True)


def why(world: str) -> str:
    """The reason why "auto" selected this world, in words."""
    if world == "bmv2":
        return "switch auto selected bmv2, which is installed"
    better = "bmv2" if world == "fast" else "fast"
    return f"switch auto selected {world}, because {better} cannot run ({EmulatedWorld(better).missing()})"


WORLDS: dict[str, Callable[..., World]] = {
    "virtual": VirtualWorld,
    "fast": partial(EmulatedWorld, "fast"),
    "bmv2": partial(EmulatedWorld, "bmv2"),
}


def is_virtual(name: str) -> bool:
    """Whether the name selects virtual time on this machine."""
    return (worlds_here()[0] if name == AUTO else name) == VirtualWorld.name


def program_of(name: str) -> DataPlaneProgram:
    """The data-plane program of this name, or a variant of `ina` in a file: P4 source, which is compiled, or BMv2 JSON.

    A variant keeps the tables, registers and counters of `ina`, whose entries it gets.
    """
    path = Path(name)
    if path.suffix not in (".p4", ".json"):
        return find_program(name)
    if not path.is_file():
        raise InputError(f"--program {name}: there is no such file; the kit's own program is p4/ina.p4")
    return replace(INA, name=path.stem, path=compiled(path))


def find_world(name: str, program: DataPlaneProgram = INA) -> World:
    """Return the world of this name with switches that run this program, after a check of this machine.

    `auto` selects the first of `worlds_here`. Raises `InputError` for an unknown name, `MachineError` for a world that
    cannot run on this machine.
    """
    name = worlds_here()[0] if name == AUTO else name
    if name not in WORLDS:
        raise unknown_name("switch", name, [*WORLDS, AUTO])
    world = WORLDS[name](program=program)
    world.check()
    return world
