"""Bytes that are no message: how calls with them end, and that nothing of them is left."""

from __future__ import annotations

import gc
import time

import grpc
import pytest
from p4runtime_client import SERVICE, WAIT_S, Client, Stream

pytest_plugins = ["p4runtime_fixtures"]

UNARY = {
    "Write": "WriteRequest",
    "SetForwardingPipelineConfig": "SetForwardingPipelineConfigRequest",
    "GetForwardingPipelineConfig": "GetForwardingPipelineConfigRequest",
    "Capabilities": "CapabilitiesRequest",
}
NO_MESSAGE = b"\xff\xff"


def assert_malformed(error: grpc.RpcError, name: str) -> None:
    """Assert that a call ended because its request is no message of this name."""
    assert error.code() == grpc.StatusCode.INTERNAL
    assert f"the request is not a valid p4.v1.{name}" in error.details()


def calls_held() -> int:
    """The calls that gRPC's server has in memory."""
    gc.collect()
    return sum(
        type(each).__name__ == "_RPCState" and type(each).__module__ == "grpc._server" for each in gc.get_objects()
    )


@pytest.mark.parametrize(("call", "name"), UNARY.items())
def test_a_request_that_is_no_message_is_told(client: Client, call: str, name: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        client.channel.unary_unary(f"{SERVICE}{call}")(NO_MESSAGE, timeout=WAIT_S)
    assert_malformed(raised.value, name)


def test_a_read_that_is_no_message_is_told(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(client.channel.unary_stream(f"{SERVICE}Read")(NO_MESSAGE, timeout=WAIT_S))
    assert_malformed(raised.value, "ReadRequest")


def test_a_stream_ends_with_what_is_no_message(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(client.channel.stream_stream(f"{SERVICE}StreamChannel")(iter([NO_MESSAGE]), timeout=WAIT_S))
    assert_malformed(raised.value, "StreamMessageRequest")


def test_calls_that_are_no_messages_are_not_kept(controller: tuple[Client, Stream]) -> None:
    client, _ = controller
    before = calls_held()
    assert before > 0, "the stream is open"
    for _ in range(20):
        with pytest.raises(grpc.RpcError):
            client.channel.unary_unary(f"{SERVICE}Write")(NO_MESSAGE, timeout=WAIT_S)
    until = time.monotonic() + WAIT_S
    while calls_held() > before and time.monotonic() < until:
        time.sleep(0.05)
    assert calls_held() <= before
