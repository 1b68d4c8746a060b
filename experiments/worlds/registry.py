"""The worlds by name, from which the command line chooses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from experiments.worlds.in_process import InProcessWorld
from experiments.worlds.virtual import VirtualWorld
from experiments.worlds.world import World
from switch.targets import choose_target
from topo.errors import unknown_name


def emulated(name: str) -> World:
    """Emulated networks on a switch target. Raises `MachineError` where Mininet is missing."""
    from experiments.worlds.emulated import EmulatedWorld  # noqa: PLC0415, needs Mininet

    return EmulatedWorld(name)


WORLDS: dict[str, Callable[[], World]] = {
    "process": InProcessWorld,
    "virtual": VirtualWorld,
    "fast": partial(emulated, "fast"),
    "bmv2": partial(emulated, "bmv2"),
}


def timed_world(name: str) -> World:
    """The world of that name, whose rates and times are those of a network. Raises what `find_world` raises."""
    timed = [each for each in (*WORLDS, "auto") if each != InProcessWorld.name]
    if name not in timed:
        raise unknown_name("switch", name, timed)
    return find_world(name)


def find_world(name: str) -> World:
    """The world of that name, checked to run here; `auto` stands for the default switch target.

    Raises `InputError` for an unknown name, `MachineError` for a world that cannot run on this machine.
    """
    name = choose_target(name).name if name == "auto" else name
    if name not in WORLDS:
        raise unknown_name("switch", name, [*WORLDS, "auto"])
    world = WORLDS[name]()
    world.check()
    return world
