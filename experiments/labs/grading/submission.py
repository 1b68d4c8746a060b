"""What a student hands in, a folder or a file, and the compiled program of it, from its P4 or its JSON.

Only regular files of the expected names are read, and only so much. p4c runs in a sandbox: it reads its own files and a
copy of the source, and has limits of time and memory.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import LIBRARIES, EndedError, printable, run_confined
from inakit.topo.errors import InputError, MachineError, UnsupportedError

IMAGE = "p4lang/p4c"
OPTIONS = ("--std", "p4-16")
MOST_JSON = 16 * MIB
MOST_LINES = 12
COMPILE_S = 10
ELSEWHERE_S = 60
ALLOWED = re.compile(r'^\s*#\s*include\s*(<(core|v1model)\.p4>|"(?P<own>[\w.-]+)")\s*(//.*)?$')
DIRECTIVE = re.compile(r"^\s*(#|%:|\?\?=)\s*(include|import|embed|pragma\s+GCC)")
GET_IT = {
    "debian": "add p4lang's package source for Debian (see its README on installing p4c), then: apt install p4lang-p4c",
    "ubuntu": "add p4lang's package source for Ubuntu (see its README on installing p4c), then: apt install p4lang-p4c",
    "": "with Docker: docker pull p4lang/p4c",
}


@dataclass(frozen=True)
class Compiler:
    """A p4c: `kind` says where it is; `command` begins its command line."""

    kind: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.command)}"


def find_compiler() -> Compiler | None:
    """The first p4c of this machine: installed, as Docker's image, or in the virtual machine of the kit."""
    for find in (installed, of_docker, of_vagrant):
        found = find()
        if found is not None:
            return found
    return None


def installed() -> Compiler | None:
    """The p4c that is installed."""
    for name in ("p4c-bm2-ss",):
        if (path := shutil.which(name)) is not None:
            return Compiler("installed", (path,))
    return None


def of_docker() -> Compiler | None:
    """The p4c of Docker's image, if the image is here."""
    if shutil.which("docker") is None or not succeeds(["docker", "image", "inspect", IMAGE]):
        return None
    options = ("--rm", "--network=none", "--memory=1g", "--pids-limit=64", "--cap-drop=ALL")
    return Compiler("docker", ("docker", "run", *options))


def of_vagrant() -> Compiler | None:
    """The p4c of the virtual machine, if that is running."""
    if shutil.which("vagrant") is None or not succeeds(["vagrant", "ssh", "-c", "command -v p4c-bm2-ss"]):
        return None
    return Compiler("virtual machine", ("vagrant", "ssh", "-c"))


def succeeds(command: Sequence[str]) -> bool:
    """Whether a command ends well, and soon."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def needed_compiler() -> Compiler:
    """The p4c of this machine; `MachineError` says how to get one."""
    found = find_compiler()
    if found is None:
        raise MachineError(f"p4c is not installed, and P4 is compiled with it: {way_to_get_it()}; or hand in its JSON")
    return found


def way_to_get_it() -> str:
    """How to get p4c on this system."""
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        lines = []
    system = next((line.partition("=")[2].strip('"') for line in lines if line.startswith("ID=")), "")
    ways = [GET_IT[key] for key in dict.fromkeys((system, "")) if key in GET_IT]
    return "; or ".join([*ways, "in the kit's folder: vagrant up"])


def compile_p4(sources: Mapping[str, str], main: str, compiler: Compiler | None = None) -> str:
    """The BMv2 JSON that p4c makes of the file `main` of `sources`, its texts by name.

    Raises `InputError` with p4c's errors and their lines, `MachineError` where there is no p4c.
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
            if not DIRECTIVE.match(re.sub(r"/\*.*?\*/", " ", line)):
                continue
            allowed = ALLOWED.match(line)
            if allowed is None or (allowed["own"] and allowed["own"] not in sources):
                raise InputError(f"{name}: '{line.strip()[:80]}': expected <core.p4>, <v1model.p4> or a file beside it")


def run_compiler(compiler: Compiler, folder: Path, main: str) -> tuple[int, str]:
    """Run p4c on a file in a folder; its exit code and what it said."""
    if compiler.kind == "installed":
        return run_installed(compiler, folder, main)
    if compiler.kind == "docker":
        inner = ["p4c-bm2-ss", *OPTIONS, "-o", "out.json", main]
        command = [*compiler.command, "-v", f"{folder}:/work", "-w", "/work", IMAGE, *inner]
        return run_elsewhere(command)[::2]
    inner_text = f"cat > /tmp/inakit.p4 && p4c-bm2-ss {' '.join(OPTIONS)} -o /dev/stdout /tmp/inakit.p4"
    text = (folder / main).read_text()
    code, written, said = run_elsewhere([*compiler.command, inner_text], text)
    (folder / "out.json").write_text(written)
    return code, said


def run_elsewhere(command: Sequence[str], text: str = "") -> tuple[int, str, str]:
    """Run a command of Docker or Vagrant on a text: its exit code, what it wrote, and what it said."""
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
        raise InputError(f"{main} does not compile: p4c was given up, {ended}") from None


def errors_of(said: str, folder: Path) -> str:
    """What p4c says, shortened: names of files without folders, and the first lines only."""
    lines = [printable(line).replace(f"{folder}/", "") for line in said.splitlines() if wanted(line)]
    more = f"\n... and {len(lines) - MOST_LINES} lines more" if len(lines) > MOST_LINES else ""
    return "\n".join(lines[:MOST_LINES]) + more if lines else "p4c ends without a word"


def wanted(line: str) -> bool:
    """Whether a line of p4c is of use to whom it is shown."""
    return bool(line.strip()) and not line.startswith("GC Warning") and "--Werror=overlimit" not in line


MOST_BYTES = 4 << 20
MOST_FILES = 24
SUFFIXES = (".p4", ".json", ".py", ".csv", ".yml", ".md")


@dataclass(frozen=True)
class Submission:
    """The texts of a submission by the names of their files. `student` is who handed it in, where that is known."""

    path: Path
    texts: dict[str, str]
    student: str = ""

    def text(self, name: str) -> str:
        """The text of a file; `InputError` names those that are there instead."""
        if name not in self.texts:
            there = ", ".join(sorted(self.texts)) or "nothing"
            raise InputError(f"the submission has no '{name}'; it has {there}")
        return self.texts[name]

    @property
    def sources(self) -> dict[str, str]:
        """The P4 sources."""
        return {name: text for name, text in self.texts.items() if name.endswith(".p4")}


def submissions_in(folder: Path) -> dict[str, Path]:
    """What a class handed in, by students: the names of folders, or of files without their suffix.

    Raises `InputError` where there is no folder, and for a student who is there twice.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with a submission for each student")
    found: dict[str, Path] = {}
    for path in sorted(each for each in folder.iterdir() if not each.name.startswith(".")):
        student = path.name if path.is_dir() else path.stem
        if student in found:
            raise InputError(
                f"{folder}: {found[student].name} and {path.name} are both of '{student}': keep one of them"
            )
        found[student] = path
    return found


def read_submission(path: Path, student: str = "", expected: Sequence[str] = ()) -> Submission:
    """Read a submission of the files `expected`; `InputError` if it is not there, is empty, or is no regular file."""
    if path.is_symlink() or not path.exists():
        raise InputError(f"{path}: no such file or folder; expected what a student hands in")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    chosen = [each for each in files if each.suffix in SUFFIXES]
    if len(chosen) > MOST_FILES:
        raise InputError(
            f"the submission has {len(chosen)} files of P4, JSON and Python: at most {MOST_FILES} are read"
        )
    texts = {printable(each.name): read_file(each) for each in chosen}
    if not any(text.strip() for text in texts.values()):
        there = ", ".join(f"{printable(each.name)}{'/' if each.is_dir() else ''}" for each in files[:8])
        empty = "its files are empty" if texts else f"it has {there or 'no files'}"
        wanted = " and ".join(expected) or "P4 (.p4), compiled P4 (.json) or Python"
        raise InputError(f"the submission is empty: {empty}, where {wanted} is expected")
    return Submission(path, texts, student)


def read_file(path: Path) -> str:
    """The text of a regular file of a bounded size. Symbolic links are not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read, and symbolic links are not followed: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path.name} is no regular file")
        if found.st_size > MOST_BYTES:
            raise InputError(f"{path.name} has {found.st_size} bytes: at most {MOST_BYTES} are read")
        data = file.read(MOST_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is no text in UTF-8") from None


REFUSED = (InputError, UnsupportedError, EndedError)
"""What is raised for a program that does not compile, or that the switch does not load."""


def refusal(error: Exception) -> str:
    """One of `REFUSED` in words."""
    return f"the program does not load: {error}" if isinstance(error, EndedError) else str(error)


def compiled_program(submission: Submission, stem: str) -> tuple[str, str]:
    """The JSON of the program `stem`, and a note on where it comes from, empty for what p4c has made now.

    P4 is compiled where p4c is; without p4c a JSON beside it is taken. Raises `InputError` or `MachineError`.
    """
    source, made = f"{stem}.p4", f"{stem}.json"
    if source in submission.texts:
        compiler = find_compiler()
        if compiler is None and made in submission.texts:
            return submission.texts[made], f"p4c is not installed here: {made} was graded, not {source}"
        return compile_p4(submission.sources, source, compiler or needed_compiler()), ""
    if made in submission.texts:
        return submission.texts[made], f"{made} was graded, without its P4"
    there = ", ".join(sorted(submission.texts))
    raise InputError(f"the submission has no '{source}' and no '{made}', but {there}: give the program that name")
