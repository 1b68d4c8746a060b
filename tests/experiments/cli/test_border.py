"""Whatever the system refuses ends in one line that names the remedy, at the start, and leaves nothing behind.

The cases are the rows of `docs/border.md`.
"""

from __future__ import annotations

import ast
import errno
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import ENTRY, Answer, inakit, nothing_left

from inakit.experiments.cli.ending import run_to_its_end
from inakit.experiments.cli.surroundings import PLAIN
from inakit.topo.live.priority import free_processes

ROOT = Path(__file__).parents[3]
EMULATE = "emulate --topo aro-figure1 --planners lbmm --gradient-bytes 16000 --iterations 1"
FAST, BMV2, AUTO = (f"{EMULATE} --switch {name}" for name in ("fast", "bmv2", "auto"))
VIRTUAL = f"{EMULATE} --switch virtual"
WAY_ROUND = "or run in virtual time, which does not need it: --switch virtual"
PATCHED = """
import unittest.mock
unittest.mock.patch({name!r}, {new}).start()
"""


def patched(name: str, new: str) -> str:
    """Python code that puts the value of `new` in the place of an attribute of the kit."""
    return PATCHED.format(name=name, new=new)


def refusal(number: int) -> str:
    """Python code of a function that raises the error of the system of this number."""
    return f"unittest.mock.Mock(side_effect=OSError({number}, {os.strerror(number)!r}))"


@dataclass(frozen=True)
class Border:
    """Something that is refused: Python code that sees to it, a command, and what its line of error must say."""

    name: str
    refuse: str
    arguments: str
    says: tuple[str, ...]
    way_round: bool = True


OF_ROOT = (
    Border("no rights", "lacking.capabilities(*range(41))", FAST, ("lacks CAP_NET_ADMIN", "--cap-add=NET_ADMIN")),
    Border("CAP_NET_ADMIN", "lacking.capabilities(12)", FAST, ("lacks CAP_NET_ADMIN", "--cap-add=NET_ADMIN")),
    Border("CAP_NET_RAW", "lacking.capabilities(13)", FAST, ("lacks CAP_NET_RAW", "--cap-add=NET_RAW")),
    Border("CAP_SYS_ADMIN", "lacking.capabilities(21)", FAST, ("lacks CAP_SYS_ADMIN", "--cap-add=SYS_ADMIN")),
    Border("CAP_BPF", "lacking.capabilities(21, 39)", FAST, ("lacks CAP_BPF or CAP_SYS_ADMIN", "--cap-add=SYS_ADMIN")),
    Border("few files", "lacking.open_files(64)", FAST, ("can open 64 files", "ulimit -n ")),
    Border(
        "few processes",
        patched("inakit.topo.live.needs.free_processes", "lambda: 3"),
        FAST,
        ("can start 3 more (pids.max)", "--pids-limit"),
    ),
    Border(
        "/proc/sys read-only",
        "lacking.writing_to('/proc/sys')",
        FAST,
        ("Read-only file system: /proc/sys/net/ipv6/conf/", "mount -o remount,rw /proc/sys"),
    ),
    Border(
        "/sys read-only",
        "lacking.writing_to('/sys')",
        FAST,
        ("rps_cpus: Read-only file system", "mount -o remount,rw /sys"),
    ),
    Border("/run read-only", "lacking.writing_to('/run')", FAST, ("/run/inakit: Read-only", "make /run writable")),
    Border("no sh", "lacking.program('/bin/sh')", FAST, ("sh is not installed", "apt install dash")),
    Border("no bash", "lacking.program('/bin/bash')", FAST, ("bash is not installed", "apt install bash")),
    Border("no mnexec", "lacking.program('/usr/bin/mnexec')", FAST, ("mnexec is not installed", "package 'mininet'")),
    Border("no terminals", "lacking.program('/dev/ptmx')", FAST, ("no pseudo-terminal", "mount -t devpts")),
    Border(
        "no namespaces",
        patched("inakit.topo.live.needs.new_namespace", refusal(errno.EINVAL)),
        FAST,
        ("refuses network namespaces (Invalid argument)", "--privileged"),
    ),
    Border(
        "no veth",
        patched("inakit.topo.live.needs.create_pair", refusal(errno.EOPNOTSUPP)),
        FAST,
        ("refuses pairs of interfaces (veth) (Operation not supported)", "load the module veth"),
    ),
    Border(
        "no shaper",
        patched("inakit.topo.live.needs.shape", refusal(errno.ENOENT)),
        FAST,
        ("refuses shapers and queues (tc)", "sch_htb"),
    ),
    Border(
        "a kernel without eBPF",
        patched("inakit.switch.fast.load.kernel_needs.has_program_type", "lambda: False"),
        FAST,
        ("has no programs of tc (CONFIG_NET_CLS_BPF", "SWITCH=bmv2"),
    ),
    Border(
        "a rootless container",
        patched("inakit.switch.fast.load.kernel_needs.has_program_type", "lambda: False")
        + patched("inakit.switch.fast.load.kernel_needs.in_user_namespace", "lambda: True"),
        FAST,
        ("root of a user namespace", "run as the machine's"),
    ),
    Border(
        "libbpf missing",
        patched("ctypes.util.find_library", "lambda name: None"),
        FAST,
        ("libbpf is not installed", "apt install libbpf1"),
    ),
    Border("a bad clang", "bad('clang')", FAST, ("clang does not compile, not even a trial", "apt install clang")),
    Border(
        "no packet sockets",
        patched("inakit.topo.live.needs.socket.socket", refusal(errno.EAFNOSUPPORT)),
        FAST,
        ("refuses packet sockets (Address family not supported by protocol)", "CONFIG_PACKET"),
    ),
    Border("network of a course", "lacking.capabilities(12)", "switch network t.json", ("lacks CAP_NET_ADMIN",), False),
    Border("no ip", "lacking.program('/bin/ip')", "switch network t.json", ("apt install iproute2",), False),
    Border("cache is noexec", "cache('noexec')", VIRTUAL, ("cannot be loaded", "not mounted noexec"), False),
    Border("cache is full", "cache()", VIRTUAL, ("No space left on device", "free some space"), False),
    Border("TMPDIR is full", "temporary()", VIRTUAL, ("No space left on device", "set TMPDIR to"), False),
)
OF_ANYBODY = (
    Border("no compiler", "programs()", VIRTUAL, ("cc or gcc or clang is not installed", "apt install clang")),
    Border("a bad compiler", "bad('cc')", VIRTUAL, ("cc does not compile, not even a trial (cc: error: no)", "PATH")),
    Border("not a program", "bad('cc', 'x')", VIRTUAL, ("cc cannot be started (Exec format error)", "PATH")),
    Border("HOME read-only", "home('/proc')", VIRTUAL, ("/proc/.cache", "XDG_CACHE_HOME")),
    Border(
        "no home",
        "home(None)" + patched("pwd.getpwuid", "unittest.mock.Mock(side_effect=KeyError)"),
        VIRTUAL,
        ("without a home folder", "XDG_CACHE_HOME"),
    ),
    Border("memory", "lacking.memory(8 << 20)", "plan --topo fattree --k 48", ("out of memory", "ulimit -v")),
    Border(
        "folder is gone", "gone()", "plan", ("the folder in which this command was started no longer exists", "cd to")
    ),
    Border("output full", "lacking.streams(1, instead='/dev/full')", "plan", ("No space left", "another file")),
    Border("help full", "lacking.streams(1, instead='/dev/full')", "--help", ("No space left", "another file")),
    Border("empty planner", "", "plan --planners ''", ("--planners is empty", "omit it")),
    Border("empty fabric", "", "plan --topo ''", ("--topo is empty", "omit it")),
    Border("empty results", "", f"{VIRTUAL} --results=", ("--results is empty", "omit it")),
    Border("empty file", "", "plan --jobs ''", ("--jobs is empty", "omit it")),
    Border("empty output", "", "plan --output ''", ("--output is empty", "omit it")),
    Border("empty argument", "", "labs start ''", ("an argument is empty", "omit it")),
    Border("empty study", "", "study run ''", ("an argument is empty", "omit it")),
)
HELP = """
import os, shutil, stat
from pathlib import Path
import lacking
os.environ["XDG_CACHE_HOME"] = str(Path.cwd() / ".cache")

def programs():
    os.environ["PATH"] = "/nowhere"

def bad(name, text="#!/bin/sh\\necho 'cc: error: no' >&2\\nexit 1\\n"):
    Path(".bin").mkdir()
    Path(".bin", name).write_text(text)
    Path(".bin", name).chmod(0o755)
    os.environ["PATH"] = f"{Path.cwd() / '.bin'}:{os.environ['PATH']}"

def home(path):
    os.environ.pop("HOME")
    os.environ.pop("XDG_CACHE_HOME")
    if path:
        os.environ["HOME"] = path

def cache(*options):
    lacking.disk(os.environ["XDG_CACHE_HOME"], *options)

def temporary():
    os.environ["TMPDIR"] = str(Path.cwd() / ".temporary")
    lacking.disk(os.environ["TMPDIR"])

def gone():
    Path(".gone").mkdir()
    os.chdir(".gone")
    Path("../.gone").rmdir()
"""
"""What `refuse` may call. Everything that it makes has a name that begins with a dot."""


def refused(border: Border, at: Path) -> Answer:
    """The answer of the command; nothing but what the test itself has made may be left."""
    arguments = [each.strip("'") for each in border.arguments.split()]
    with nothing_left():
        answer = inakit(*arguments, at=at, entry=f"{HELP}\n{border.refuse}\n{ENTRY}")
    left = [path for path in at.rglob("*") if not path.relative_to(at).parts[0].startswith(".")]
    assert left == []
    return answer


def judge(border: Border, answer: Answer) -> None:
    assert answer.code == 2, answer
    assert answer.error.startswith("inakit: ")
    assert answer.error.count("\n") == 1, answer.error
    assert "Traceback" not in answer.error + answer.output
    for part in border.says:
        assert part in answer.error


@pytest.mark.root
@pytest.mark.beside
@pytest.mark.parametrize("border", OF_ROOT, ids=lambda border: border.name)
def test_what_a_network_needs_is_asked_for_at_the_start(border: Border, tmp_path: Path) -> None:
    answer = refused(border, tmp_path)
    judge(border, answer)
    assert (WAY_ROUND in answer.error) == border.way_round


@pytest.mark.compiler
@pytest.mark.parametrize("border", OF_ANYBODY, ids=lambda border: border.name)
def test_a_refusal_is_one_line_with_its_remedy(border: Border, tmp_path: Path) -> None:
    judge(border, refused(border, tmp_path))


@pytest.mark.root
@pytest.mark.beside
def test_auto_goes_round_what_is_refused_and_says_why(tmp_path: Path) -> None:
    answer = inakit(*AUTO.split(), at=tmp_path, entry=f"import lacking; lacking.capabilities(12)\n{ENTRY}")
    assert answer.code == 0, answer
    assert answer.output.startswith("switch auto selected virtual, because fast cannot run (root lacks CAP_NET_ADMIN")


@pytest.mark.parametrize("name", ["random", "rich"])
def test_a_module_of_the_users_in_the_way_is_named(name: str, tmp_path: Path) -> None:
    own = tmp_path / f"{name}.py"
    own.write_text("x = 1\n")
    code = f"import sys; sys.path.append({str(ROOT)!r}); {ENTRY}"
    done = subprocess.run(
        [sys.executable, "-c", code, "plan"],
        capture_output=True,
        text=True,
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stderr.startswith(f"inakit: {own}: this module shadows ")
    assert f"'{name}': rename it, or start inakit from another folder" in done.stderr
    assert done.stderr.count("\n") == 1


def test_modules_of_the_users_with_the_names_of_the_kits_folders_are_not_in_the_way(tmp_path: Path) -> None:
    for name in ("experiments", "labs", "p4", "planner", "switch", "topo", "traffic"):
        tmp_path.joinpath(f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    answer = inakit("plan", "--planners", "atp", at=tmp_path, entry=f"import sys; sys.path.insert(0, '.'); {ENTRY}")
    assert answer.code == 0, answer


@pytest.mark.compiler
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_that_lacks_letters_gets_others(encoding: str, tmp_path: Path) -> None:
    narrow = f"import sys; sys.stdout.reconfigure(encoding={encoding!r}, errors='strict')\n"
    answer = inakit(
        *VIRTUAL.split(), "--details", at=tmp_path, entry=narrow + ENTRY, environment={"TERM": "dumb", "COLUMNS": "40"}
    )
    assert answer.code == 0, answer
    assert answer.error == ""
    assert answer.output.isascii()
    assert " > " in answer.output  # the arrow of a link


@pytest.mark.parametrize("columns", [20, 40, 60])
@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb"}, {"TERM": ""}], ids=str)
def test_tables_stay_readable_on_a_narrow_terminal(columns: int, environment: dict[str, str], tmp_path: Path) -> None:
    """Nothing is cut: each figure is there, after the heading of its column where the table does not fit."""
    answer = inakit(
        "plan", "--topo", "aro-figure1", "--details", at=tmp_path, environment={"COLUMNS": str(columns)} | environment
    )
    assert answer.code == 0, answer
    assert "…" not in answer.output
    *tables, _sentence = answer.output.splitlines()
    assert [line for line in tables if len(line) > columns] == []
    for whole in ("aggregator", "pipeline", "gradients", "(Mbit/s)"):
        assert whole in " ".join(answer.output.split()), answer.output


@pytest.mark.parametrize(("letter", "plain"), PLAIN.items())
def test_letters_that_resemble_stand_for_others(letter: str, plain: str) -> None:
    assert f"a {letter} b".encode("ascii", "inakit-plain").decode() == f"a {plain} b"


def test_output_that_is_closed_is_no_error() -> None:
    command = f"exec {sys.executable} -c '{ENTRY}' plan >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_that_nobody_reads_ends_without_a_word(tmp_path: Path) -> None:
    pipe = "import os\nends = os.pipe(); os.dup2(ends[1], 1); os.close(ends[0]); os.close(ends[1])\n"
    for arguments in (["plan"], ["planners"], ["--help"]):
        answer = inakit(*arguments, at=tmp_path, entry=pipe + ENTRY)
        assert answer.error == ""


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_no_error_of_the_system_is_a_traceback(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file's name, what the system says of it, and what to do, or where the traceback is."""
    line = fails(OSError(number, os.strerror(number), "some/file"), tmp_path, monkeypatch, capsys)
    assert "some/file" in line
    assert os.strerror(number) in line


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "out of memory"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u"),
        (ValueError("a\nb"), "ValueError: a b (test_border.py:"),
        (ImportError("no module 'x'"), "ImportError: no module 'x'"),
    ],
)
def test_other_errors_are_one_line(
    error: Exception, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in fails(error, tmp_path, monkeypatch, capsys)


def test_the_traceback_of_what_nobody_foresaw_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = fails(ValueError("this"), tmp_path, monkeypatch, capsys)
    [kept] = tmp_path.glob("inakit-traceback-*.txt")
    assert f"please report it, with the traceback, which is in {kept}" in line
    assert "ValueError: this" in kept.read_text()
    assert "in fail\n" in kept.read_text()
    monkeypatch.setenv("INAKIT_DEBUG", "1")
    with pytest.raises(SystemExit):
        run_to_its_end()
    assert "Traceback" in capsys.readouterr().err


def fails(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed when a command ends in `error`: a line, with exit code 2."""

    def fail() -> None:
        raise error

    monkeypatch.setattr("inakit.experiments.cli.app.app", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        run_to_its_end()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("inakit: ")
    assert said.count("\n") == 1
    assert "Traceback (most" not in said
    return said


def test_a_limit_of_processes_is_that_of_the_narrowest_group(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (groups / "outer" / "own").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/outer/own\n")
    for folder, limit, now in (("outer", "100", "90"), ("outer/own", "max", "5")):
        (groups / folder / "pids.max").write_text(f"{limit}\n")
        (groups / folder / "pids.current").write_text(f"{now}\n")
    assert free_processes(proc, groups) == 10
    (groups / "outer" / "pids.max").write_text("max\n")
    assert free_processes(proc, groups) is None


def test_no_time_is_taken_from_a_clock_that_may_go_backwards() -> None:
    """The clock of the day names folders and dates; and controllers, pcaps and PTF are told it by the server."""
    told = {"switch/control/digests.py", "switch/control/p4runtime_entries.py"}
    found = [
        str(path)
        for package in ("experiments", "planner", "switch", "topo", "traffic")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.relative_to(ROOT).parts[:2] not in {("switch", "server"), ("switch", "testing")}
        if str(path.relative_to(ROOT)) not in told
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"time.time", "time.time_ns"}
    ]
    assert found == []
