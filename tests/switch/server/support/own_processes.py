"""This switch in a process of its own, interpreted, without interfaces."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from thrift_clients import connected
from thriftpy2.transport import TTransportException

from inakit.switch.server.engines import VARIABLE

START_S, END_S = 20, 10


@contextmanager
def own_simple_switch(
    port: int, notifications: str, program: Path, log: Path, *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose Thrift port answers; it must end well when it is told to. `more` are options of its own."""
    code = "from inakit.switch.server.serve import simple_switch; simple_switch()"
    options = ["--thrift-port", str(port), "--notifications-addr", notifications, str(program), *more]
    command = [sys.executable, "-c", code, *options]
    environment = os.environ | {VARIABLE: "interpreted", "PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        wait_until_answered(port)
        yield process
    finally:
        process.terminate()
        status = process.wait(END_S)
    assert status == 0, log.read_text()


def wait_until_answered(port: int) -> None:
    """Return once the service `simple_switch` answers, which is the last that BMv2 starts."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with suppress(OSError, TTransportException), connected(port) as clients:
            clients.simple_switch.get_time_elapsed_us()
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody answers on port {port}")
