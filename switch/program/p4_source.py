"""P4 source compiled to BMv2 JSON by the p4c of this machine, and kept; and how this system gets p4c.

p4c is installed, an image of Docker or podman, or in the kit's virtual machine. A result is kept in the cache, under
the hash of the source, of the files that it includes, and of the compiler.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inakit.switch.program.bmv2_json import COMPILER, recorded, sha256
from inakit.topo.c_library import cache_directory
from inakit.topo.errors import InputError, MachineError, writing
from inakit.topo.files.reader import write_whole

IMAGE = "p4lang/p4c"
OPTIONS = ("--std", "p4-16")
IMAGE_RUNNERS = ("docker", "podman")
ELSEWHERE_S = 60
EXAMPLES = Path(__file__).parents[2] / "p4" / "examples"
MOST_LINES, MOST_LETTERS = 12, 300
INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
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
    """The first p4c of this machine: installed, as an image, or in the kit's virtual machine while that runs."""
    if (path := shutil.which(COMPILER)) is not None:
        return Compiler("installed", (path,))
    for runner in IMAGE_RUNNERS:
        if shutil.which(runner) is not None and said_by([runner, "image", "inspect", IMAGE]) is not None:
            options = ("--rm", "--network=none", "--memory=1g", "--pids-limit=64", "--cap-drop=ALL")
            return Compiler(runner, (runner, "run", *options))
    if shutil.which("vagrant") is not None and said_by(["vagrant", "ssh", "-c", f"command -v {COMPILER}"]) is not None:
        return Compiler("virtual machine", ("vagrant", "ssh", "-c"))
    return None


@cache
def version_of(compiler: Compiler) -> str:
    """What tells one p4c from another: the version that it says, or its image's number."""
    if compiler.kind in IMAGE_RUNNERS:
        return said_by([compiler.kind, "image", "inspect", "--format", "{{.Id}}", IMAGE]) or ""
    inner = [f"{COMPILER} --version"] if compiler.kind == "virtual machine" else ["--version"]
    return said_by([*compiler.command, *inner]) or ""


def said_by(command: Sequence[str]) -> str | None:
    """What a command says; None if it fails or takes long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def no_compiler(program: str, otherwise: str) -> MachineError:
    """Return the error for a program without p4c: how to get one here, and what can be done `otherwise`."""
    ways = "; or ".join(way.short for way in ways_to_p4c())
    return MachineError(
        f"p4c is not installed, and {program} is compiled with it: {ways} (`inakit p4c --install-help` has all "
        f"commands); or {otherwise}"
    )


# -- getting p4c


@dataclass(frozen=True)
class Way:
    """A way to p4c: in a few words, as a heading, and its commands."""

    short: str
    heading: str
    commands: tuple[str, ...]


def system() -> tuple[str, str]:
    """The system of this machine, such as `ubuntu 22.04` or `darwin`, and its processor."""
    try:
        lines = [line.partition("=") for line in Path("/etc/os-release").read_text().splitlines()]
    except OSError:
        return platform.system().lower(), platform.machine()
    about = {key: value.strip("\"'") for key, _, value in lines}
    return f"{about.get('ID')} {about.get('VERSION_ID', '')}".strip(), platform.machine()


def ways_to_p4c(name: str = "", machine: str = "") -> list[Way]:
    """The ways to p4c on a system (default: this one): p4lang's packages where it has them, images, the machine."""
    name, machine = (name, machine) if name else system()
    # The image is for x86-64; Docker runs it on other processors too, such as Apple's.
    of = "" if machine in ("x86_64", "amd64") else "--platform linux/amd64 "
    pull = f"podman pull {of}docker.io/{IMAGE}", f"podman tag docker.io/{IMAGE} {IMAGE}"
    ways = [
        Way(f"where Docker runs: docker pull {of}{IMAGE}", "Docker's image", (f"docker pull {of}{IMAGE}",)),
        Way(f"where podman runs: {pull[0]}", "podman's image", pull),
        Way("in the kit's folder: vagrant up", "the kit's virtual machine, in the kit's folder", ("vagrant up",)),
    ]
    if (folder := PACKAGES.get(name)) is not None and not of:
        key, source = "/etc/apt/keyrings/p4lang.asc", f"{SOURCES}/{folder}"
        commands = (
            f"sudo curl -fsSL --create-dirs -o {key} {source}/Release.key",
            f"echo 'deb [signed-by={key}] {source}/ /' | sudo tee /etc/apt/sources.list.d/p4lang.list",
            "sudo apt update",
            "sudo apt install p4lang-p4c",
        )
        short = f"p4lang's package: apt install p4lang-p4c, from the source {source}/"
        ways.insert(0, Way(short, f"p4lang's package for {name}", commands))
    return ways


# -- compiling


def kept(key: str, make: Callable[[Path], None]) -> Path:
    """A compiled program that is in the cache under a key; `make` writes it to a file if it is not there yet."""
    folder = cache_directory() / "p4c"
    result = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    if not result.is_file():
        with writing(folder):
            folder.mkdir(exist_ok=True)
        make(result)
    return result


def with_includes(source: Path, seen: set[Path] | None = None) -> Iterator[tuple[Path, str]]:
    """A source and the files beside it that it includes, one after the other, with their texts."""
    seen = set() if seen is None else seen
    if source.resolve() in seen:
        return
    seen.add(source.resolve())
    text = source.read_text(errors="replace")
    yield source, text
    for name in INCLUDED.findall(text):
        if (other := source.parent / name).is_file():
            yield from with_includes(other, seen)


def compiled_before(program: Path) -> Path | None:
    """The compiled form that came with a program of the kit, unless a source has changed since; it needs no p4c.

    A copy of an example has the example's.
    """
    own = program.read_text(errors="replace").strip()
    program = next((each for each in EXAMPLES.glob("*.p4") if each.read_text().strip() == own), program)
    for made in (program.with_suffix(".json"), program.parent / "build" / f"{program.stem}.json"):
        hashes = recorded(made)
        if any(file.samefile(program) for file in hashes if file.exists()) and all(
            sha256(file) == digest for file, digest in hashes.items()
        ):
            return made
    return None


def compiled(program: Path) -> Path:
    """The BMv2 JSON of a program: the file itself, or what p4c makes of P4 source; kept until a source changes.

    Raises `InputError` with p4c's errors and their lines, `MachineError` without p4c.
    """
    if program.suffix != ".p4" or not program.is_file():
        return program
    if (brought := compiled_before(program)) is not None:
        return brought
    sources = list(with_includes(program))
    compiler = find_compiler()
    if compiler is None:
        raise no_compiler(str(program), "give its compiled JSON")

    def make(result: Path) -> None:
        draft = result.with_suffix(f".{program.stem}.draft")
        code, said = run_compiler(compiler, program, draft, alone=len(sources) == 1)
        if code != 0 or not draft.is_file():
            raise InputError(f"{program} does not compile:\n{errors_of(said, program.parent)}")
        write_whole(result, draft.read_text())
        draft.unlink()

    return kept(repr([version_of(compiler), *((path.name, text) for path, text in sources)]), make)


def run_compiler(compiler: Compiler, program: Path, result: Path, *, alone: bool) -> tuple[int, str]:
    """Run a p4c, which its user trusts, on a file; return its exit code and its messages."""
    folder = program.resolve().parent
    if compiler.kind == "installed":
        code, _, said = run_elsewhere([*compiler.command, *OPTIONS, "-o", str(result), program.name], folder=folder)
        return code, said
    if compiler.kind in IMAGE_RUNNERS:
        inner = [IMAGE, COMPILER, *OPTIONS, "-o", "/dev/stdout", program.name]
        command = [*compiler.command, "-v", f"{folder}:/work:ro", "-w", "/work", *inner]
        code, written, said = run_elsewhere(command)
    elif alone:
        code, written, said = run_in_machine(compiler, program.read_text())
    else:
        raise InputError(f"{program} includes other files, and p4c of the virtual machine gets one: compile it there")
    if code == 0:
        result.write_text(written)
    return code, said


def run_in_machine(compiler: Compiler, text: str) -> tuple[int, str, str]:
    """Run p4c of the virtual machine on a text; return its exit code, output and messages."""
    inner = f"cat > /tmp/inakit.p4 && {COMPILER} {' '.join(OPTIONS)} -o /dev/stdout /tmp/inakit.p4"
    return run_elsewhere([*compiler.command, inner], text)


def run_elsewhere(command: Sequence[str], text: str = "", folder: Path | None = None) -> tuple[int, str, str]:
    """Run a command on a text; return its exit code, output and messages."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, errors="replace", check=False,
            timeout=ELSEWHERE_S, cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"the program does not compile: p4c took longer than {ELSEWHERE_S} s") from None
    return done.returncode, done.stdout, done.stderr


def errors_of(said: str, folder: Path) -> str:
    """The first errors of p4c, with file names without folders, and without warnings about its own libraries."""
    wanted = [
        line
        for line in said.splitlines()
        if line.strip() and not line.startswith("GC Warning") and "--Werror=overlimit" not in line
    ]
    lines = [line.replace(f"{folder}/", "")[:MOST_LETTERS] for line in wanted]
    more = f"\n... and {len(lines) - MOST_LINES} lines more" if len(lines) > MOST_LINES else ""
    return "\n".join(lines[:MOST_LINES]) + more if lines else "p4c failed without a message"
