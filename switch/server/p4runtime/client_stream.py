"""One client's stream: its messages are taken in by a thread, and what it is told waits in a queue."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue
from threading import Thread

from inakit.switch.server.p4runtime.device import Device
from inakit.switch.server.p4runtime.protocol.faults import Fault, fault_of, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.stream.arbitration import Client

MOST_WAITING = 1 << 14
"""A client that takes nothing has at most so many messages waiting: further packets and notifications are lost."""


class ClientStream:
    """A client, from its first message until its stream ends; `fault` is why the server ends it."""

    def __init__(self, device: Device, requests: Iterator[Message]) -> None:
        self.device, self.requests = device, requests
        self.waiting: Queue[Message | None] = Queue()
        self.client = Client(self.tell)
        self.fault: Fault | None = None

    def messages(self) -> Iterator[Message]:
        """What the client is told, until its stream ends."""
        Thread(target=self.take, name="P4Runtime client", daemon=True).start()
        try:
            while (message := self.waiting.get()) is not None:
                yield message
        finally:
            self.device.leave(self.client)

    def end(self) -> None:
        """End the stream, after what waits."""
        self.waiting.put(None)

    def tell(self, message: Message) -> None:
        """Put a message into the queue; all but arbitration updates are lost if it is full."""
        if self.waiting.qsize() < MOST_WAITING or message.HasField("arbitration"):
            self.waiting.put(message)

    def take(self) -> None:
        """Take in the client's messages, until it sends no more or one ends the stream."""
        try:
            for message in self.requests:
                self.take_one(message)
        except Fault as fault:
            self.fault = fault
        except Exception:
            pass
        finally:
            self.end()

    def take_one(self, message: Message) -> None:
        """Take in one message. Only an arbitration update can end the stream; other errors are told."""
        kind = message.WhichOneof("update")
        if kind == "arbitration":
            self.device.update(self.client, message.arbitration)
            return
        try:
            self.take_other(kind, message)
        except Exception as error:
            self.tell(error_message(message, fault_of(error)))

    def take_other(self, kind: str | None, message: Message) -> None:
        """Take in a packet or the acknowledgement of a digest list."""
        match kind:
            case "packet":
                self.device.packet_out(self.client, message.packet)
            case "digest_ack":
                self.device.acknowledge(message.digest_ack)
            case _:
                raise invalid(f"a message of a stream is an arbitration, a packet or a digest_ack, not {kind}")


def error_message(message: Message, fault: Fault) -> Message:
    """The `StreamError` for a message that was not taken."""
    response = v1.StreamMessageResponse()
    error = response.error
    error.canonical_code, error.message = fault.code, str(fault)
    match message.WhichOneof("update"):
        case "packet":
            error.packet_out.packet_out.CopyFrom(message.packet)
        case "digest_ack":
            error.digest_list_ack.digest_list_ack.CopyFrom(message.digest_ack)
        case _:
            error.other.other.CopyFrom(message.other)
    return response
