"""The worlds by name, and what `auto` stands for here: the reference, else the embedded switch, else virtual time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rich.console import Console

from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.experiments.worlds.world import World
from inakit.planner.install.ina_program import INA, DataPlaneProgram
from inakit.switch.targets import TARGETS
from inakit.topo.errors import unknown_name

AUTO = "auto"
OTHERS = {
    "bmv2": "--switch fast gives the same packets, 32 to 105 times as many a second (`inakit bench`)",
    "fast": "bmv2, the reference, is 32 to 105 times slower (`inakit bench`)",
    "virtual": "time is the network's own, and links have the described rates",
}
"""A remark on each world, which compares it with the others."""


def worlds_here() -> list[str]:
    """The names of the worlds that this machine can emulate, the reference first; if there is none, virtual time's."""
    return [name for name in TARGETS if EmulatedWorld(name).missing() is None] or [VirtualWorld.name]


def print_choice(console: Console, switch: str, world: str) -> None:
    """Print which world "auto" took, and why; of a world that the user named, only that its time is its own."""
    if switch == AUTO:
        console.print(f"{why(world)}; {OTHERS[world]}", highlight=False, soft_wrap=True)
    elif world == VirtualWorld.name:
        console.print(f"{world}: {OTHERS[world]}", highlight=False)


def why(world: str) -> str:
    """The reason for which "auto" took this world, in words."""
    if world == "bmv2":
        return "switch auto took bmv2, which is installed"
    better = "bmv2" if world == "fast" else "fast"
    return f"switch auto took {world}, as {better} cannot run ({EmulatedWorld(better).missing()})"


WORLDS: dict[str, Callable[..., World]] = {
    "virtual": VirtualWorld,
    "fast": partial(EmulatedWorld, "fast"),
    "bmv2": partial(EmulatedWorld, "bmv2"),
}


def is_virtual(name: str) -> bool:
    """Whether it is virtual time that the name stands for on this machine."""
    return (worlds_here()[0] if name == AUTO else name) == VirtualWorld.name


def find_world(name: str, program: DataPlaneProgram = INA) -> World:
    """The world of that name with switches of this program, checked to run here.

    `auto` stands for the first that `worlds_here` names. Raises `InputError` for an unknown name, `MachineError` for a
    world that cannot run on this machine.
    """
    name = worlds_here()[0] if name == AUTO else name
    if name not in WORLDS:
        raise unknown_name("switch", name, [*WORLDS, AUTO])
    world = WORLDS[name](program=program)
    world.check()
    return world
