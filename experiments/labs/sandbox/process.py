"""A process that runs untrusted code: it gets questions as frames of JSON, and has to answer within its limits.

Its answers are data, which the caller checks. When the process ends, `EndedError` gives the reason in words for
students. `run_confined` does the same for a program of this machine, such as a compiler.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.launch import LENGTH, MOST_BYTES, packed
from inakit.experiments.labs.sandbox.untrusted import without_addresses
from inakit.topo.errors import MachineError, RunError

ROOT = Path(__file__).parents[4]
"""The folder that has the package `inakit`."""
STEP_S, START_S, POLL_S = 0.5, 20.0, 0.01
MOST_SAID, MOST_MESSAGE = MIB, 2000
"""The number of bytes that a process may write to its output, and of letters of its messages that are shown."""
UNCONFINED = "INAKIT_UNCONFINED"
"""The variable of the environment that lets submissions run where nothing confines them; `--unconfined` sets it."""
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
LIBRARIES: Sequence[str] = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/dev/zero",
)  # fmt: skip


def python_paths() -> tuple[str, ...]:
    """The paths that a Python process without installed packages reads."""
    return (str(Path(os.__file__).resolve().parent), *LIBRARIES)


class EndedError(Exception):
    """A sandboxed process has ended or was killed; the message gives the reason."""


class Patience:
    """Waits for at most `left` seconds in all, and no longer than the limits of `wall_limit` around it allow.

    It waits in short steps, and each step counts at most its nominal length, so that time in which this machine is
    suspended or overloaded does not count.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, readable: Sequence[int] = (), writable: Sequence[int] = ()) -> set[int]:
        """The descriptors that are ready, as soon as one is; none when the time is over."""
        every = (self, *AROUND.get())
        while (left := min(each.left for each in every)) > 0:
            began = time.monotonic()
            ready = select.select(readable, writable, (), min(STEP_S, left))
            for each in every:
                each.left -= min(STEP_S, time.monotonic() - began)
            if any(ready):
                return {*ready[0], *ready[1]}
        return set()


def is_over() -> bool:
    """Whether the time of a `wall_limit` around this is over."""
    return any(each.left <= 0 for each in AROUND.get())


AROUND: ContextVar[tuple[Patience, ...]] = ContextVar("AROUND", default=())


@contextmanager
def wall_limit(seconds: float) -> Iterator[None]:
    """Limit the time for which this block waits for sandboxed processes, all together."""
    before = AROUND.set((*AROUND.get(), Patience(seconds)))
    try:
        yield
    finally:
        AROUND.reset(before)


class Output:
    """What a process writes to its output, a pipe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self.descriptor = process.stderr.fileno()
        os.set_blocking(self.descriptor, False)
        self.open, self.data = True, bytearray()

    def read(self) -> None:
        """Read what is there now."""
        with suppress(BlockingIOError):
            while self.open and len(self.data) <= MOST_SAID:
                part = os.read(self.descriptor, 1 << 16)
                self.open, self.data = bool(part), self.data + part

    def wait(self, patience: Patience, readable: Sequence[int] = (), writable: Sequence[int] = ()) -> bool:
        """Wait until one of these descriptors is ready, or without any until the output ends; read the output.

        Returns False when the time is over. Raises `EndedError` if there is too much output.
        """
        while self.open or readable or writable:
            own = {self.descriptor} if self.open else set()
            ready = patience.wait((*readable, *own), writable)
            self.read()
            if len(self.data) > MOST_SAID:
                raise EndedError(f"it printed more than {MOST_SAID // MIB} MiB, and was ended")
            if not ready or ready - own:
                return bool(ready)
        return True

    @property
    def text(self) -> str:
        """The output."""
        return self.data.decode(errors="replace").strip()


def used_s() -> float:
    """The processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def allow_unconfined() -> None:
    """Let programs run where nothing confines them, from now on: programs of whoever runs them, or trusted ones."""
    os.environ[UNCONFINED] = "1"


def check_confined(enforced: Mapping[str, str]) -> None:
    """Raise `MachineError` if nothing holds a kind of limit on this machine, unless that is allowed."""
    lacking = [what for what, by in enforced.items() if not by]
    if lacking and not os.environ.get(UNCONFINED):
        raise MachineError(
            f"this machine cannot confine what students hand in ({', '.join(lacking)}): it needs Landlock or user "
            "namespaces, and seccomp, on x86-64 or 64-bit ARM; with --unconfined their code runs as yours"
        )


def launched(document: Mapping[str, Any], limits: Limits, *, site: bool, **options: Any) -> subprocess.Popen[bytes]:
    """Start a sandboxed process in a new session; its output goes to its `stderr`, a pipe."""
    # Not -I, which ignores PYTHONHASHSEED: the environment has nothing else, so -s and -P isolate as much.
    flags = ["-s", "-P", "-B"] if site else ["-s", "-P", "-B", "-S"]
    text = json.dumps({"limits": asdict(limits), **document})
    return subprocess.Popen(
        [sys.executable, *flags, "-c", LAUNCH, str(ROOT), text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0, **options,
    )  # fmt: skip


def end_session(process: subprocess.Popen[bytes], *, of_ended: bool = False) -> None:
    """Kill a process and its session (with `of_ended` also if the process has ended), and close its pipes."""
    if of_ended or process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


class Sandboxed:
    """A runner of the kit's `module`, made with `arguments`, in a process that runs within `limits`.

    The first question starts the process, and so does the first one after its end; `load` is asked before it. `errors`
    maps the runner's kinds of errors to exceptions; other kinds raise `EndedError`. `site` lets the process import
    installed packages. `hash_seed` determines the order of its sets of texts. `enforced` names, for each kind of
    limit, the mechanism that enforces it on this machine; it is empty if there is none.
    """

    def __init__(
        self,
        module: str,
        limits: Limits,
        errors: Mapping[str, type[Exception]],
        *,
        arguments: Sequence[str] = (),
        load: Sequence[Any] = (),
        site: bool = False,
    ) -> None:
        self.document = {"module": module, "arguments": list(arguments)}
        self.limits, self.errors, self.load, self.site = limits, errors, load, site
        self.hash_seed = 0
        self.enforced: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Any:
        """Start the process; return the answer to `load`."""
        self.close()
        environment = ENVIRONMENT | {"PYTHONHASHSEED": str(self.hash_seed)}
        self.process = launched(
            self.document, self.limits, site=self.site, stdin=subprocess.PIPE, env=environment, cwd="/"
        )
        self.output, self.used_s = Output(self.process), used_s()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.questions, self.answers = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.questions, False)
        try:
            try:
                self.enforced = self.read(Patience(START_S))
            except EndedError as error:  # nothing of the student's has run yet
                if is_over():
                    raise
                raise RunError(f"a sandbox does not start on this machine: {error}") from None
            check_confined(self.enforced)
            return self.asked(self.load) if self.load else None
        except BaseException:
            self.close()
            raise

    def ask(self, *question: Any) -> Any:
        """The answer to a question; raises `EndedError`. A process that does not answer in time is killed."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        return self.asked(question)

    def asked(self, question: Sequence[Any]) -> Any:
        """The answer of the running process."""
        patience = Patience(self.limits.wall_s)
        try:
            left = memoryview(packed(list(question)))
            while left:
                self.wait(patience, (), (self.questions,))
                left = left[os.write(self.questions, left) :]
            answer = self.read(patience)
        except BrokenPipeError:
            raise EndedError(self.why()) from None
        match answer:
            case ["ok", value]:
                return value
            case [str() as kind, message]:
                raise self.errors.get(kind, EndedError)(without_addresses(str(message)[:MOST_MESSAGE]))
        raise EndedError("its answer does not have the form of an answer")

    def read(self, patience: Patience) -> Any:
        """The next frame; raises `EndedError` if there is no valid one."""
        (size,) = LENGTH.unpack(self.exactly(LENGTH.size, patience))
        if size > MOST_BYTES:
            self.close()
            raise EndedError(f"its answer has {size} bytes, more than {MOST_BYTES}")
        try:
            return json.loads(self.exactly(size, patience))
        except (ValueError, RecursionError):
            self.close()
            raise EndedError(
                "its answer is not in the format of answers: something else has written to the pipe"
            ) from None

    def exactly(self, size: int, patience: Patience) -> bytes:
        """Read this many bytes of the answer."""
        data = bytearray()
        while len(data) < size:
            self.wait(patience, (self.answers,))
            part = os.read(self.answers, size - len(data))
            if not part:
                raise EndedError(self.why())
            data += part
        return bytes(data)

    def wait(self, patience: Patience, readable: Sequence[int], writable: Sequence[int] = ()) -> None:
        """Wait for the process; raises `EndedError` if it is too slow or prints too much, and kills it."""
        try:
            in_time = self.output.wait(patience, readable, writable)
        except EndedError:
            self.close()
            raise
        if not in_time:
            raise EndedError(self.too_slow())

    def too_slow(self) -> str:
        """Kill the process; return the error that it took too long, with the same words for every limit of time."""
        self.close()
        if is_over():
            return "its answers took too long, all together, and it was ended"
        return f"it took longer than the {self.limits.cpu_s} s that it has, and was ended"

    def why(self) -> str:
        """The reason why the process ended, in words."""
        assert self.process is not None
        try:
            self.output.read()
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.close()
            return "it closed the pipe to the grader, and was ended"
        if code == -signal.SIGKILL and used_s() - self.used_s < self.limits.cpu_s:
            raise RunError("something else than its limits has killed a sandbox: this machine has too little memory")
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return self.too_slow()
        self.output.read()
        lines = self.output.text.splitlines()
        last = without_addresses(lines[-1][-200:]) if lines else ""
        if "MemoryError" in last or code == -signal.SIGSEGV:
            return f"it needed more than {self.limits.memory_bytes // MIB} MiB of memory, and was ended"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"it ended by itself, {how}{': ' + last if last else ''}"

    def close(self) -> None:
        """Kill the process; the next question starts another one."""
        if self.process is not None:
            end_session(self.process)
        self.process = None


def run_confined(command: Sequence[str], limits: Limits, folder: Path) -> tuple[int, str]:
    """Run a command in a folder within limits; return its exit code and output. Raises `EndedError`."""
    environment = ENVIRONMENT | {"TMPDIR": str(folder), "HOME": str(folder)}
    process = launched(
        {"command": list(command)}, limits, site=False, stdin=subprocess.DEVNULL, env=environment, cwd=folder
    )
    output = Output(process)
    try:
        return exit_code(process, output, limits), output.text
    finally:
        end_session(process, of_ended=True)


def exit_code(process: subprocess.Popen[bytes], output: Output, limits: Limits) -> int:
    """Wait for the end of a process; raises `EndedError` if it takes too long or a signal kills it."""
    assert process.stdout is not None
    patience, enforced, part = Patience(limits.wall_s), b"", b"-"
    while part and output.wait(patience, (process.stdout.fileno(),)):
        part = os.read(process.stdout.fileno(), 4096)
        enforced += part
    check_confined(json.loads(enforced[LENGTH.size :] or "{}"))
    if not output.wait(patience):
        raise EndedError(f"after {limits.wall_s:g} s")
    while (code := process.poll()) is None:
        if patience.left <= 0:
            raise EndedError("after it had closed its output")
        time.sleep(POLL_S)
        patience.left -= POLL_S
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise EndedError(f"after {limits.cpu_s} s of processor time")
    if code < 0:
        raise EndedError(f"by signal {-code}: within {limits.memory_bytes // MIB} MiB it did not come to an end")
    return code
