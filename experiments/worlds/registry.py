"""The worlds by name, from which the command line chooses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from inakit.experiments.worlds.auto import AUTO, worlds_here
from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.experiments.worlds.world import World
from inakit.planner.install.data_plane_program import INA, DataPlaneProgram
from inakit.topo.errors import unknown_name

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
