"""What `--switch auto` stands for here: the reference, else the embedded switch, else virtual time; and why."""

from __future__ import annotations

from rich.console import Console

from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.switch.targets import TARGETS

AUTO = "auto"
OTHERS = {
    "bmv2": "--switch fast gives the same packets, 32 to 105 times as many a second (`inakit bench`)",
    "fast": "bmv2, the reference, is 32 to 105 times slower (`inakit bench`)",
    "virtual": "time is the network's own, and links have the described rates",
}
"""By world, what else there is to know of it beside the others."""


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
