"""A switch that is served by Thrift in this process, interpreted, and clients that are connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from thrift_clients import Clients, connected

from inakit.switch.server.engines import VARIABLE, InterpretedEngine
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import Options
from inakit.switch.server.thrift.listener import ThriftServer

COMMANDED = Path(__file__).parents[2] / "programs" / "doors" / "commanded.json"
DEVICE = 7


@dataclass(frozen=True)
class Station:
    """A switch, its Thrift server, and clients that are connected to it."""

    switch: ServedSwitch
    server: ThriftServer
    clients: Clients

    @property
    def standard(self) -> Any:
        """The client of the service `standard`."""
        return self.clients.standard

    @property
    def notifications(self) -> str:
        """Where the switch publishes."""
        address: str = self.standard.bm_mgmt_get_info().notifications_socket
        return address

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """What leaves, as (port, packet), when a packet arrives."""
        engine = self.switch.ports.engine
        assert isinstance(engine, InterpretedEngine)
        return engine.interpreted.inject(port, packet)


@contextmanager
def served(program: Path = COMMANDED, swap: bool = False) -> Iterator[tuple[ServedSwitch, ThriftServer]]:
    """A switch without interfaces that runs `program`, and its Thrift server."""
    with TemporaryDirectory() as folder, patch.dict("os.environ", {VARIABLE: "interpreted"}):
        switch = ServedSwitch(Options(swap=swap))
        switch.load(program.read_text())
        switch.swap()
        server = ThriftServer(switch, 0, DEVICE, f"ipc://{folder}/notifications")
        try:
            server.start()
            yield switch, server
        finally:
            server.close()
            switch.close()


@contextmanager
def stationed(program: Path = COMMANDED, swap: bool = False) -> Iterator[Station]:
    """A served switch and clients."""
    with served(program, swap) as (switch, server), connected(server.port) as clients:
        yield Station(switch, server, clients)
