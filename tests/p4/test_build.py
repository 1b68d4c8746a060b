"""The committed programs are what the compiler makes of the committed sources."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from p4c_version import NEEDS_COMMITTED_P4C, NEEDS_P4C
from same_switches import same_packets

from inakit.switch.program.bmv2_json import read_program

P4 = Path(__file__).resolve().parents[2] / "p4"
PROGRAMS = pytest.mark.parametrize("program", ["ina", "circuit"])
REMEDY = "the P4 sources and p4/build/ disagree: run `make p4`, which needs p4c-bm2-ss"


def recorded_hashes(program: str) -> dict[str, str]:
    lines = (P4 / "build" / f"{program}.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def sources(name: str) -> set[str]:
    """The source `name` and those of this folder that it includes."""
    included = re.findall(r'^#include "(.+)"', (P4 / name).read_text(), re.MULTILINE)
    return {name}.union(*(sources(other) for other in included))


def without_positions(program: Any) -> Any:
    """The compiled program without what depends on the compiler's build and on line numbers."""
    if isinstance(program, dict):
        return {k: without_positions(v) for k, v in program.items() if k not in ("source_info", "__meta__", "program")}
    if isinstance(program, list):
        return [without_positions(item) for item in program]
    return program


@PROGRAMS
def test_hashes_are_recorded_of_all_sources_and_of_the_program(program: str) -> None:
    compiled = {
        f"build/{program}.json",
        *(f"build/{path.name}" for path in (P4 / "build").glob(f"{program}.p4info.txt")),
    }
    assert set(recorded_hashes(program)) == sources(f"{program}.p4") | compiled


@PROGRAMS
def test_the_committed_program_belongs_to_the_committed_sources(program: str) -> None:
    recorded = recorded_hashes(program)
    actual = {name: hashlib.sha256((P4 / name).read_bytes()).hexdigest() for name in recorded}
    assert actual == recorded, REMEDY


@PROGRAMS
@NEEDS_COMMITTED_P4C
def test_compiling_again_gives_the_committed_program(program: str, tmp_path: Path) -> None:
    compiled = tmp_path / f"{program}.json"
    subprocess.run(["p4c-bm2-ss", "-o", compiled, f"{program}.p4"], cwd=P4, check=True, timeout=600)
    committed = json.loads((P4 / "build" / f"{program}.json").read_text())
    assert without_positions(json.loads(compiled.read_text())) == without_positions(committed), REMEDY


@NEEDS_P4C
@pytest.mark.parametrize(("program", "source"), [("ina", "ina"), ("circuit", "circuit"), ("ina_hw", "ina_hw/v1model")])
def test_what_any_p4c_makes_of_a_program_sends_the_same(program: str, source: str, tmp_path: Path) -> None:
    compiled = tmp_path / f"{program}.json"
    subprocess.run(["p4c-bm2-ss", "-o", compiled, f"{source}.p4"], cwd=P4, check=True, timeout=600)
    same_packets(read_program(P4 / "build" / f"{program}.json"), read_program(compiled))


@NEEDS_COMMITTED_P4C
def test_compiling_again_gives_the_committed_p4info(tmp_path: Path) -> None:
    info = tmp_path / "ina.p4info.txt"
    command = ["p4c-bm2-ss", "--p4runtime-files", str(info), "-o", str(tmp_path / "ina.json"), "ina.p4"]
    subprocess.run(command, cwd=P4, check=True, timeout=600)
    assert info.read_text() == (P4 / "build" / "ina.p4info.txt").read_text(), REMEDY
