"""The fuzzer of packets is built, and its seeds go through it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest
from packets import PLAYER, fuzzer_of, write_seeds

from inakit.switch.program.bmv2_json import read_program
from inakit.switch.testing.random_packets import Draw

PROGRAMS = Path(__file__).parents[1] / "switch" / "programs"


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["parser", "lists"])
def test_seeds_go_through_the_fuzzer(name: str, tmp_path: Path) -> None:
    """With entries in hash tables and in lists; ASAN sees no packet that leaves the program's memory."""
    program = read_program(PROGRAMS / f"{name}.json")
    draw = Draw(program, Random(0))
    entries = draw.entries(8)
    draw.know(entries)
    write_seeds(draw, tmp_path / "seeds")
    player = fuzzer_of(program, entries, tmp_path, PLAYER)
    done = subprocess.run([player, *(tmp_path / "seeds").iterdir()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
