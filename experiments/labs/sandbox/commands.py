"""A program of this machine, such as a compiler, that runs on what nobody trusts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from inakit.experiments.labs.sandbox.limits import MIB, Limits
from inakit.experiments.labs.sandbox.patience import Patience
from inakit.experiments.labs.sandbox.process import ENVIRONMENT, EndedError, launcher

MOST_SAID = 64 << 10
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
        return code, said.read(MOST_SAID).decode(errors="replace")


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
