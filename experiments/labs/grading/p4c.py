"""Submitted P4 compiled to BMv2 JSON by the p4c of this machine.

An installed p4c runs in a sandbox: it reads its own files and a copy of the source, and has limits of time and memory.
Without p4c the unchanged programs that students get still compile, and in the kit's repository the solutions: the kit
keeps what p4c made of them.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import LIBRARIES, EndedError, run_confined
from inakit.experiments.labs.sandbox.untrusted import lines_printable
from inakit.switch.program.bmv2_json import COMPILER
from inakit.switch.program.p4_source import (
    IMAGE,
    IMAGE_RUNNERS,
    OPTIONS,
    Compiler,
    errors_of,
    find_compiler,
    kept,
    no_compiler,
    run_elsewhere,
    run_in_machine,
    version_of,
)
from inakit.topo.errors import InputError
from inakit.topo.files.reader import write_whole

ARCHIVE = "compiled.json.xz"
COURSE = Path(__file__).parents[3] / "labs"
KEPT = Compiler("kept in the kit", (f"labs/{ARCHIVE}",))
MOST_JSON = 16 * MIB
COMPILE_S = 10
ALLOWED = re.compile(r'^\s*#\s*include\s*(<(core|v1model)\.p4>|"(?P<own>[\w.-]+)")\s*(//.*)?$')
DIRECTIVE = re.compile(r"^\s*(#|%:|\?\?=)\s*(include|import|embed|pragma\s+GCC)")


def key_of(text: str) -> str:
    """The key of a program in an archive: the hash of its source."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_archive(folder: Path) -> dict[str, str]:
    """The BMv2 JSON of each source that a folder's archive has, by `key_of`."""
    path = folder / ARCHIVE
    return dict(json.loads(lzma.decompress(path.read_bytes()))) if path.is_file() else {}


@cache
def kept_programs() -> dict[str, str]:
    """The BMv2 JSON of each source that the kit keeps, by `key_of`: what students get, and solutions where they are."""
    folders = (COURSE, *(COURSE / "teacher").glob("*"))
    return {key: program for folder in folders for key, program in read_archive(folder).items()}


def compiler_of(main: str, text: str) -> Compiler:
    """The p4c of this machine, else `KEPT` for a program that came with the kit.

    Raises `MachineError`, which says how to get a p4c here.
    """
    found = find_compiler() or (KEPT if key_of(text) in kept_programs() else None)
    if found is None:
        raise no_compiler(main, "hand in its JSON")
    return found


def compile_p4(sources: Mapping[str, str], main: str, compiler: Compiler | None = None) -> str:
    """The BMv2 JSON that p4c compiles from the file `main` of `sources` (texts by name).

    Raises `InputError` with p4c's errors and their lines, `MachineError` without p4c.
    """
    check_includes(sources)
    compiler = compiler or compiler_of(main, sources.get(main, ""))
    if compiler is KEPT:
        return kept_programs()[key_of(sources[main])]
    key = [version_of(compiler), main, *(part for item in sorted(sources.items()) for part in item)]
    return kept(repr(key), lambda result: compile_anew(sources, main, compiler, result)).read_text()


def compile_anew(sources: Mapping[str, str], main: str, compiler: Compiler, kept_as: Path) -> None:
    """Compile as `compile_p4` does, to the file `kept_as`."""
    with tempfile.TemporaryDirectory(prefix="inakit-p4c-") as folder:
        scratch = Path(folder)
        for name, text in sources.items():
            (scratch / name).write_text(text)
        code, said = run_compiler(compiler, scratch, main)
        result = scratch / "out.json"
        if code != 0 or not result.is_file():
            raise InputError(f"{main} does not compile:\n{lines_printable(errors_of(said, scratch))}")
        if result.stat().st_size > MOST_JSON:
            raise InputError(f"{main}: the compiled program has more than {MOST_JSON // MIB} MiB")
        write_whole(kept_as, result.read_text())


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
    if compiler.kind in IMAGE_RUNNERS:
        inner = [COMPILER, *OPTIONS, "-o", "out.json", main]
        command = [*compiler.command, "-v", f"{folder}:/work", "-w", "/work", IMAGE, *inner]
        return run_elsewhere(command)[::2]
    code, written, said = run_in_machine(compiler, (folder / main).read_text())
    (folder / "out.json").write_text(written)
    return code, said


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
