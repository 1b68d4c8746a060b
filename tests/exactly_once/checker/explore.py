"""Explore the slot protocol.

    python tests/exactly_once/checker/explore.py [--faults 2] [--kinds loss,wipes] [SETTING ...]

Prints how many states up to so many faults lead to, and, in words, the shortest way to something that must not be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from events import KINDS, NETWORK_FAULTS
from moves import NetworkSpace
from small_networks import SETTINGS
from story import story

from inakit.experiments.state_explorer import Layer, StateExplorer
from inakit.switch.program.bmv2_json import read_program
from inakit.traffic.wire.packet_format import PROGRAM

COLUMNS = ("faults", "states", "transitions", "depth", "rounds", "seconds", "states/s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore as the arguments say, and return the exit code: 0 if there is nothing wrong."""
    options = parsed(arguments)
    print(f"{'setting':<14}", *(f"{name:>12}" for name in COLUMNS))
    bad = [explored_badly(name, options.faults, options.kinds) for name in options.setting or SETTINGS]
    return int(any(bad))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options. Ends the program if one of them is no setting or no kind of fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", nargs="*", help=f"{', '.join(SETTINGS)}; all of them if none is named")
    parser.add_argument("--faults", type=int, default=2, help="at most so many (default: %(default)s)")
    parser.add_argument(
        "--kinds", type=lambda text: text.split(","), default=NETWORK_FAULTS, help=f"some of {','.join(KINDS)}"
    )
    options = parser.parse_args(arguments)
    for what, names, known in (("setting", options.setting, SETTINGS), ("kind of fault", options.kinds, KINDS)):
        for name in names:
            if name not in known:
                parser.error(f"there is no {what} '{name}': choose from {', '.join(known)}")
    return options


def explored_badly(name: str, faults: int, kinds: Sequence[str]) -> bool:
    """Explore a setting, print what was visited, and return whether something is wrong."""
    space = NetworkSpace(read_program(PROGRAM), SETTINGS[name](), kinds)
    exploration = StateExplorer(space)
    found = exploration.run(faults)
    for layer in exploration.layers:
        print(f"{name:<14}", *(f"{text:>12}" for text in row(layer)))
    if found:
        print(f"{found.what}:\n{story(space, found.events)}")
    return found is not None


def row(layer: Layer) -> list[str]:
    """A layer as the cells of the printed table."""
    counts = (layer.faults, layer.states, layer.transitions, layer.depth, layer.rounds)
    return [*(f"{count:,}" for count in counts), f"{layer.seconds:.1f}", f"{layer.states / layer.seconds:,.0f}"]


if __name__ == "__main__":
    sys.exit(main())
