"""A run in virtual time is the same again: with another compiler, order of sets, Python or processor."""

from __future__ import annotations

import builtins
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from command import ENTRY, inakit
from made_up_record import made_up_record, planner
from recorded_network import RecordedWorld

from inakit.experiments.bench.exactness import case
from inakit.experiments.run.faults import LossyLinks
from inakit.experiments.run.record import OF_THE_OCCASION, read_record
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.core.evaluate import evaluate
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.switch.fast.compile.generate import C_FOLDER, LIBRARY, generate
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.running_switch import PROGRAM
from inakit.topo.c_library import build
from inakit.topo.virtual import engine
from inakit.traffic.measure.comparison import planned_by_job

pytestmark = pytest.mark.compiler

CROSS, ELF_ARM64 = "aarch64-linux-gnu-gcc", 183
"""The cross compiler, and the number of its processor in the head of an ELF file."""
CHECKS = "undefined,address"
"""What the compiler checks at run time, so that nothing in the C is left to the machine."""
REPOSITORY = Path(__file__).resolve().parents[3]
FAULTS = "version: 1\nlinks:\n  - {link: all, drop: 1%}\n"
COMMAND = (
    "emulate", "--topo", "aro-figure1", "--switch", "virtual", "--planners", "aro", "--policies", "shadow-copy,atp",
    "--faults", "faults.yml", "--gradient-bytes", "12800", "--iterations", "2",
)  # fmt: skip


def record(folder: Path) -> str:
    """The text of the `run.json` of the newest run, without what differs from occasion to occasion."""
    return json.dumps(read_record(folder / "results" / "latest" / "run.json").repeatable())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The record of a run with the compiler and the options that the kit chooses."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "faults.yml").write_text(FAULTS)
    answer = inakit(*COMMAND, at=folder)
    assert answer.code == 0, answer
    return record(folder)


@pytest.mark.parametrize(
    ("compiler", "level"),
    [
        *(("gcc", "-O0"), ("clang", "-O3")),
        *(pytest.param(*each, marks=pytest.mark.long) for each in (("gcc", "-O3"), ("clang", "-O0"))),
    ],
)
def test_run_json_is_the_same_with_every_compiler(first: str, compiler: str, level: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "faults.yml").write_text(FAULTS)
    answer = inakit(*COMMAND, at=tmp_path, environment={"CC": compiler, "CFLAGS": level})
    assert answer.code == 0, answer
    assert record(tmp_path) == first


def test_run_json_is_the_same_for_every_order_of_sets(first: str, tmp_path: Path) -> None:
    (tmp_path / "faults.yml").write_text(FAULTS)
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", ENTRY, *COMMAND]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)
    assert record(tmp_path) == first


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    answer = inakit(*COMMAND[:-6], at=tmp_path, environment={"CC": "no-such-cc"})
    assert answer.code == 2
    assert "no-such-cc is not installed" in answer.error


def test_what_is_left_out_is_there_otherwise(first: str) -> None:
    kept = json.loads(first)
    assert not kept.keys() & set(OF_THE_OCCASION)
    assert {"verdict", "fabric", "planners", "configuration", "seed"} <= kept.keys()
    made = made_up_record({"aro": planner(verdict="VALID", setup_s=0.3)})
    assert made.repeatable()["planners"] == made_up_record({"aro": planner(verdict="VALID")}).repeatable()["planners"]


def compensated(values: Iterable[Any], start: Any = 0) -> Any:
    """The sum as Python 3.12 and later make it: sums of floats carry along what rounding loses (Neumaier)."""
    found = list(values)
    if not any(type(value) is float for value in found):
        return SUM(found, start)
    total, lost = float(start), 0.0
    for value in map(float, found):
        grown = total + value
        lost += (total - grown) + value if abs(total) >= abs(value) else (value - grown) + total
        total = grown
    return total + lost


SUM = builtins.sum


def figures(run: Run) -> str:
    """All planned and measured figures of a run, as text."""
    planned = {job: each.as_json() for job, each in planned_by_job(evaluate(run.problem, run.plan)).items()}
    return json.dumps([planned, run_plan(run, VirtualWorld()).results.repeatable()])


def test_figures_do_not_depend_on_how_python_sums_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """On links of mixed rates the sum of all workers' rates had another last digit from Python 3.12 on."""
    problem = build_problem(FabricChoice("fattree", capacity="10M:20M"), JobChoice(gradient_bytes=12_800, iterations=1))
    run = Run(with_headroom(problem, METHODS["atp"].plan(problem)))
    before = figures(run)
    monkeypatch.setattr(builtins, "sum", compensated)
    assert figures(run) == before


@pytest.fixture(scope="module")
def recorded() -> RecordedWorld:
    """A run on three switches with losses and collisions, recorded."""
    problem, plan = case("atp", 2, fragments=200, slots=8, rate_bps=16e6)
    lossy = {direction: LinkFaults(drop=0.02) for direction in problem.fabric.capacities_bps}
    world = RecordedWorld()
    outcome = run_plan(Run(Prepared(problem, plan), interferences=(LossyLinks(lossy),)), world)
    assert outcome.measured.exact
    assert outcome.measured.retransmissions > 0
    return world


@pytest.mark.parametrize(
    ("compiler", "options", "emulator"),
    [
        ("cc", ("-O0",), ()),
        pytest.param("gcc", ("-O1", f"-fsanitize={CHECKS}", "-fno-sanitize-recover=all"), (), marks=pytest.mark.long),
        (CROSS, ("-O1", "-static"), ("qemu-aarch64",)),
    ],
    ids=["here", "sanitized", "arm64"],
)
def test_engine_and_switch_give_the_same_packets(
    recorded: RecordedWorld, compiler: str, options: tuple[str, ...], emulator: tuple[str, ...], tmp_path: Path
) -> None:
    """Every packet that comes to a host, every link's counters and every byte of the switches' memory."""
    for program in (compiler, *emulator):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (packages gcc-aarch64-linux-gnu and qemu-user)")
    driver = built(tmp_path, compiler, options)
    command, environment = [*emulator, str(driver)], os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    script = bytes(recorded.recording.script)
    done = subprocess.run(command, input=script, capture_output=True, check=False, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    assert len(recorded.recording.arrivals) > 200 * 300
    assert done.stdout == recorded.recording.results


def test_what_runs_in_a_process_is_compiled_for_the_processor_of_cc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not shutil.which(CROSS):
        pytest.skip(f"{CROSS} is not installed (package gcc-aarch64-linux-gnu)")
    monkeypatch.setenv("CC", CROSS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = build("#include <stdlib.h>\nint one(void) { return abs(-1); }", LIBRARY)
    assert int.from_bytes(made.read_bytes()[18:20], "little") == ELF_ARM64


def built(folder: Path, compiler: str, options: tuple[str, ...]) -> Path:
    """The driver that does a recording again, with the engine and the switch's C, all made by `compiler`."""
    (folder / "switch.c").write_text(generate(read_program(PROGRAM)).source)
    text = Path(engine.__file__).with_name("engine.c")
    driver = Path(__file__).parents[1] / "support" / "replayed_network.c"
    command = [compiler, *options, "-w", "-fno-strict-aliasing", f'-DENGINE="{text}"', "-I", str(C_FOLDER)]
    subprocess.run([*command, "-o", "driver", str(driver), "switch.c"], cwd=folder, check=True)
    return folder / "driver"
