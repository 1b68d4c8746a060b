"""What BMv2 tells unasked: digests, entries that expired, ports that came up or went down.

It publishes them with nanomsg, all in one format: a header of 32 bytes in the machine's byte order, without padding,
that begins with four letters, and records behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pynng import Pub0
from pynng.exceptions import NNGException

from inakit.switch.control.notifications import Expired
from inakit.switch.control.notifications import DigestBatch
from inakit.switch.program.expressions import FieldList
from inakit.topo.errors import MachineError

CONTEXT = 0

# letters, switch, context, list, buffer, number of samples
LEARNING = struct.Struct("=4sQIiQI")
# letters, switch, context, buffer, table, number of entries
AGEING = struct.Struct("=4sQIQiI")
# letters, switch, number of ports
PORTS = struct.Struct("=4sQI16x")
# port, 1 if it is up
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
        """Send a message to all who have subscribed; one who does not keep up misses it."""
        with suppress(NNGException):
            self._socket.send(message)

    def close(self) -> None:
        """Let subscribers go; a local address is free again."""
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
    """Entries that expired, a message for each table; messages are counted from `first`, `tables` has their numbers."""
    names = sorted({name for name, _ in expired}, key=tables.__getitem__)
    return [
        AGEING.pack(b"AGE|", device_id, CONTEXT, first + count, tables[name], len(handles)) + b"".join(handles)
        for count, name in enumerate(names)
        for handles in [[HANDLE.pack(handle) for table, handle in expired if table == name]]
    ]


def port_message(device_id: int, ports: Iterable[tuple[int, bool]]) -> bytes:
    """Ports, and whether they are up."""
    statuses = [PORT.pack(port, up) for port, up in ports]
    return PORTS.pack(b"PRT|", device_id, len(statuses)) + b"".join(statuses)
