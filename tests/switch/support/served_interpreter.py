"""An interpreted switch behind Thrift, in this process: its ports and queues keep what they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from switch.control.control_plane import ControlPlane
from switch.control.refusals import RefusalKind, Refused
from switch.control.requests.ageing import Expired
from switch.control.requests.learning import DigestBatch
from switch.interpret.interpreted_switch import InterpretedSwitch
from switch.program.read import parse_program
from switch.server.thrift.served import SwitchIdentity
from switch.server.thrift.service import ThriftService

COMMANDED = Path(__file__).parents[1] / "programs" / "commanded.json"


class RecordedPorts:
    """Ports by name only."""

    def __init__(self) -> None:
        self.interfaces: dict[int, str] = {}

    def add(self, port: int, interface: str) -> None:
        """Remember a port."""
        self.interfaces[port] = interface

    def remove(self, port: int) -> None:
        """Forget a port."""
        if port not in self.interfaces:
            raise Refused(RefusalKind.DEV_MGR_ERROR, f"no port {port}")
        del self.interfaces[port]

    def all(self) -> dict[int, str]:
        """All ports."""
        return self.interfaces

    def is_up(self, port: int) -> bool:
        """Whether a port is there."""
        return port in self.interfaces


class RecordedQueues:
    """Rates and depths by (port, priority)."""

    def __init__(self) -> None:
        self.rates: dict[tuple[int | None, int | None], int] = {}
        self.depths: dict[tuple[int | None, int | None], int] = {}

    def set_rate(self, rate_pps: int, port: int | None = None, priority: int | None = None) -> None:
        """Remember a rate."""
        self.rates[port, priority] = rate_pps

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Remember a depth."""
        self.depths[port, priority] = packets


class ServedInterpreter:
    """A program and its control plane, over the interpreter."""

    def __init__(self, json: str) -> None:
        self.ports, self.queues = RecordedPorts(), RecordedQueues()
        self.digest_subscribers: list[Callable[[DigestBatch], None]] = []
        self.expiry_subscribers: list[Callable[[list[Expired]], None]] = []
        self.load(json)

    def load(self, json: str) -> None:
        """Run another program at once."""
        self.json = json
        self.switch = InterpretedSwitch(parse_program(json.encode(), "test"))
        self.control = ControlPlane(self.switch.state)

    def swap(self) -> None:
        """Refuse: `load` has done it."""
        raise Refused(RefusalKind.NO_ONGOING_SWAP, "no program is prepared")


@contextmanager
def served(program: Path = COMMANDED) -> Iterator[tuple[ServedInterpreter, ThriftService]]:
    """A switch that runs `program`, and what answers its Thrift clients."""
    switch = ServedInterpreter(program.read_text())
    with TemporaryDirectory() as folder, ThriftService(switch, SwitchIdentity(7, 0, f"ipc://{folder}/n")) as service:
        yield switch, service
