"""The calls of the gRPC service `p4.v1.P4Runtime`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import NoReturn

import grpc
from google.protobuf.message import DecodeError

from inakit.switch.server.p4runtime.client_stream import ClientStream
from inakit.switch.server.p4runtime.device import Device
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, fault_of
from inakit.switch.server.p4runtime.protocol.messages import Message, Status, packed, v1
from inakit.switch.server.p4runtime.read import responses
from inakit.switch.server.p4runtime.write import Answers, error_of

VERSION = "1.5.0"
"""The version of P4Runtime that the service has."""

DETAILS = "grpc-status-details-bin"
"""The metadata in which gRPC has the details of a status."""

STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}

Unary = Callable[["Service", Message, grpc.ServicerContext], Message]


class PartlyFailed(Exception):  # noqa: N818, it is an answer
    """A batch of which a part failed; `answers` has what became of each part."""

    def __init__(self, message: str, answers: Answers) -> None:
        super().__init__(message)
        self.answers = answers


def answered(call: Unary) -> Unary:
    """The call, whose faults become the status of the answer."""

    @wraps(call)
    def guarded(self: Service, request: Message, context: grpc.ServicerContext) -> Message:
        try:
            return call(self, request, context)
        except PartlyFailed as failed:
            abort_with(context, failed)
        except Exception as error:
            abort(context, fault_of(error))

    return guarded


class Service:
    """Answers the calls of clients for one device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def handler(self) -> grpc.GenericRpcHandler:
        """What a gRPC server takes."""
        unary, streamed = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        calls = {
            "Write": made(unary, one(v1.WriteRequest, self.write)),
            "Read": made(streamed, one(v1.ReadRequest, self.read)),
            "SetForwardingPipelineConfig": made(unary, one(v1.SetForwardingPipelineConfigRequest, self.set_config)),
            "GetForwardingPipelineConfig": made(unary, one(v1.GetForwardingPipelineConfigRequest, self.get_config)),
            "StreamChannel": made(grpc.stream_stream_rpc_method_handler, each(v1.StreamMessageRequest, self.stream)),
            "Capabilities": made(unary, one(v1.CapabilitiesRequest, self.capabilities)),
        }
        return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", calls)

    @answered
    def write(self, request: Message, _context: grpc.ServicerContext) -> Message:
        """Carry out updates; where one fails, the status has an error for each."""
        answers = self.device.write(request)
        if any(answers):
            raise PartlyFailed("a part of the updates was not carried out", answers)
        return v1.WriteResponse()

    def read(self, request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
        """The entities that a request selects; where a part of it is wrong, the status has an error for each."""
        try:
            found, answers = self.device.read(request)
            yield from responses(found)
        except Exception as error:
            abort(context, fault_of(error))
        if any(answers):
            abort_with(context, PartlyFailed("a part of the request could not be answered", answers))

    @answered
    def set_config(self, request: Message, _context: grpc.ServicerContext) -> Message:
        """Verify, save or run a pipeline config."""
        self.device.set_config(request)
        return v1.SetForwardingPipelineConfigResponse()

    @answered
    def get_config(self, request: Message, _context: grpc.ServicerContext) -> Message:
        """The pipeline config."""
        return self.device.get_config(request)

    @answered
    def capabilities(self, request: Message, _context: grpc.ServicerContext) -> Message:
        """The version of P4Runtime."""
        if request.device_id:
            self.device.expect_device(request.device_id)
        return v1.CapabilitiesResponse(p4runtime_api_version=VERSION)

    def stream(self, requests: Iterator[Message], context: grpc.ServicerContext) -> Iterator[Message]:
        """What a client is told while its stream is open."""
        stream = ClientStream(self.device, requests)
        context.add_callback(stream.end)
        yield from stream.messages()
        if stream.fault is not None:
            abort(context, stream.fault)


def made(kind: Callable[..., grpc.RpcMethodHandler], call: Callable[..., object]) -> object:
    """The handler of a call that takes bytes: gRPC never frees a call whose request it fails to parse itself."""
    return kind(call, response_serializer=serialized)


def one(kind: Message, call: Callable[..., object]) -> Callable[..., object]:
    """A call that parses its request."""

    def parsed(octets: bytes, context: grpc.ServicerContext) -> object:
        try:
            request = parse(kind, octets)
        except Fault as fault:
            abort(context, fault)
        return call(request, context)

    return parsed


def each(kind: Message, call: Callable[..., object]) -> Callable[..., object]:
    """A call that parses its requests."""
    return lambda requests, context: call((parse(kind, octets) for octets in requests), context)


def parse(kind: Message, octets: bytes) -> Message:
    """The message of a class that a client sent; a fault, with gRPC's code for it, if the bytes are none."""
    try:
        return kind.FromString(octets)
    except DecodeError as error:
        raise Fault(Code.INTERNAL, f"the request is no {kind.DESCRIPTOR.full_name}: {error}") from error


def serialized(message: Message) -> bytes:
    """The bytes of a message."""
    octets: bytes = message.SerializeToString()
    return octets


def abort(context: grpc.ServicerContext, fault: Fault) -> NoReturn:
    """End a call with the status of a fault."""
    context.abort(STATUS_CODES[int(fault.code)], str(fault))
    raise AssertionError


def abort_with(context: grpc.ServicerContext, failed: PartlyFailed) -> NoReturn:
    """End a call with a status that has an error for each answer."""
    details = [packed(error_of(answer)) for answer in failed.answers]
    status = Status(code=Code.UNKNOWN, message=str(failed), details=details)
    context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(failed))
    raise AssertionError
