"""Notifications of a running switch, as in BMv2: digests, expired entries, ports that go up or down.

They are published with nanomsg in one format: a 32-byte header in the machine's byte order, without padding, that
begins with four letters, followed by records.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from pynng import Pub0
from pynng.exceptions import NNGException

from inakit.switch.control.digests import DigestBatch
from inakit.switch.control.tables import Expired
from inakit.switch.program.program import FieldList
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.thrift.services import TABLE, resource_ids
from inakit.topo.errors import MachineError

CONTEXT = 0

# letters, switch, context, list, buffer, number of samples
LEARNING = struct.Struct("=4sQIiQI")
# letters, switch, context, buffer, table, number of entries
AGEING = struct.Struct("=4sQIQiI")
# letters, switch, number of ports
PORTS = struct.Struct("=4sQI16x")
# port, 1 if up
PORT = struct.Struct("=ii")
# an entry
HANDLE = struct.Struct("=I")

LOCAL = "ipc://"


class Publisher:
    """Publishes messages at a nanomsg address until it is closed."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = Pub0()
        try:
            self._socket.listen(address)
        except NNGException as error:
            self._socket.close()
            why = f"notifications cannot be published at {address} ({error})"
            raise MachineError(f"{why}: end the switch that does so, or choose another --notifications-addr") from error

    def send(self, message: bytes) -> None:
        """Send a message to all subscribers; slow ones miss it."""
        with suppress(NNGException):
            self._socket.send(message)

    def close(self) -> None:
        """Close the socket, and free a local address."""
        self._socket.close()
        if self.address.startswith(LOCAL):
            Path(self.address.removeprefix(LOCAL)).unlink(missing_ok=True)


def learning_message(device_id: int, batch: DigestBatch, fields: FieldList) -> bytes:
    """A batch of digests; each field takes whole bytes, the most significant first."""
    sizes = [(field.bits + 7) // 8 for field in fields.fields]
    samples = (
        value.to_bytes(size, "big") for sample in batch.samples for value, size in zip(sample, sizes, strict=True)
    )
    header = LEARNING.pack(b"LEA|", device_id, CONTEXT, batch.list_id, batch.buffer, len(batch.samples))
    return header + b"".join(samples)


def ageing_messages(device_id: int, first: int, expired: Sequence[Expired], tables: Mapping[str, int]) -> list[bytes]:
    """Expired entries, a message for each table; messages are numbered from `first`, tables by `tables`."""
    names = sorted({name for name, _ in expired}, key=tables.__getitem__)
    return [
        AGEING.pack(b"AGE|", device_id, CONTEXT, first + count, tables[name], len(handles)) + b"".join(handles)
        for count, name in enumerate(names)
        for handles in [[HANDLE.pack(handle) for table, handle in expired if table == name]]
    ]


PORTS_EVERY_S = 0.2
"""The period of the checks of ports."""


class Notifier:
    """Publishes until it is closed; messages of expired entries are numbered from 0."""

    def __init__(self, switch: ServedSwitch, publisher: Publisher, device_id: int) -> None:
        self._switch, self._publisher, self._device_id = switch, publisher, device_id
        self._sweeps = 0
        self._up: set[int] = set()
        self._closed = Event()
        switch.digest_subscribers.append(self.tell_learned)
        switch.expiry_subscribers.append(self.tell_expired)
        Thread(target=self._watch_ports, name="ports", daemon=True).start()

    def close(self) -> None:
        """Stop publishing."""
        self._closed.set()
        self._switch.digest_subscribers.remove(self.tell_learned)
        self._switch.expiry_subscribers.remove(self.tell_expired)

    def tell_learned(self, batch: DigestBatch) -> None:
        """Publish a batch of digests, unless another program runs now."""
        fields = self._switch.control.program.digests.get(batch.list_id)
        if fields is not None and fields.name == batch.name:
            self._publisher.send(learning_message(self._device_id, batch, fields))

    def tell_expired(self, expired: Sequence[Expired]) -> None:
        """Publish the entries that have expired."""
        tables = resource_ids(self._switch.json)[TABLE]
        for message in ageing_messages(self._device_id, self._sweeps, expired, tables):
            self._publisher.send(message)
            self._sweeps += 1

    def tell_ports(self) -> None:
        """Publish the ports that have gone up or down since the last call."""
        ports = self._switch.ports
        known = ports.all()
        up = {port for port in known if ports.is_up(port)}
        changed = sorted((up ^ self._up) & set(known))
        self._up = up
        if changed:
            statuses = (PORT.pack(port, port in up) for port in changed)
            self._publisher.send(PORTS.pack(b"PRT|", self._device_id, len(changed)) + b"".join(statuses))

    def _watch_ports(self) -> None:
        while not self._closed.wait(PORTS_EVERY_S):
            self.tell_ports()
