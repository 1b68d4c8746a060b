"""One `simple_switch` process: started, waited for, watched and ended. Knows nothing of entries or Mininet."""

from __future__ import annotations

import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from inakit.topo.errors import MachineError, RunError, writing

START_TIMEOUT_S = 30.0
DEATH_TIMEOUT_S = 5.0
POLL_S = 0.005
LOG_TAIL_LINES = 5
CONTROL_PORTS = range(20000, 32000)
"""They lie below the ports that the system gives to outgoing connections, which could take one before a switch does."""


def shuffled_ports() -> Iterator[int]:
    """Every control port once, shuffled, so that two runs on one machine rarely start with the same one."""
    yield from random.SystemRandom().sample(CONTROL_PORTS, len(CONTROL_PORTS))


_candidates = shuffled_ports()


def free_port() -> int:
    """A TCP port on which nothing listens; each call in this process returns a different one."""
    for port in _candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise MachineError(
        f"no free TCP port from {CONTROL_PORTS.start} to {CONTROL_PORTS.stop - 1} for a switch: end their users"
    )


class SimpleSwitchProcess:
    """A running `simple_switch`, whose control plane listens on `control_port`, and which writes to `log`.

    Each process sends its notifications to its own socket. The default socket is named after the device number, which
    switches of two runs share, so the second switch could not start. The kit does not listen to it and removes its name
    once the switch is ready, so that nothing remains however this process ends.
    """

    def __init__(self, name: str, arguments: list[str], control_port: int, log: Path) -> None:
        self.name = name
        self.control_port = control_port
        self.log = log
        self._notifications = Path(tempfile.gettempdir(), f"bmv2-{control_port}-notifications.ipc")
        program, *options = arguments
        with writing(log), log.open("wb") as output:
            # The process gets its own session: Ctrl-C reaches only the kit, which then ends the switch in order.
            self._process = subprocess.Popen(
                [program, "--notifications-addr", f"ipc://{self._notifications}", *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def check(self) -> None:
        """Raise `RunError` unless the process runs."""
        status = self._process.poll()
        if status is not None:
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            raise RunError(
                f"switch '{self.name}': simple_switch (pid {self.pid}) {how} while it was needed; "
                f"run again, or see its log, which ends with:\n{self.log_tail()}"
            )

    def wait_until_ready(self) -> None:
        """Return once the control plane accepts connections."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._accepts():
            self.check()
            if time.monotonic() > deadline:
                raise RunError(
                    f"switch '{self.name}': simple_switch does not listen on port {self.control_port} after "
                    f"{START_TIMEOUT_S:g} s; use a smaller fabric or a faster machine. "
                    f"Its log ends with:\n{self.log_tail()}"
                )
            time.sleep(POLL_S)
        self._notifications.unlink(missing_ok=True)

    def failure(self, error: Exception) -> RunError:
        """The error to raise when a call to the process failed with `error`: usually the process has ended."""
        try:
            self._process.wait(DEATH_TIMEOUT_S)
            self.check()
        except subprocess.TimeoutExpired:
            return RunError(f"switch '{self.name}': simple_switch runs, but its control plane fails: {error!r}")
        except RunError as ended:
            return ended
        raise AssertionError("a process that was waited for has a status")

    def stop(self) -> None:
        """Kill the process; it holds no state that must be saved."""
        self._process.kill()
        self._process.wait()
        self._notifications.unlink(missing_ok=True)

    def log_tail(self) -> str:
        """The last lines that the process wrote."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:]) or "(nothing)"

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.control_port)) == 0
