"""Everything a person can get wrong: one message with the value and the remedy, exit code 2, nothing left behind."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import AS_NOBODY, inakit, nothing_left

FABRIC = """
name: small
hosts: [w1, w2, ps]
switches:
  s1: {tier: 1, pipelines: [[1, 2], [3]]}
links:
  - {a: w1, b: s1, capacity: 20M}
  - {a: w2, b: s1, capacity: 20M}
  - {a: ps, b: s1, capacity: 20M}
"""

JOBS = "version: 1\njobs: [{workers: [w1, w2], servers: [ps], gradient_bytes: 25600}]"


@dataclass(frozen=True)
class Mistake:
    """A wrong command line or file, and what the message must say: the value, and the way out."""

    name: str
    arguments: tuple[str, ...]
    says: tuple[str, ...]
    fabric: str = FABRIC
    jobs: str = JOBS


ON_FILES = ("--topo", "fabric.yml", "--jobs", "jobs.yml")

MISTAKES = (
    Mistake("unknown planner", (*ON_FILES, "--planners", "aroo"), ("unknown planner 'aroo'", "did you mean 'aro'?")),
    Mistake("no planner", (*ON_FILES, "--planners", ","), ("no planner", "--planners aro")),
    Mistake("unknown fabric", ("--topo", "fatree"), ("unknown fabric 'fatree'", "did you mean 'fattree'?")),
    Mistake("unknown mode", (*ON_FILES, "--mode", "reply"), ("unknown mode 'reply'", "did you mean 'replay'?")),
    Mistake(
        "unknown switch", (*ON_FILES, "--switch", "bmv3"), ("unknown switch target 'bmv3'", "did you mean 'bmv2'?")
    ),
    Mistake(
        "unknown slot policy", (*ON_FILES, "--policy", "atq"), ("unknown slot policy 'atq'", "did you mean 'atp'?")
    ),
    Mistake(
        "a root in the network without a closed loop",
        (*ON_FILES, "--mode", "replay", "--policy", "switchml"),
        ("slot policy 'switchml' in mode 'replay'", "choose reliable"),
    ),
    Mistake("odd k", ("--k", "5"), ("5", "even")),
    Mistake("too many workers", ("--workers", "16"), ("16 workers", "choose 1 to 15")),
    Mistake("no worker left", ("--servers", "16"), ("16 parameter servers", "choose 1 to 15")),
    Mistake("gradient of no size", ("--gradient-bytes", "0"), ("0 bytes", "positive multiple of 4")),
    Mistake("no iteration", ("--iterations", "0"), ("0 iterations", "at least 1")),
    Mistake("rate without a meaning", ("--capacity", "20X"), ("20X", "20M")),
    Mistake("nine pipelines", ("--pipelines", "9"), ("9 pipelines", "1 to 8")),
    Mistake("INA on a switch that is not there", ("--ina", "core9"), ("core9", "core")),
    Mistake("no such file", ("--topo", "missing.yml"), ("missing.yml",)),
    Mistake(
        "unreachable PS",
        ON_FILES,
        ("'ps' cannot be reached from worker 'w1'", "add the missing links"),
        FABRIC.replace("links:", "  s2: {tier: 1, pipelines: [[1]]}\nlinks:").replace("{a: ps, b: s1", "{a: ps, b: s2"),
    ),
    Mistake(
        "a worker that is also the PS",
        ON_FILES,
        ("'ps' is a worker and the parameter server", "different hosts"),
        jobs=JOBS.replace("[w1, w2]", "[w1, ps]"),
    ),
    Mistake(
        "capacity 0",
        ON_FILES,
        ("capacity", "0", "greater than 0"),
        FABRIC.replace("w1, b: s1, capacity: 20M", "w1, b: s1, capacity: 0"),
    ),
    Mistake("a port in two pipelines", ON_FILES, ("s1", "port 2", "two pipelines"), FABRIC.replace("[3]", "[2, 3]")),
    Mistake("a typo in a fabric", ON_FILES, ("pipelins", "pipelines"), FABRIC.replace("pipelines", "pipelins")),
    Mistake("a typo in jobs", ON_FILES, ("worker", "workers"), jobs=JOBS.replace("workers", "workrs")),
    Mistake("not YAML", ON_FILES, ("fabric.yml",), "name: [small"),
    Mistake(
        "host of another fabric", ON_FILES, ("'w9' is not a host of fabric 'small'",), jobs=JOBS.replace("w2", "w9")
    ),
)


@pytest.mark.root
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named_and_nothing_is_left(mistake: Mistake, tmp_path: Path) -> None:
    (tmp_path / "fabric.yml").write_text(mistake.fabric)
    (tmp_path / "jobs.yml").write_text(mistake.jobs)
    with nothing_left(tmp_path):
        answer = inakit("emulate", "--planners", "lbmm", "--switch", "fast", *mistake.arguments, at=tmp_path)
    assert answer.code == 2, answer
    assert answer.error.startswith("inakit: ")
    assert answer.error.count("\n") == 1, answer.error
    for part in mistake.says:
        assert part in answer.error


def test_unknown_option_is_refused(tmp_path: Path) -> None:
    answer = inakit("emulate", "--planer", "aro", at=tmp_path)
    assert answer.code == 2
    assert "--planers" in answer.error or "--planner" in answer.error


# ---- what the machine lacks ---------------------------------------------------------------------


def programs_without(missing: str, folder: Path) -> dict[str, str]:
    """A PATH on which everything is found but `missing`."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).glob("*"):
            link = folder / program.name
            if program.name != missing and not link.exists() and not link.is_symlink():
                link.symlink_to(program)
    return {"PATH": str(folder)}


@pytest.mark.root
@pytest.mark.parametrize(
    ("switch", "missing", "remedy"),
    [
        ("fast", "clang", "apt install clang"),
        ("bmv2", "simple_switch", "vagrant up"),
        ("fast", "mnexec", "install the package 'mininet'"),
    ],
)
def test_a_missing_program_is_named(switch: str, missing: str, remedy: str, tmp_path: Path) -> None:
    programs, here = programs_without(missing, tmp_path / "bin"), tmp_path / "here"
    here.mkdir()
    with nothing_left(here):
        answer = inakit("emulate", "--switch", switch, "--planners", "lbmm", at=here, environment=programs)
    assert answer.code == 2, answer
    assert missing in answer.error
    assert remedy in answer.error


@pytest.mark.root
def test_tcpreplay_missing_is_named_before_the_network_is_built(tmp_path: Path) -> None:
    programs, here = programs_without("tcpreplay", tmp_path / "bin"), tmp_path / "here"
    here.mkdir()
    with nothing_left(here):
        answer = inakit("emulate", "--switch", "fast", "--mode", "replay", at=here, environment=programs)
    assert answer.code == 2, answer
    assert "tcpreplay is not installed" in answer.error


@pytest.mark.root
@pytest.mark.skipif(shutil.which("mnexec") is None, reason="needs Mininet (mnexec is not installed)")
def test_not_root_is_said_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    answer = inakit("emulate", "--planners", "lbmm", "--switch", "fast", at=tmp_path, entry=AS_NOBODY)
    assert answer.code == 2, answer
    assert "root" in answer.error
    assert "sudo" in answer.error
    assert not list(tmp_path.iterdir())
