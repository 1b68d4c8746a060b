"""A P4Runtime server on a TCP or Unix address, as simple_switch_grpc has it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import grpc

from inakit.switch.server.options import Tls
from inakit.switch.server.p4runtime.device import Device
from inakit.switch.server.p4runtime.service import Service
from inakit.switch.server.served_switch import ServedSwitch
from inakit.topo.errors import InakitError, InputError, MachineError

MOST_CALLS = 1024
"""Calls at once, a stream being one; each has a thread while it lasts. Further ones are refused."""

POLL_S = 0.02
"""How often digest lists and idle timeouts are looked at."""

OPTIONS = (
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
)
"""Large programs and batches are taken; no other server has the same port."""

GRACE_S = 0.5
"""How long calls have to end when the server does."""


class P4RuntimeServer:
    """Serves a switch by P4Runtime from `start` to `close`. `port` is the one it listens on, for an address with 0."""

    def __init__(
        self, served: ServedSwitch, address: str, device_id: int, tls: Tls | None = None, cpu_port: int | None = None
    ) -> None:
        self.served, self.address, self.tls = served, address, tls
        self.device = Device(served, device_id, cpu_port)
        self.pool = ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="P4Runtime")
        self.server = grpc.server(self.pool, options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
        self.server.add_generic_rpc_handlers((Service(self.device).handler(),))
        self.ending = Event()
        self.ticker = Thread(target=self.tick, name="P4Runtime notifications", daemon=True)
        self.port = 0

    def start(self) -> None:
        """Listen; `MachineError` if that cannot be."""
        try:
            if self.tls is None:
                self.port = self.server.add_insecure_port(self.address)
            else:
                self.port = self.server.add_secure_port(self.address, credentials(self.tls))
        except RuntimeError as error:
            raise MachineError(f"P4Runtime cannot listen on {self.address}: {error}; choose another address") from error
        self.server.start()
        self.ticker.start()
        self.served.journal.info(f"Server listening on {self.address}")

    def tick(self) -> None:
        """Send what is due, until `close`."""
        while not self.ending.wait(POLL_S):
            try:
                self.device.poll()
            except InakitError as error:
                self.served.journal.error(str(error))
                time.sleep(1)

    def close(self) -> None:
        """Listen no longer, and end all streams."""
        self.ending.set()
        if self.ticker.is_alive():
            self.ticker.join()
        self.server.stop(GRACE_S).wait()
        self.pool.shutdown(wait=False)


def credentials(tls: Tls) -> grpc.ServerCredentials:
    """What a server needs to speak TLS; `InputError` if a file cannot be read."""
    chain = ((read(tls.key), read(tls.certificate)),)
    authorities = read(tls.authorities) if tls.authorities is not None else None
    return grpc.ssl_server_credentials(chain, authorities, tls.client_auth)


def read(path: Path) -> bytes:
    """The bytes of a PEM file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a PEM file") from error
