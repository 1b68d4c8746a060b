"""tcpreplay in the network namespaces of hosts: it sends a pcap once, at a common start, or repeatedly."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from inakit.topo.errors import MachineError, RunError
from inakit.topo.live.netlink import network_namespace
from inakit.topo.live.priority import send_ahead
from inakit.traffic.sockets.ports import HostPort

BURSTS_PER_S = 1000
"""tcpreplay sends a millisecond's packets in one burst: a packet costs little more than a system call, but the sleep
before each burst ten times that.
"""


def check_tcpreplay() -> None:
    """Raise `MachineError` if tcpreplay is missing."""
    if shutil.which("tcpreplay") is None:
        raise MachineError("tcpreplay is not installed: install the package 'tcpreplay', or choose reliable traffic")


def command(host: HostPort, pcap: Path, rate_fps: float, *options: str) -> list[str]:
    """The command that sends a pcap at `rate_fps` frames per second. Its timer sleeps; the default spins a core."""
    return [
        "tcpreplay", "--quiet", "--no-flow-stats", "--timer=nano", *options, f"--intf1={host.interface}",
        f"--pps={rate_fps:.6f}", f"--pps-multi={ceil(rate_fps / BURSTS_PER_S)}", str(pcap),
    ]  # fmt: skip


class Senders:
    """One tcpreplay for each host, pcap and rate in frames per second; all wait at a barrier until `go`.

    The barrier is a pipe: readers wait until its other end is closed. `commands`: the command line of each host's
    tcpreplay.
    """

    def __init__(self, pcaps: Sequence[tuple[HostPort, Path, float]]) -> None:
        self.processes: dict[str, Popen[bytes]] = {}
        self.commands = {host.name: shlex.join(command(host, pcap, rate_fps)) for host, pcap, rate_fps in pcaps}
        waiting, self.barrier = os.pipe()
        try:
            for host, pcap, rate_fps in pcaps:
                self.processes[host.name] = start_waiting(host, pcap, rate_fps, waiting)
                send_ahead(self.processes[host.name].pid)
        except BaseException:
            self.end()
            raise
        finally:
            os.close(waiting)

    def go(self) -> None:
        """Let all hosts begin to send."""
        os.close(self.barrier)
        self.barrier = -1

    def over(self) -> bool:
        """Whether all have sent everything. Raises `RunError` if one failed."""
        for host, process in self.processes.items():
            if process.poll():
                said = process.stderr.read().decode().strip() if process.stderr else ""
                raise RunError(f"tcpreplay of worker '{host}' failed: {said}")
        return all(process.poll() == 0 for process in self.processes.values())

    def end(self) -> None:
        """End all processes, finished or not."""
        if self.barrier >= 0:
            os.close(self.barrier)
            self.barrier = -1
        for process in self.processes.values():
            process.kill()
            process.communicate()


def start_waiting(host: HostPort, pcap: Path, rate_fps: float, barrier: int) -> Popen[bytes]:
    """Start tcpreplay in the host's namespace; it sends when reading from the file descriptor `barrier` ends."""
    with network_namespace(host.pid):
        return Popen(
            ["sh", "-c", 'read -r _; exec "$@"', "sh", *command(host, pcap, rate_fps)],
            stdin=barrier, stdout=DEVNULL, stderr=PIPE,
        )  # fmt: skip


def repeat_without_end(source: HostPort, pcap: Path, rate_fps: float) -> Popen[bytes]:
    """Start tcpreplay in the sender's namespace; it sends the frames of a pcap repeatedly until `end`."""
    with network_namespace(source.pid):
        return Popen(
            command(source, pcap, rate_fps, "--preload-pcap", "--loop=0"), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
        )


def end(what: str, process: Popen[bytes]) -> None:
    """End a process of `repeat_without_end`. Raises `RunError` if it ended by itself."""
    status = process.poll()
    process.kill()
    said = process.communicate()[1].decode(errors="replace").strip()
    if status is not None:
        raise RunError(f"{what}: tcpreplay ended: {said}")
