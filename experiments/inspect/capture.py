"""Packets of switch ports as pcap files, captured by tcpdump.

Arriving and leaving packets are kept as they are on the wire. tcpdump runs on the processors of switches, so that the
endpoints keep theirs. Before it is stopped it writes the contents of its kernel buffer, and reports packets that are
missing in the file.
"""

from __future__ import annotations

import math
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console

from inakit.topo.errors import InputError, MachineError, RunError, as_root, unknown_name, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.live.ledger import Ledger, RunningNetwork
from inakit.topo.live.signals import interrupts_held, signals_unwind

BUFFER_KIB = 8192
START_S = 10.0
DRAIN_S = 5.0
POLL_S = 0.05
Place = tuple[str, int]
"""A switch and one of its ports."""
GONE = "interface disappeared"
COUNTS = re.compile(r"(\d+) packets? (captured|received|dropped)")


@dataclass(frozen=True)
class Counts:
    """tcpdump's counts of packets: `captured` in the file, `received` by the kernel, `dropped` for lack of buffer."""

    captured: int = 0
    received: int = 0
    dropped: int = 0

    @property
    def offered(self) -> int:
        """The number of packets that are in the file, or are still to be written to it."""
        return self.received - self.dropped


class Capture:
    """tcpdump at one interface, from the return of the constructor to `stop`.

    It ends by itself after `packets`, or when the interface is gone. It may use the processors `processors`. With
    `at_once` every packet is in the file as soon as it has arrived.
    """

    def __init__(
        self,
        interface: str,
        file: Path,
        processors: Sequence[int],
        packets: int | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        self.file = file
        with writing(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()  # created here, so that it gets the owner of the folder
        asked = ([] if packets is None else ["-c", str(packets)]) + (["-U", "--immediate-mode"] if at_once else [])
        command = ["tcpdump", "-i", interface, "-w", str(file), "-p", "-n", "-Z", "root", "-B", str(BUFFER_KIB), *asked]
        # tcpdump has a session of its own, so that Ctrl-C reaches only the kit, which then stops it in order.
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        os.sched_setaffinity(self.process.pid, processors)
        self.said = ""
        try:
            self._wait_until_it_listens(interface)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def stop(self) -> Counts:
        """Write the packets that have arrived, including those that the kernel still holds; end, and return the counts.

        Raises `RunError` if tcpdump failed before, for example because of a full disk.
        """
        deadline = time.monotonic() + DRAIN_S
        offered = self._counts_now().offered
        while not self.ended and self._counts_now().captured < offered and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._end()
        if self.process.returncode and GONE not in self.said:
            raise RunError(f"tcpdump failed, and {self.file} is not complete: {self.said.strip()}")
        return counts(self.said)

    def _counts_now(self) -> Counts:
        """The counts so far, which tcpdump prints when it receives SIGUSR1; zeros if it has ended."""
        if self.ended:
            return Counts()
        self.said = ""
        self.process.send_signal(signal.SIGUSR1)
        self._listen(1.0, "dropped by kernel")
        return counts(self.said)

    def _wait_until_it_listens(self, interface: str) -> None:
        self._listen(START_S, "listening on")
        if "listening on" not in self.said:
            raise RunError(f"tcpdump does not capture at interface '{interface}': {self.said.strip() or 'no answer'}")

    def _listen(self, seconds: float, until: str) -> None:
        """Read tcpdump's messages into `said`, until it contains `until`, tcpdump ends, or the seconds are over."""
        assert self.process.stderr
        deadline = time.monotonic() + seconds
        while until not in self.said and (left := deadline - time.monotonic()) > 0:
            if not select.select([self.process.stderr], [], [], left)[0]:
                return
            heard = os.read(self.process.stderr.fileno(), 4096)
            if not heard:
                return
            self.said += heard.decode(errors="replace")

    def _end(self) -> None:
        """End tcpdump, and read the rest of its messages. A second call does nothing."""
        assert self.process.stderr
        if self.process.stderr.closed:
            return
        self.process.send_signal(signal.SIGINT)
        _, rest = self.process.communicate()
        self.said += rest.decode(errors="replace")


def counts(said: str) -> Counts:
    """The last counts in tcpdump's output."""
    return Counts(**{what: int(number) for number, what in COUNTS.findall(said)})


def check_tcpdump() -> None:
    """Raise `MachineError` without tcpdump or without root."""
    if shutil.which("tcpdump") is None:
        raise MachineError("tcpdump is not installed, and captures need it: apt install tcpdump")
    if os.geteuid() != 0:
        raise MachineError(f"capturing packets needs root: {as_root()}")


@dataclass(frozen=True)
class Limit:
    """The limits of a capture: seconds from its start, and packets of both directions; None for no limit."""

    seconds: float | None = None
    packets: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("packets", self.packets)):
            if value is not None and value <= 0:
                raise InputError(f"{name} {value:g}: a number greater than 0 is expected")


def capture_to(
    console: Console, network: RunningNetwork, place: Place, file: Path | None, limit: Limit, *, decode: bool = False
) -> None:
    """Capture at a port until `limit`, Ctrl-C, or the end of the network, and print the counts. Raises `InakitError`.

    With `decode` a line for each packet is printed; `file` can then be None.
    """
    port = network.port(*place)
    check_tcpdump()
    if file is None and not decode:
        raise InputError("packets have no output: give --output a .pcap file, or --print, or both")
    if file is not None and file.suffix != ".pcap":
        raise InputError(f"output '{file}': a name that ends in .pcap is expected")
    with signals_unwind(), ExitStack() as stack:
        kept = file or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-"))) / "port.pcap"
        capture = Capture(port.interface, kept, network.switch_processors, limit.packets, at_once=decode)
        running = stack.enter_context(capture)
        console.print(f"capturing at port {port.number} of {place[0]}, which leads to {port.peer}; Ctrl-C ends it")
        tell = telling(console, kept) if decode else lambda: None
        until = math.inf if limit.seconds is None else time.monotonic() + limit.seconds
        with suppress(KeyboardInterrupt):
            while not running.ended and time.monotonic() < until:
                tell()
                time.sleep(POLL_S)
        found = running.stop()
        tell()
    console.print(describe_capture(str(file or f"port {port.number}"), found), highlight=False, soft_wrap=True)


def telling(console: Console, file: Path) -> Callable[[], None]:
    """A function that prints the packets that were added to the file since its last call.

    Each packet gets a line: its time, and scapy's summary of its layers.
    """
    from scapy.utils import PcapReader  # noqa: PLC0415, scapy takes long to import

    import inakit.traffic.wire.scapy_layers  # noqa: F401, PLC0415, scapy then knows the layers

    reader = PcapReader(str(file))

    def tell() -> None:
        while True:
            with interrupts_held():  # so that every packet is printed exactly once
                begin = reader.f.tell()
                try:
                    packet = reader.read_packet()
                except EOFError:
                    packet = None
                if packet is None or len(packet.original) < (packet.wirelen or 0):  # the rest is not written yet
                    reader.f.seek(begin)
                    return
                line = f"{datetime.fromtimestamp(float(packet.time)):%H:%M:%S.%f} {packet.summary()}"
                console.print(line, highlight=False, markup=False, soft_wrap=True)

    return tell


def describe_capture(name: str, found: Counts) -> str:
    """A text with the number of packets in a file, and of those for which tcpdump was too slow."""
    lost = f", {found.dropped} LOST: tcpdump was too slow for them" if found.dropped else ", none lost"
    return f"{name}: {found.captured} packets{lost}"


def capture_places(fabric: Fabric, asked: str) -> tuple[Place, ...]:
    """Parse "s1,s2:3" to ports: all ports of s1 that have a link, and port 3 of s2. Raises `InputError`."""
    found: dict[Place, None] = {}
    for part in filter(None, map(str.strip, asked.split(","))):
        found |= dict.fromkeys(places_of(fabric, *part.partition(":")))
    return tuple(found)


def places_of(fabric: Fabric, switch: str, colon: str, port: str) -> list[Place]:
    """Return the ports of one part of `--pcap`: one port of a switch, or all of them. Raises `InputError`."""
    if switch not in fabric.switch_by_name:
        raise unknown_name("switch", switch, fabric.switch_by_name)
    linked = sorted(fabric.port_numbers[switch, peer] for peer in fabric.neighbors[switch])
    if not colon:
        return [(switch, number) for number in linked]
    if port not in map(str, linked):
        raise InputError(f"switch '{switch}' has no link at port '{port}': it has {', '.join(map(str, linked))}")
    return [(switch, int(port))]


class Capturable(Protocol):
    """A running network of this process (`inakit.topo.live.network.Network`)."""

    @property
    def ledger(self) -> Ledger:
        """The resources that the run has created, and removes at the end."""
        ...

    def facts(self) -> RunningNetwork:
        """The facts that the network publishes about itself to other processes."""
        ...


def file_of(place: Place, folder: Path) -> Path:
    """The file of a port's packets: `<switch>-<port>.pcap`, below the folder of the run."""
    return folder / "pcap" / "{}-{}.pcap".format(*place)


@contextmanager
def capturing(network: Capturable, places: Sequence[Place], folder: Path) -> Iterator[dict[str, Counts]]:
    """Capture at `places` during the block, each to its `file_of`; the yielded dict gets the counts at the end."""
    found: dict[str, Counts] = {}
    running: dict[str, Capture] = {}
    facts = network.facts()
    with ExitStack() as stack:
        for place in places:
            file = file_of(place, folder)
            started = Capture(facts.port(*place).interface, file, facts.switch_processors)
            running[file.stem] = stack.enter_context(started)
            network.ledger.record("pid", started.process.pid)
        yield found
        found |= {name: each.stop() for name, each in running.items()}


def warn_of_losses(console: Console, planner: str, captured: Mapping[str, Counts]) -> None:
    """Print the files of a run that lack packets."""
    for name, found in captured.items():
        if found.dropped:
            file = describe_capture(f"{planner}/pcap/{name}.pcap", found)
            console.print(file, style="yellow", highlight=False, soft_wrap=True)
