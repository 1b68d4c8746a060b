"""Fuzzes the C that is generated of a program, in a process: whatever packets come, it stays within its memory.

    python tests/fuzz/packets.py PROGRAM.json FOLDER [--commands FILE] [-max_total_time=600] [options of libFuzzer]

Tables have the entries of FILE (commands of simple_switch_CLI), or random ones; fuzzing begins with packets that the
parser goes through. FOLDER keeps what was found. Needs clang with libFuzzer and ASAN (apt install libclang-rt-14-dev).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from inakit.switch.control.simple_switch_cli import read_commands
from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.compile.generate import LIBRARY, GeneratedC, generate
from inakit.switch.fast.load.shared_state import SwitchState
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.random_packets import Draw

HERE = Path(__file__).parent
OPTIONS = ("-O1", "-g", "-w", "-fno-strict-aliasing", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")
FUZZER = ("clang", *OPTIONS, "-fsanitize=fuzzer,address,bounds,shift-base,null")
PLAYER = ("cc", *OPTIONS, "-fsanitize=address", str(HERE / "seeds.c"))
"""The compiler's command: for libFuzzer; and for a program that plays files, which needs no clang."""
SEEDS, PACKETS_PER_SEED = 200, 4


class Recorded:
    """Tables that keep what is put into them."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, bytes, bytes]] = []

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep entries."""
        self.entries += [(symbol, key, entry) for key, entry in entries]

    def remove(self, symbol: str, keys: Sequence[bytes]) -> None:
        """Forget entries."""
        self.entries = [each for each in self.entries if each[0] != symbol or each[1] not in keys]

    def items(self, symbol: str) -> Iterator[tuple[bytes, bytes]]:
        """The entries that were put into one table."""
        return ((key, entry) for name, key, entry in self.entries if name == symbol)


def compile_fuzzer(
    generated: GeneratedC, tables: Recorded, memory: bytes, scratch: Path, command: Sequence[str]
) -> Path:
    """The fuzzer's program in `scratch`, and the file with the state beside it."""
    symbols = list(generated.layout.fronts)
    source, state, result = scratch / "program.c", scratch / "state", scratch / "fuzzer"
    source.write_text(generated.source)
    records = (symbols.index(symbol).to_bytes(4, "little") + key + entry for symbol, key, entry in tables.entries)
    state.write_bytes(memory + b"".join(records))
    sizes = "".join(f"sizes_of_{symbol}, " for symbol in symbols)
    defined = [f'-DPROGRAM="{source}"', f'-DSTATE="{state}"', f"-DSIZES={sizes}"]
    headers = LIBRARY.include_options
    subprocess.run([*command, *defined, *headers, "-o", str(result), str(HERE / "packets.c")], check=True)
    return result


def fuzzer_of(program: Program, entries: SwitchEntries, scratch: Path, command: Sequence[str] = FUZZER) -> Path:
    """The program, in `scratch`, that fuzzes a switch with these entries."""
    generated, tables = generate(program), Recorded()
    memory = np.zeros(generated.layout.memory_bytes, np.uint8)
    SwitchState(generated.layout, memory, tables).install(entries)
    return compile_fuzzer(generated, tables, memory.tobytes(), scratch, command)


def write_seeds(draw: Draw, folder: Path) -> None:
    """Write the packets with which fuzzing begins."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(SEEDS):
        packets = draw.packets(PACKETS_PER_SEED)
        seed = b"".join(bytes([port]) + len(packet).to_bytes(2, "little") + packet for port, packet in packets)
        (folder / f"seed{number}").write_bytes(seed)


def main() -> None:
    """Compile the fuzzer for the program given, and run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commands", type=Path)
    given, options = parser.parse_known_args()
    program = read_program(given.program)
    draw = Draw(program, Random(0))
    entries = draw.entries(8) if given.commands is None else read_commands(given.commands, program)
    draw.know(entries)
    write_seeds(draw, given.folder)
    with TemporaryDirectory() as scratch:
        fuzzer = fuzzer_of(program, entries, Path(scratch))
        done = subprocess.run([str(fuzzer), *options, str(given.folder)], check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
