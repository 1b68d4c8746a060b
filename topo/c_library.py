"""Compile C to a library for this process or to an eBPF object, once per text and machine; a thread for long calls.

Results are cached in the user's cache directory under the hash of all their inputs. A rename puts them there, so that
several processes can build at the same time.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import MachineError, OutputError, RunError, writing


@dataclass(frozen=True)
class Compiler:
    """The compiler of one kind of output: the first installed one of `programs`.

    `headers`: a folder of headers that the text may include. `native`: the output runs in this process, so that the
    environment variables `CC` and `CFLAGS` choose the compiler and more options, as they do for `make`.
    """

    suffix: str
    programs: tuple[str, ...]
    options: tuple[str, ...]
    headers: Path | None = None
    native: bool = False

    def as_environment_says(self) -> Compiler:
        """Return the compiler with `CC` and `CFLAGS` applied; `CFLAGS` override the kit's own options.

        Without `CC` those of x86-64 are for this very processor: compilers else use the vector instructions of 2003.
        """
        if not self.native:
            return self
        program, options = os.environ.get("CC"), shlex.split(os.environ.get("CFLAGS", ""))
        programs = (program,) if program else self.programs
        own = (NATIVE,) if instructions() and not program else ()
        return replace(self, programs=programs, options=(*self.options, *own, *options))

    @property
    def include_options(self) -> list[str]:
        """The include options. clang does not find Debian's <asm/types.h> for eBPF by itself.

        A native compiler knows the system's folders; a cross compiler must not use those of this processor.
        """
        found = [] if self.native else sorted(Path("/usr/include").glob("*-linux-gnu/asm"))
        folders = [directory.parent for directory in found] + ([self.headers] if self.headers else [])
        return [part for folder in folders for part in ("-I", str(folder))]


NATIVE = "-march=native"


@cache
def instructions() -> str:
    """The instructions that this processor has, of x86-64, in one line; "" of another one, or where it is not known."""
    try:
        with Path("/proc/cpuinfo").open() as lines:  # each processor's; the first one's tell
            return next((line for line in lines if line.startswith("flags") and "lm" in line.split()), "")
    except OSError:
        return ""


REPAIR = "install it anew (apt install clang gcc), or another one, at the head of PATH"
LIBRARY = Compiler(
    ".so",
    ("cc", "gcc", "clang"),
    ("-O2", "-g0", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off"),
    native=True,
)
"""Numbers are rounded after each operation, so that they are the same on all processors."""


def build(source: str, compiler: Compiler) -> Path:
    """Compile `source`, or take the result from the cache, and return its path.

    Raises `MachineError` where no compiler is installed, `RunError` for C that does not compile.
    """
    if sys.byteorder != "little":
        raise MachineError("compiled P4 needs a little-endian machine: run on BMv2 (SWITCH=bmv2)")
    compiler = compiler.as_environment_says()
    wanted = cache_directory() / f"{fingerprint(source, compiler)}{compiler.suffix}"
    if not wanted.exists():
        compile_to(wanted, source, compiler)
    return wanted


TRIAL = "int inakit_trial(int a) { return a + 1; }"


def check_compiler(compiler: Compiler) -> None:
    """Raise `MachineError` unless the compiler compiles a trial and a native result loads in this process."""
    made = build(TRIAL, compiler)
    if not compiler.native:
        return
    try:
        ctypes.CDLL(str(made))
    except OSError as error:
        raise MachineError(
            f"{made.parent}: compiled code cannot be loaded from there ({error}): "
            "set XDG_CACHE_HOME to a folder on a disk that is not mounted noexec"
        ) from error


def fingerprint(source: str, compiler: Compiler) -> str:
    """A hash of the source, of its headers, of the compiler's programs and options, and of what `NATIVE` means here."""
    headers = sorted(compiler.headers.glob("*.h")) if compiler.headers else []
    texts = [source, *(header.read_text() for header in headers)]
    parts = [*texts, compiler.suffix, *compiler.programs, *compiler.options]
    parts += [instructions()] if NATIVE in compiler.options else []
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def cache_directory() -> Path:
    """The folder of compiled programs: `$XDG_CACHE_HOME/inakit`, by default `~/.cache/inakit`."""
    base = os.environ.get("XDG_CACHE_HOME")
    way = "compiled programs are kept there: set XDG_CACHE_HOME to a writable folder"
    try:
        directory = (Path(base) if base else Path.home() / ".cache") / "inakit"
    except RuntimeError as error:
        raise OutputError(f"the cache of a user without a home folder: {way}") from error
    with writing(directory, way):
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def compile_to(wanted: Path, source: str, compiler: Compiler) -> None:
    """Compile `source` to the file `wanted`; `RunError` quotes the compiler's first 20 lines.

    Raises `MachineError` where the compiler does not even compile a trial.
    """
    with writing(wanted.parent), tempfile.TemporaryDirectory(dir=wanted.parent) as scratch:
        text, result = Path(scratch) / "program.c", Path(scratch) / f"program{compiler.suffix}"
        text.write_text(source)
        options = [*compiler.options, *compiler.include_options]
        command = [find(compiler), *options, "-o", str(result), str(text)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise MachineError(f"{command[0]} cannot be started ({error.strerror}): {REPAIR}") from error
        if done.returncode:
            if source == TRIAL:
                why, room = first(done), "free some space there, or set TMPDIR to another folder"
                way = room if os.strerror(errno.ENOSPC) in why else REPAIR
                raise MachineError(f"{command[0]} does not compile, not even a trial ({why}): {way}")
            check_compiler(compiler)
            complaint = "\n".join(done.stderr.splitlines()[:20])
            raise RunError(f"{command[0]} does not compile C code of the kit, which is a bug in the kit:\n{complaint}")
        result.replace(wanted)


def first(done: subprocess.CompletedProcess[str]) -> str:
    """The first line of a program's stderr that contains "error", else its first line, else the exit code."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else f"exit {done.returncode}")


def find(compiler: Compiler) -> str:
    """Return the path of the first installed program of the compiler. Raises `MachineError` if there is none."""
    for program in compiler.programs:
        if found := shutil.which(program):
            return found
    names = " or ".join(compiler.programs)
    raise MachineError(f"{names} is not installed, and P4 programs are compiled with it: apt install clang")


CACHE_LINE = 64
"""The bytes of a processor's cache line, the greatest alignment of records that C shares with Python."""


def aligned_zeros(size: int) -> NDArray[np.uint8]:
    """`size` zero bytes from the beginning of a cache line; memory is used only where something is written."""
    found = np.zeros(size + 2 * CACHE_LINE, np.uint8)
    first = -found.ctypes.data % CACHE_LINE
    return found[first : first + size]


def lasting_thread(name: str) -> Callable[[], ThreadPoolExecutor]:
    """Return a function that returns one thread of this name and starts it at its first call.

    A forked process inherits only the main thread and gets a thread of its own here.
    """
    thread = cache(lambda: ThreadPoolExecutor(1, thread_name_prefix=name))
    os.register_at_fork(after_in_child=thread.cache_clear)
    return thread
