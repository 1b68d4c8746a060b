"""A process whose code nobody trusts: it is asked by frames of JSON, and has to answer within its limits.

What it answers is data, which whoever asked judges. However it ends, `EndedError` says why, in words for students.
`run_confined` does the same for a program of this machine, such as a compiler.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.frames import LENGTH, MOST_BYTES, packed

STEP_S = 0.5


class Patience:
    """Waits for at most `left` seconds in all.

    It waits in short steps, and no step counts for more than its length: on a machine that is suspended or overloaded
    nobody runs out of time for want of a processor alone.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def until_readable(self, descriptor: int) -> bool:
        """Wait until something can be read; False when patience has ended."""
        return self.wait((descriptor,), ())

    def until_writable(self, descriptor: int) -> bool:
        """Wait until something can be written; False when patience has ended."""
        return self.wait((), (descriptor,))

    def wait(self, readable: tuple[int, ...], writable: tuple[int, ...]) -> bool:
        """Wait for one of these descriptors."""
        while self.left > 0:
            began = time.monotonic()
            ready = select.select(readable, writable, (), min(STEP_S, self.left))
            self.left -= min(STEP_S, time.monotonic() - began)
            if any(ready):
                return True
        return False


ROOT = Path(__file__).parents[4]
"""The folder that has the package `inakit`."""
START_S = 20.0
MOST_SAID = 2000
LAUNCH = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from inakit.experiments.labs.sandbox.launch import main; main()"
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class EndedError(Exception):
    """A sandboxed process that has ended, or was ended; the message says why."""


class Sandboxed:
    """A module of the kit that runs within `limits`. `site` lets it import installed packages.

    `enforced` says of each kind of limit what holds it on this machine; nothing does where it is empty.
    """

    def __init__(self, module: str, limits: Limits, *, site: bool = False) -> None:
        self.limits = limits
        self.said = tempfile.TemporaryFile()  # noqa: SIM115, it is closed with the process
        document = json.dumps({"limits": limits.to_json(), "module": module})
        self.process = subprocess.Popen(
            launcher(document, site=site),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.questions, self.answers = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.questions, False)
        try:
            self.enforced: dict[str, str] = self.read(Patience(START_S))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(self, question: Any) -> Any:
        """The answer to a question; raises `EndedError`. A process that gives none in time is ended."""
        patience = Patience(self.limits.wall_s)
        try:
            self.write(packed(question), patience)
            return self.read(patience)
        except BrokenPipeError:
            raise EndedError(self.why()) from None

    def write(self, data: bytes, patience: Patience) -> None:
        """Write all of `data`; raises `EndedError` when the process does not read it in time."""
        left = memoryview(data)
        while left:
            if not patience.until_writable(self.questions):
                raise EndedError(self.too_slow())
            left = left[os.write(self.questions, left) :]

    def read(self, patience: Patience) -> Any:
        """The next frame; raises `EndedError` for what is none."""
        (size,) = LENGTH.unpack(self.exactly(LENGTH.size, patience))
        if size > MOST_BYTES:
            self.kill()
            raise EndedError(f"its answer has {size} bytes, more than {MOST_BYTES}")
        try:
            return json.loads(self.exactly(size, patience))
        except (ValueError, RecursionError):
            self.kill()
            raise EndedError(
                "its answer is not in the format of answers: something else has written to the pipe"
            ) from None

    def exactly(self, size: int, patience: Patience) -> bytes:
        """So many bytes of the answer."""
        data = bytearray()
        while len(data) < size:
            if not patience.until_readable(self.answers):
                raise EndedError(self.too_slow())
            part = os.read(self.answers, size - len(data))
            if not part:
                raise EndedError(self.why())
            data += part
        return bytes(data)

    def too_slow(self) -> str:
        """End the process, and say that it took too long."""
        self.kill()
        return self.out_of_time

    @property
    def out_of_time(self) -> str:
        """What is said of a process that computes or waits too long, the same whichever limit came first."""
        return f"it took longer than the {self.limits.cpu_s} s that it has, and was ended"

    def why(self) -> str:
        """Why the process ended, in words."""
        try:
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it closed the pipe to the grader, and was ended"
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return self.out_of_time
        said = self.last_words()
        if "MemoryError" in said or code == -signal.SIGSEGV:
            return f"it needed more than {self.limits.memory_bytes // MIB} MiB of memory, and was ended"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"it ended by itself, {how}{': ' + said if said else ''}"

    def last_words(self) -> str:
        """The last line that the process printed, cut short."""
        self.said.seek(0, os.SEEK_END)
        self.said.seek(max(0, self.said.tell() - MOST_SAID))
        lines = self.said.read().decode(errors="replace").strip().splitlines()
        return printable(lines[-1][-200:]) if lines else ""

    def kill(self) -> None:
        """End the process and those of its session."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process, and close its pipes."""
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.said):
            if pipe is not None:
                pipe.close()


def launcher(document: str, *, site: bool) -> list[str]:
    """The command that starts a sandboxed process."""
    options = ["-I", "-B"] if site else ["-I", "-B", "-S"]
    return [sys.executable, *options, "-c", LAUNCH, str(ROOT), document]


def printable(text: str) -> str:
    """A text without characters that a terminal obeys."""
    return "".join(each if each.isprintable() else "?" for each in text)


def python_paths() -> tuple[str, ...]:
    """What a Python process without installed packages has to read."""
    stdlib = Path(os.__file__).resolve().parent
    return (str(stdlib), *LIBRARIES)


LIBRARIES: Sequence[str] = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/dev/zero",
)  # fmt: skip


WAIT_S = 0.01


def run_confined(command: Sequence[str], limits: Limits, folder: Path) -> tuple[int, str]:
    """Run a command in a folder within limits; its exit code and what it printed. Raises `EndedError`."""
    document = json.dumps({"limits": limits.to_json(), "command": list(command)})
    environment = ENVIRONMENT | {"TMPDIR": str(folder), "HOME": str(folder)}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            launcher(document, site=False),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
            env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
        try:
            code = wait(process, limits)
        finally:
            end_session(process)
        said.seek(0)
        return code, said.read(64 << 10).decode(errors="replace")


def wait(process: subprocess.Popen[bytes], limits: Limits) -> int:
    """The exit code of a process; raises `EndedError` when it takes too long, or a signal ends it."""
    assert process.stdout is not None
    patience, ended = Patience(limits.wall_s), False
    while not ended:
        if not patience.until_readable(process.stdout.fileno()):
            raise EndedError(f"after {limits.wall_s:g} s")
        ended = not os.read(process.stdout.fileno(), 4096)
    code = wait_for_end(process, patience)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise EndedError(f"after {limits.cpu_s} s of processor time")
    if code < 0:
        raise EndedError(f"by signal {-code}: within {limits.memory_bytes // MIB} MiB it did not come to an end")
    return code


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a process and of those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_for_end(process: subprocess.Popen[bytes], patience: Patience) -> int:
    """The exit code of a process that has closed what it writes to."""
    while (code := process.poll()) is None:
        if patience.left <= 0:
            raise EndedError("after it had closed its output")
        time.sleep(WAIT_S)
        patience.left -= WAIT_S
    return code
