"""Random programs on target fast: the kernel takes each that the compiler takes; it does what the interpreter does.

The kernel's verifier judges what clang makes of the C, and each clang makes something else of it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from random_copies import COPIES, RandomCopies
from random_programs import RandomProgram, SettledProgram
from random_rows import RandomRows
from same_switches import shown_when_wrong
from tiers import long_unless

from inakit.switch.fast.compile.generate import EBPF, generate
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import load
from inakit.switch.fast.load.libbpf import verified_instructions
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of, read_program
from inakit.switch.program.program import Program
from inakit.switch.running_switch import PROGRAM
from inakit.switch.testing.random_packets import Draw
from inakit.switch.testing.target_comparison import Outcome, compare
from inakit.topo.c_library import build

MOST_INSTRUCTIONS = 400_000
"""Of the 1,000,000 that the verifier walks: other kernels walk more of the same program."""


def random_program(seed: int) -> Program:
    """The program of this seed; every fourth one is large, every third one copies packets, as many have rows."""
    made = (RandomProgram, RandomRows, RandomCopies)[seed % 3]
    return program_of(made(seed, size=14 if seed % 4 == 3 else 6).document)


def compilers() -> list[str]:
    """Every clang of this machine, the one called `clang` first."""
    folders = [Path(name) for name in os.environ["PATH"].split(os.pathsep) if os.access(name, os.R_OK | os.X_OK)]
    found = {
        file.name for folder in folders for file in folder.glob("clang-*") if re.fullmatch(r"clang-\d+", file.name)
    }
    return ["clang", *sorted(found)]


def verified(program: Program, compiler: str = "clang") -> int:
    """How many instructions the verifier walks through the program; `RunError` if it refuses it."""
    loaded = load(build(generate(program).source, replace(EBPF, programs=(compiler,))))
    try:
        return verified_instructions(loaded.program_fd("from_port"))
    finally:
        loaded.close()


@pytest.mark.root
@pytest.mark.parametrize("seed", [long_unless(seed < 12, seed) for seed in range(24)])
def test_the_kernel_takes_a_random_program(seed: int) -> None:
    assert verified(random_program(seed)) < MOST_INSTRUCTIONS


@pytest.mark.root
@pytest.mark.long
@pytest.mark.parametrize("compiler", compilers())
def test_the_kernel_takes_random_programs_of_every_compiler(compiler: str) -> None:
    """The long form: the kit's own programs and 400 random ones, for each clang that is installed."""
    for path in sorted(PROGRAM.parent.glob("*.json")):
        assert verified(read_program(path), compiler) < MOST_INSTRUCTIONS, path.name
    for seed in range(400):
        assert verified(random_program(seed), compiler) < MOST_INSTRUCTIONS, f"seed {seed}"


@pytest.mark.compiler
@pytest.mark.parametrize("seed", [long_unless(seed < 10, seed) for seed in range(400)])
def test_a_random_program_does_what_it_does_interpreted(seed: int) -> None:
    program = random_program(seed)
    draw = Draw(program, Random(seed))
    entries = draw.entries(8)
    draw.know(entries)
    model, switch = InterpretedSwitch(program), InProcessSwitch(program)
    for each in (model, switch):
        each.install(entries)
        each.install(COPIES)
    with shown_when_wrong(switch.source):
        for port, packet in draw.packets(60):
            assert switch.inject(port, packet) == model.inject(port, packet), (port, packet.hex())
            assert switch.state.read_digests() == model.state.read_digests()
        for register in program.registers:
            assert switch.read_register(register).tolist() == model.read_register(register).tolist()
        for counter in program.counters:
            assert np.array_equal(switch.read_counter(counter), model.read_counter(counter))


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.parametrize("seed", [long_unless(seed < 4, seed) for seed in range(60)])
def test_a_random_program_does_in_the_kernel_what_it_does_on_bmv2(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "random.json"
    path.write_text(json.dumps(SettledProgram(seed).document))
    result = compare(path, ("kernel", "bmv2"), 64, seed=seed, headers=("ethernet", "test"))
    assert result.outcome is Outcome.IDENTICAL, result.difference
    assert result.left > 0
