"""Fuzzes what the kit reads as text: whatever the bytes, there is a result or an error meant for a person.

    python tests/fuzz/texts.py json|stf|commands FOLDER [-max_total_time=600] [options of libFuzzer]

`json` changes BMv2 JSON at random places, reads it, and gives packets to the interpreter and to the compiler's
generator; `stf` and `commands` read text for a router. FOLDER keeps what was found. Needs the module atheris.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import atheris

with atheris.instrument_imports(include=["switch"]):
    from inakit.switch.control.simple_switch_cli import read_commands
    from inakit.switch.entries import SwitchEntries
    from inakit.switch.fast.compile.generate import generate
    from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
    from inakit.switch.program.bmv2_json import parse_program, read_program
    from inakit.switch.testing.stf_script import Add, SetDefault, StfNames, parse_script
    from inakit.topo.errors import InakitError

PROGRAMS = Path(__file__).parents[1] / "stf" / "programs"
PACKETS = (b"", b"\x00", bytes(range(64)), b"\xff" * 100)
ODD_VALUES: tuple[Any, ...] = (None, True, -1, 0, 1, 255, 1 << 40, 1.5, "", "x", "0x", "-0x1", "0xffff", [], {}, [[]])
SCRATCH = TemporaryDirectory()
COMMANDS = Path(SCRATCH.name) / "commands.txt"
ROUTER = read_program(PROGRAMS / "router.json")


def try_json(data: bytes) -> None:
    """Read a program, generate C for it, run it on a few packets."""
    program = parse_program(data, "fuzzed")
    for run in (lambda: generate(program), lambda: run_packets(InterpretedSwitch(program))):
        try:
            run()
        except InakitError:
            continue


def run_packets(switch: InterpretedSwitch) -> None:
    """Give some odd packets to a switch."""
    for packet in PACKETS:
        switch.inject(1, packet)


def try_stf(data: bytes) -> None:
    """Read a script, and take its names and values for those of the router."""
    names, switch = StfNames(ROUTER), InterpretedSwitch(ROUTER)
    for line in parse_script(data.decode(errors="replace")):
        match line.statement:
            case Add() as add:
                switch.install(SwitchEntries("s", (names.entry(add),)))
            case SetDefault() as given:
                switch.install(SwitchEntries("s", defaults=(names.default(given),)))


def try_commands(data: bytes) -> None:
    """Read commands, and install them."""
    COMMANDS.write_bytes(data)
    InterpretedSwitch(ROUTER).install(read_commands(COMMANDS, ROUTER))


def change_json(data: bytes, most: int, seed: int) -> bytes:
    """A document with one to three random changes: a place gets an odd value, is removed, or gets another's value."""
    chance = random.Random(seed)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = json.loads(chance.choice(seeds("json")))
    for _ in range(chance.randint(1, 3)):
        places = list(places_of(document))
        if not places:
            break
        container, key = chance.choice(places)
        change = chance.randrange(4)
        if change == 0:
            del container[key]
        elif change == 1:
            container[key] = chance.choice(ODD_VALUES)
        else:
            other, at = chance.choice(places)
            container[key] = json.loads(json.dumps(other.get(at) if isinstance(other, dict) else other[at : at + 1]))
    changed = json.dumps(document).encode()
    return changed if len(changed) <= most else data


def places_of(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document, as its container and its key or index."""
    keys = document.keys() if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in list(keys):
        yield document, key
        yield from places_of(document[key])


def seeds(kind: str) -> list[bytes]:
    """The inputs with which fuzzing begins."""
    return [path.read_bytes() for path in sorted(PROGRAMS.glob(f"*.{'json' if kind == 'json' else 'stf'}"))]


READERS: dict[str, Callable[[bytes], None]] = {"json": try_json, "stf": try_stf, "commands": try_commands}


def main() -> None:
    """Fuzz one of the readers."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(kind)):
        (folder / f"seed{number}").write_bytes(seed)

    def once(data: bytes) -> None:
        try:
            READERS[kind](data)
        except InakitError:
            return

    options = [sys.argv[0], *sys.argv[3:], "-max_len=200000", "-timeout=20", "-rss_limit_mb=4000", str(folder)]
    atheris.Setup(options, once, **({"custom_mutator": change_json} if kind == "json" else {}))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
