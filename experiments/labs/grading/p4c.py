"""P4 compiled to BMv2 JSON by the p4c of this machine: installed, as Docker's image, or in the kit's virtual machine.

An installed p4c runs in a sandbox: it reads its own files and a copy of the source, and has limits of time and memory.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import LIBRARIES, EndedError, run_confined
from inakit.experiments.labs.sandbox.untrusted import printable
from inakit.topo.errors import InputError, MachineError

BINARY, IMAGE = "p4c-bm2-ss", "p4lang/p4c"
OPTIONS = ("--std", "p4-16")
MOST_JSON = 16 * MIB
MOST_LINES, MOST_LETTERS = 12, 300
COMPILE_S = 10
ELSEWHERE_S = 60
ALLOWED = re.compile(r'^\s*#\s*include\s*(<(core|v1model)\.p4>|"(?P<own>[\w.-]+)")\s*(//.*)?$')
DIRECTIVE = re.compile(r"^\s*(#|%:|\?\?=)\s*(include|import|embed|pragma\s+GCC)")
SOURCES = "https://download.opensuse.org/repositories/home:/p4lang"
PACKAGES = {"debian 11": "Debian_11"} | {f"ubuntu {each}": f"xUbuntu_{each}" for each in ("20.04", "22.04")}
"""The systems for which p4lang is known to have packages (x86-64), and the folder of each."""


@dataclass(frozen=True)
class Compiler:
    """A p4c: `kind` is its kind of installation; `command` is the beginning of its command line."""

    kind: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.command)}"


def find_compiler() -> Compiler | None:
    """The first p4c of this machine: installed, as Docker's image, or in the kit's virtual machine while that runs."""
    if (path := shutil.which(BINARY)) is not None:
        return Compiler("installed", (path,))
    if shutil.which("docker") is not None and succeeds(["docker", "image", "inspect", IMAGE]):
        options = ("--rm", "--network=none", "--memory=1g", "--pids-limit=64", "--cap-drop=ALL")
        return Compiler("docker", ("docker", "run", *options))
    if shutil.which("vagrant") is not None and succeeds(["vagrant", "ssh", "-c", f"command -v {BINARY}"]):
        return Compiler("virtual machine", ("vagrant", "ssh", "-c"))
    return None


def succeeds(command: Sequence[str]) -> bool:
    """Whether a command succeeds within its time limit."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def needed_compiler() -> Compiler:
    """The p4c of this machine; `MachineError` says how to get one on this system."""
    found = find_compiler()
    if found is not None:
        return found
    raise MachineError(
        f"p4c is not installed, and P4 is compiled with it: {'; or '.join(ways_to_p4c())}; or hand in its JSON"
    )


def ways_to_p4c() -> list[str]:
    """The ways to get p4c on this system: p4lang's packages where they exist for it, Docker, the virtual machine."""
    ways = [f"with Docker: docker pull {IMAGE}", "in the kit's folder: vagrant up"]
    try:
        lines = [line.partition("=") for line in Path("/etc/os-release").read_text().splitlines()]
    except OSError:
        lines = []
    about = {key: value.strip("\"'") for key, _, value in lines}
    source = PACKAGES.get(f"{about.get('ID')} {about.get('VERSION_ID')}")
    if source is not None and platform.machine() == "x86_64":
        ways.insert(
            0, f"add the package source {SOURCES}/{source}/ (p4c's README has the commands), apt install p4lang-p4c"
        )
    return ways


def compile_p4(sources: Mapping[str, str], main: str, compiler: Compiler | None = None) -> str:
    """The BMv2 JSON that p4c compiles from the file `main` of `sources` (texts by name).

    Raises `InputError` with p4c's errors and their lines, `MachineError` without p4c.
    """
    check_includes(sources)
    compiler = compiler or needed_compiler()
    with tempfile.TemporaryDirectory(prefix="inakit-p4c-") as folder:
        scratch = Path(folder)
        for name, text in sources.items():
            (scratch / name).write_text(text)
        code, said = run_compiler(compiler, scratch, main)
        result = scratch / "out.json"
        if code != 0 or not result.is_file():
            raise InputError(f"{main} does not compile:\n{errors_of(said, scratch)}")
        if result.stat().st_size > MOST_JSON:
            raise InputError(f"{main}: the compiled program has more than {MOST_JSON // MIB} MiB")
        return result.read_text()


def check_includes(sources: Mapping[str, str]) -> None:
    """Raise `InputError` for sources that include anything but core.p4, v1model.p4 and each other."""
    for name, text in sources.items():
        joined = re.sub(r"(\\|\?\?/)[ \t]*\r?\n", "", text)
        for line in joined.splitlines():
            if not DIRECTIVE.match(re.sub(r"/\*.*?(\*/|$)", " ", line)):
                continue
            allowed = ALLOWED.match(line)
            if allowed is None or (allowed["own"] and allowed["own"] not in sources):
                raise InputError(f"{name}: '{line.strip()[:80]}': expected <core.p4>, <v1model.p4> or a file beside it")


def run_compiler(compiler: Compiler, folder: Path, main: str) -> tuple[int, str]:
    """Run p4c on a file in a folder; return its exit code and its messages."""
    if compiler.kind == "installed":
        return run_installed(compiler, folder, main)
    if compiler.kind == "docker":
        inner = [BINARY, *OPTIONS, "-o", "out.json", main]
        command = [*compiler.command, "-v", f"{folder}:/work", "-w", "/work", IMAGE, *inner]
        return run_elsewhere(command)[::2]
    inner_text = f"cat > /tmp/inakit.p4 && {BINARY} {' '.join(OPTIONS)} -o /dev/stdout /tmp/inakit.p4"
    code, written, said = run_elsewhere([*compiler.command, inner_text], (folder / main).read_text())
    (folder / "out.json").write_text(written)
    return code, said


def run_elsewhere(command: Sequence[str], text: str = "") -> tuple[int, str, str]:
    """Run a command of Docker or Vagrant on a text; return its exit code, output and messages."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, errors="replace", check=False, timeout=ELSEWHERE_S
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"the program does not compile: p4c took longer than {ELSEWHERE_S} s") from None
    return done.returncode, done.stdout, done.stderr


def run_installed(compiler: Compiler, folder: Path, main: str) -> tuple[int, str]:
    """Run the installed p4c in a sandbox."""
    binary = Path(compiler.command[0]).resolve()
    includes = (str(binary.parent / "p4include"), str(binary.parents[1] / "share" / "p4c"))
    readable = (*LIBRARIES, "/usr", "/bin", "/etc/alternatives", str(binary), *includes, "/proc/stat")
    limits = Limits(
        cpu_s=COMPILE_S, wall_s=3.0 * COMPILE_S, memory_bytes=1024 * MIB, written_bytes=MOST_JSON, open_files=256,
        readable=readable, writable=(str(folder),), programs=True,
    )  # fmt: skip
    try:
        return run_confined([str(binary), *OPTIONS, "-o", "out.json", main], limits, folder)
    except EndedError as ended:
        raise InputError(f"{main} does not compile: p4c was stopped, {ended}") from None


def errors_of(said: str, folder: Path) -> str:
    """The first errors of p4c, with file names without folders, and without warnings about its own libraries."""
    wanted = [
        line
        for line in said.splitlines()
        if line.strip() and not line.startswith("GC Warning") and "--Werror=overlimit" not in line
    ]
    lines = [printable(line.replace(f"{folder}/", "")[:MOST_LETTERS]) for line in wanted]
    more = f"\n... and {len(lines) - MOST_LINES} lines more" if len(lines) > MOST_LINES else ""
    return "\n".join(lines[:MOST_LINES]) + more if lines else "p4c failed without a message"
