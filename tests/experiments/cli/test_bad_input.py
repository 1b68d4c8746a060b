"""Every mistake of a user gets one message with the value and the remedy, ends in exit code 2, and leaves nothing."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import AS_NOBODY, PRIVATE, inakit, nothing_left

from inakit.experiments.cli.main import main

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
    Mistake("unknown switch", (*ON_FILES, "--switch", "bmv3"), ("unknown switch 'bmv3'", "did you mean 'bmv2'?")),
    Mistake(
        "unknown slot policy", (*ON_FILES, "--policies", "atq"), ("unknown slot policy 'atq'", "did you mean 'atp'?")
    ),
    Mistake(
        "a root in the network without a closed loop",
        (*ON_FILES, "--mode", "replay", "--policies", "switchml"),
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
@pytest.mark.beside
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


BAD_COMMANDS = """
plan --topo folder | unknown fabric 'folder'
plan --topo empty.yml | empty.yml line 1: expected the keys name, hosts, switches, links
plan --topo bytes.yml | bytes.yml: not text in UTF-8
plan --topo empty.graphml | empty.graphml: not GraphML
plan --topo bytes.graphml | bytes.graphml: not text in UTF-8
plan --topo folder.yml | folder.yml: Is a directory
plan --topo units:nothing=2 | nothing
plan --topo leafspine --leaves -1 | -1
plan --k -2 | -2
plan --k 100000 | 100000
plan --jobs folder | folder: Is a directory: name a file of jobs or plans in it
plan --jobs bytes.yml | bytes.yml: not text in UTF-8
plan --jobs broken.json | broken.json: not JSON: Expecting value: line 1 column 11
plan --workers -1 | -1 workers: fabric 'fattree-4' has 15 hosts besides
plan --servers 0 | 0 parameter servers
plan --gradient-bytes -4 | -4 bytes; a positive multiple of 4
plan --gradient-bytes 3 | 3 bytes; a positive multiple of 4
plan --capacity nan | 'nan': expected a rate in bit/s
plan --capacity 1e999 | '1e999': expected a rate in bit/s
plan --capacity 30M:10M | from 3e+07 to 1e+07 bit/s
plan --scale nan | scale 'nan': expected a fraction
plan --scale 0 | 0
plan --scale 1/0 | scale '1/0': expected a fraction
plan --ina 2 | 2
plan --ina nan | nan
plan --pipelines 0 | 0 pipelines
plan --model nomodel | nomodel
plan --planners aro,nope | unknown planner 'nope'
plan --output empty.yml | empty.yml
plan --output empty.yml/below | empty.yml
topo --output empty.yml/below/x | empty.yml
topo --planners nope | unknown planner 'nope'
jobs --output folder | folder already exists
jobs --iterations 0 | 0 iterations; at least 1
check empty.json empty.yml empty.yml | empty.yml
check none none none | none
reproduce nopaper fig1 | nopaper
reproduce aro nofig | nofig
reproduce aro fig7 --results empty.yml | empty.yml: File exists: it is a file; choose a folder
design --ports 0 | 0
design --capacity x | 'x': expected a rate
design --time-limit nan | --time-limit nan: expected a time
exactness --levels 9 | --levels 9: numbers from
exactness --levels x | x
exactness --policies nope | nope
exactness --conditions nope | nope
exactness --switch nope | unknown switch 'nope'
dump leaf1 --run zzzz | network
top --interval nan | --interval nan: expected a time
capture leaf1 3 --output x.pcap --run zzzz | network
switch stf x.p4 test.stf | x.p4
switch stf broken.json test.stf | broken.json: not JSON line 1: Expecting value
switch stf empty.json test.stf | empty.json: empty; the JSON that p4c-bm2-ss writes is expected
switch stf folder test.stf | folder: is a directory
switch compare x.p4 --between fast,interpreted | x.p4
switch compare broken.json --between fast | --between fast: expected two
switch replay x.p4 --in 1:bytes.yml --output out | x.p4
switch replay x.p4 --in x --output out | --in x: expected PORT:FILE.pcap
"""
"""A command line, and what its one line of error must say."""


@pytest.mark.parametrize("case", BAD_COMMANDS.strip().splitlines())
def test_bad_input_to_any_command_is_one_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, _, says = case.partition(" | ")
    for name in ("folder", "folder.yml"):
        (tmp_path / name).mkdir()
    for name in ("empty.yml", "empty.json", "empty.graphml", "x.p4", "test.stf"):
        (tmp_path / name).write_text("")
    for name in ("bytes.yml", "bytes.graphml"):
        (tmp_path / name).write_bytes(b"\xff\x00\xfe" * 99)
    (tmp_path / "broken.json").write_text('{"a": [1, }')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["inakit", *arguments.split()])
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("inakit: ")
    assert says in said
    assert said.count("\n") == 1
    assert set(tmp_path.rglob("*")) == before


def test_unknown_option_is_refused(tmp_path: Path) -> None:
    answer = inakit("emulate", "--planer", "aro", at=tmp_path)
    assert answer.code == 2
    assert "--planers" in answer.error or "--planners" in answer.error


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
@pytest.mark.beside
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
@pytest.mark.beside
def test_tcpreplay_missing_is_named_before_the_network_is_built(tmp_path: Path) -> None:
    programs, here = programs_without("tcpreplay", tmp_path / "bin"), tmp_path / "here"
    here.mkdir()
    with nothing_left(here):
        answer = inakit("emulate", "--switch", "fast", "--mode", "replay", at=here, environment=programs)
    assert answer.code == 2, answer
    assert "tcpreplay is not installed" in answer.error


@pytest.mark.root
@pytest.mark.beside
@pytest.mark.skipif(shutil.which("mnexec") is None, reason="needs Mininet (mnexec is not installed)")
@pytest.mark.skipif(PRIVATE, reason="another user may not read the project where it is")
def test_not_root_is_said_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    answer = inakit("emulate", "--planners", "lbmm", "--switch", "fast", at=tmp_path, entry=AS_NOBODY)
    assert answer.code == 2, answer
    assert "root" in answer.error
    assert "sudo" in answer.error
    assert not list(tmp_path.iterdir())
