"""Explore the slot protocol: `python tests/exactly_once/explore.py [--faults 2] [--kinds loss,wipes] [SETTING ...]`.

Prints how many states up to so many faults lead to, and in words the shortest way to something that must not be.
"""

from __future__ import annotations

import argparse
import sys

from events import KINDS, NETWORK_FAULTS
from exploration import Exploration
from small import SETTINGS
from space import Space
from story import story

from switch.read import read_program
from traffic.packet import PROGRAM

HEAD = f"{'setting':<14}{'faults':>7}{'states':>13}{'transitions':>14}{'depth':>7}{'rounds':>8}{'seconds':>9}"


def main() -> int:
    options = parsed()
    bad = [explored_badly(name, options.faults, options.kinds.split(",")) for name in options.setting]
    return int(any(bad))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", nargs="*", default=list(SETTINGS), help=", ".join(SETTINGS))
    parser.add_argument("--faults", type=int, default=2, help="at most so many")
    parser.add_argument("--kinds", default=",".join(NETWORK_FAULTS), help=", ".join(KINDS))
    options = parser.parse_args()
    unknown = [name for name in (*options.setting, *options.kinds.split(",")) if name not in {*SETTINGS, *KINDS}]
    if unknown:
        parser.error(f"no setting and no kind of fault is called '{unknown[0]}'")
    return options


def explored_badly(name: str, faults: int, kinds: list[str]) -> bool:
    space = Space(read_program(PROGRAM), SETTINGS[name](), kinds)
    exploration = Exploration(space)
    found = exploration.run(faults)
    print(HEAD)
    for layer in exploration.layers:
        print(f"{name:<14}{layer.faults:>7}{layer.states:>13,}{layer.transitions:>14,}{layer.depth:>7}"
              f"{layer.rounds:>8}{layer.seconds:>9.1f}")  # fmt: skip
    if found:
        print(f"{found.what}:\n{story(space, found.events)}")
    return found is not None


if __name__ == "__main__":
    sys.exit(main())
