"""A P4Runtime server on a TCP or Unix address, as simple_switch_grpc has it: calls, and a stream for each client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import NoReturn

import grpc
from google.protobuf.message import DecodeError

from inakit.switch.control.codecs import Code, Fault, fault_of, invalid
from inakit.switch.server.p4runtime.arbitration import Client
from inakit.switch.server.p4runtime.device import Device
from inakit.switch.server.p4runtime.messages import Message, Status, packed, v1
from inakit.switch.server.p4runtime.pipeline import Answers, error_of, responses
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import Tls
from inakit.topo.errors import InakitError, InputError, MachineError

MOST_WAITING = 1 << 14
"""The greatest number of messages that wait for a client; further packets and notifications are lost."""


class ClientStream:
    """A client, from its first message until its stream ends; `fault` is the reason if the server ends it."""

    def __init__(self, device: Device, requests: Iterator[Message]) -> None:
        self.device, self.requests = device, requests
        self.waiting: Queue[Message | None] = Queue()
        self.client = Client(self.tell)
        self.fault: Fault | None = None

    def messages(self) -> Iterator[Message]:
        """The messages to the client, until its stream ends."""
        Thread(target=self.take, name="P4Runtime client", daemon=True).start()
        try:
            while (message := self.waiting.get()) is not None:
                yield message
        finally:
            self.device.leave(self.client)

    def end(self) -> None:
        """End the stream after the queued messages."""
        self.waiting.put(None)

    def tell(self, message: Message) -> None:
        """Queue a message; if the queue is full, only arbitration updates are kept."""
        if self.waiting.qsize() < MOST_WAITING or message.HasField("arbitration"):
            self.waiting.put(message)

    def take(self) -> None:
        """Handle the client's messages until it stops sending or a message ends the stream."""
        try:
            for message in self.requests:
                self.take_one(message)
        except Fault as fault:
            self.fault = fault
        except Exception:  # the client is gone
            pass
        finally:
            self.end()

    def take_one(self, message: Message) -> None:
        """Handle one message. Only an arbitration update can end the stream; other errors are sent to the client."""
        kind = message.WhichOneof("update")
        try:
            match kind:
                case "arbitration":
                    self.device.update(self.client, message.arbitration)
                case "packet":
                    self.device.packet_out(self.client, message.packet)
                case "digest_ack":
                    self.device.acknowledge(message.digest_ack)
                case _:
                    raise invalid(f"a message of a stream is an arbitration, a packet or a digest_ack, not {kind}")
        except Exception as error:
            if kind == "arbitration":
                raise
            fault = fault_of(error)
            place, inner = REFUSED.get(kind, ("other", "other"))
            refused = {place: {inner: getattr(message, kind or "other")}}
            told = {"canonical_code": fault.code, "message": str(fault), **refused}
            self.tell(v1.StreamMessageResponse(error=told))


REFUSED = {"packet": ("packet_out", "packet_out"), "digest_ack": ("digest_list_ack", "digest_list_ack")}
"""The place of a refused message in a `StreamError`."""

VERSION = "1.5.0"
"""The version of P4Runtime that the service implements."""

DETAILS = "grpc-status-details-bin"
"""The gRPC metadata key for the details of a status."""

STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class PartlyFailed(Exception):  # noqa: N818, it is an answer
    """A batch that failed in part; `answers` has the result of each part."""

    def __init__(self, message: str, answers: Answers) -> None:
        super().__init__(message)
        self.answers = answers


class Service:
    """Answers the calls of clients for one device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def handler(self) -> grpc.GenericRpcHandler:
        """The calls of the service, for a gRPC server."""
        unary, streamed = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        one = {
            "Write": (v1.WriteRequest, self.write),
            "SetForwardingPipelineConfig": (v1.SetForwardingPipelineConfigRequest, self.set_config),
            "GetForwardingPipelineConfig": (v1.GetForwardingPipelineConfigRequest, self.device.get_config),
            "Capabilities": (v1.CapabilitiesRequest, self.capabilities),
        }
        calls = {name: unary(answered_once(kind, call)) for name, (kind, call) in one.items()}
        calls["Read"] = streamed(answered(v1.ReadRequest, self.read))
        calls["StreamChannel"] = grpc.stream_stream_rpc_method_handler(self.stream)
        return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", calls)

    def write(self, request: Message) -> Message:
        """Carry out updates; if one fails, the status has an error for each."""
        answers = self.device.write(request)
        if any(answers):
            raise PartlyFailed("a part of the updates was not carried out", answers)
        return v1.WriteResponse()

    def read(self, request: Message) -> Iterator[Message]:
        """The entities that a request selects; if a part is wrong, the status has an error for each."""
        found, answers = self.device.read(request)
        yield from responses(found)
        if any(answers):
            raise PartlyFailed("a part of the request could not be answered", answers)

    def set_config(self, request: Message) -> Message:
        """Verify, save or run a pipeline config."""
        self.device.set_config(request)
        return v1.SetForwardingPipelineConfigResponse()

    def capabilities(self, request: Message) -> Message:
        """The version of P4Runtime."""
        if request.device_id:
            self.device.expect_device(request.device_id)
        return v1.CapabilitiesResponse(p4runtime_api_version=VERSION)

    def stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """The messages to a client while its stream is open."""
        stream = ClientStream(self.device, (parse(v1.StreamMessageRequest, octets) for octets in requests))
        context.add_callback(stream.end)
        for message in stream.messages():
            yield message.SerializeToString()
        if stream.fault is not None:
            abort(context, stream.fault)


# Calls take and return bytes: gRPC never frees a call whose request it fails to parse itself.


def answered(
    kind: Message, call: Callable[[Message], Iterator[Message]]
) -> Callable[[bytes, grpc.ServicerContext], Iterator[bytes]]:
    """The call with parsing of its request; its errors become the status of the answer."""

    def guarded(octets: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            yield from (message.SerializeToString() for message in call(parse(kind, octets)))
        except Exception as error:
            abort(context, error)

    return guarded


def answered_once(kind: Message, call: Callable[[Message], Message]) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    """`answered` for a call with a single answer."""
    guarded = answered(kind, lambda request: iter([call(request)]))
    return lambda octets, context: next(guarded(octets, context))


def parse(kind: Message, octets: bytes) -> Message:
    """The message that a client sent; a fault, with gRPC's code for it, if the bytes do not parse."""
    try:
        return kind.FromString(octets)
    except DecodeError as error:
        raise Fault(Code.INTERNAL, f"the request is not a valid {kind.DESCRIPTOR.full_name}: {error}") from error


def abort(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End a call with the status of an error; a batch that failed in part has an error for each part."""
    if isinstance(error, PartlyFailed):
        details = [packed(error_of(answer)) for answer in error.answers]
        status = Status(code=Code.UNKNOWN, message=str(error), details=details)
        context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, str(error))
    fault = fault_of(error)
    context.abort(STATUS_CODES[int(fault.code)], str(fault))
    raise AssertionError


MOST_CALLS = 1024
"""The greatest number of simultaneous calls, counting streams; each has a thread. Further calls are refused."""

POLL_S = 0.02
"""The period of the checks of digest lists and idle timeouts."""

OPTIONS = (
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
)
"""The server accepts large programs and batches, and does not share its port."""

GRACE_S = 0.5
"""The time that calls have to end when the server ends."""


class P4RuntimeServer:
    """Serves a switch by P4Runtime from `start` to `close`. `port` is the listening port, chosen for port 0."""

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
        """Send due notifications until `close`."""
        while not self.ending.wait(POLL_S):
            try:
                self.device.poll()
            except InakitError as error:
                self.served.journal.error(str(error))
                time.sleep(1)

    def close(self) -> None:
        """Stop listening, and end all streams."""
        self.ending.set()
        if self.ticker.is_alive():
            self.ticker.join()
        self.server.stop(GRACE_S).wait()
        self.pool.shutdown(wait=False)


def credentials(tls: Tls) -> grpc.ServerCredentials:
    """The TLS credentials of a server; `InputError` if a file cannot be read."""

    def read(path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}; expected a PEM file") from error

    authorities = read(tls.authorities) if tls.authorities is not None else None
    return grpc.ssl_server_credentials(((read(tls.key), read(tls.certificate)),), authorities, tls.client_auth)
