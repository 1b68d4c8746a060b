"""A P4Runtime client by names, on gRPC's own client, and a server in this process for it to talk to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import grpc
from google.protobuf import text_format

from inakit.switch.server.p4runtime.messages import Message, Status, config, v1
from inakit.switch.server.p4runtime.service import P4RuntimeServer
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import Options

PROGRAMS = Path(__file__).parents[2] / "programs" / "doors"
CPU_PORT = 255
DEVICE = 7
WAIT_S = 10.0
SERVICE = "/p4.v1.P4Runtime/"
SET = v1.SetForwardingPipelineConfigRequest


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818
    """A call that failed: its code, its message, and the (code, message) of each part of a batch."""

    code: str
    message: str
    errors: tuple[tuple[int, str], ...] = ()

    @property
    def codes(self) -> list[int]:
        """The canonical codes of the parts."""
        return [code for code, _ in self.errors]


def p4info(name: str) -> Message:
    """The P4Info of a program of tests/switch/programs."""
    return text_format.Parse((PROGRAMS / f"{name}.p4info.txt").read_text(), config.P4Info())


def pipeline(name: str, cookie: int | None = None) -> Message:
    """The pipeline config of a program."""
    made = v1.ForwardingPipelineConfig(p4info=p4info(name), p4_device_config=(PROGRAMS / f"{name}.json").read_bytes())
    if cookie is not None:
        made.cookie.cookie = cookie
    return made


class Stream:
    """An open stream of a client."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.requests: Queue[Message | None] = Queue()
        call = channel.stream_stream(f"{SERVICE}StreamChannel", serialized, v1.StreamMessageResponse.FromString)
        self.call = call(iter(self.requests.get, None))
        self.told: Queue[Message] = Queue()
        Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        try:
            for message in self.call:
                self.told.put(message)
        except grpc.RpcError:
            pass

    def send(self, **update: Message) -> None:
        """Send a message that has this update."""
        self.requests.put(v1.StreamMessageRequest(**update))

    def next(self, kind: str) -> Message:
        """The next message, which must be of this kind."""
        message = self.told.get(timeout=WAIT_S)
        assert message.WhichOneof("update") == kind, message
        return getattr(message, kind)

    def silent(self, seconds: float = 0.2) -> bool:
        """Whether nothing comes for some time."""
        try:
            self.told.get(timeout=seconds)
        except Empty:
            return True
        return False

    def arbitrate(self, election_id: int | None, role: str = "", device: int = DEVICE, role_config: Any = None) -> None:
        """Send an arbitration update."""
        update = v1.MasterArbitrationUpdate(device_id=device)
        if election_id is not None:
            update.election_id.high, update.election_id.low = election_id >> 64, election_id & (1 << 64) - 1
        if role:
            update.role.name = role
        if role_config is not None:
            update.role.config.CopyFrom(role_config)
        self.send(arbitration=update)

    def standing(self) -> int:
        """The code of the next arbitration update."""
        return int(self.next("arbitration").status.code)

    def ended(self) -> str:
        """The code with which the server has ended the stream."""
        code = self.call.code()
        return str(code.name)

    def close(self) -> None:
        """End the stream."""
        self.requests.put(None)


class Client:
    """A controller. Requests are sent with `election_id` and `role`; names are those of `info`."""

    def __init__(self, target: str, election_id: int = 1, role: str = "") -> None:
        options = [("grpc.max_metadata_size", 1 << 24), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(target, options=options)
        self.election_id, self.role, self.info = election_id, role, config.P4Info()

    def close(self) -> None:
        """End all calls."""
        self.channel.close()

    def stream(self) -> Stream:
        """A new stream."""
        return Stream(self.channel)

    def unary(self, name: str, request: Message, response: Message) -> Message:
        """Make a call, or raise a `Refusal`."""
        try:
            return self.channel.unary_unary(f"{SERVICE}{name}", serialized, response.FromString)(request, timeout=60)
        except grpc.RpcError as error:
            raise refusal(error) from None

    def sign(self, request: Message) -> Message:
        """A request of this client."""
        request.device_id, request.role = DEVICE, self.role
        request.election_id.high, request.election_id.low = self.election_id >> 64, self.election_id & (1 << 64) - 1
        return request

    def set(self, action: int, given: Message | None = None) -> None:
        """Set a pipeline config."""
        request = self.sign(SET(action=action))
        if given is not None:
            request.config.CopyFrom(given)
            self.info = given.p4info
        self.unary("SetForwardingPipelineConfig", request, v1.SetForwardingPipelineConfigResponse)

    def get(self, kind: int = 0) -> Message:
        """The pipeline config."""
        request = v1.GetForwardingPipelineConfigRequest(device_id=DEVICE, response_type=kind)
        return self.unary("GetForwardingPipelineConfig", request, v1.GetForwardingPipelineConfigResponse)

    def write(self, *updates: Message, atomicity: int = 0) -> None:
        """Write updates."""
        request = self.sign(v1.WriteRequest(updates=updates, atomicity=atomicity))
        self.unary("Write", request, v1.WriteResponse)

    def insert(self, **entity: Message) -> None:
        """Write one new entity."""
        self.write(update(1, **entity))

    def modify(self, **entity: Message) -> None:
        """Write one entity anew."""
        self.write(update(2, **entity))

    def delete(self, **entity: Message) -> None:
        """Remove one entity."""
        self.write(update(3, **entity))

    def read(self, role: str = "", **entity: Message) -> list[Message]:
        """The entities that a request selects."""
        return [getattr(each, each.WhichOneof("entity")) for each in self.read_all([v1.Entity(**entity)], role)]

    def read_all(self, entities: Iterable[Message], role: str = "") -> list[Message]:
        """The entities that several requests select."""
        request = v1.ReadRequest(device_id=DEVICE, entities=entities, role=role)
        call = self.channel.unary_stream(f"{SERVICE}Read", serialized, v1.ReadResponse.FromString)
        try:
            return [entity for response in call(request, timeout=60) for entity in response.entities]
        except grpc.RpcError as error:
            raise refusal(error) from None

    # names

    def id(self, kind: str, name: str) -> int:
        """The id of what the P4Info calls `name`, or what ends with it."""
        found = [each.preamble for each in getattr(self.info, kind)]
        return next(int(each.id) for each in found if each.name == name or each.name.endswith(f".{name}"))

    def action(self, name: str, *values: int) -> Message:
        """A call of an action."""
        found = v1.Action(action_id=self.id("actions", name))
        for number, value in enumerate(values, start=1):
            found.params.add(param_id=number, value=octets(value))
        return found

    def entry(self, table: str, *matches: Message, call: Message | None = None, **more: Any) -> Message:
        """An entry of a table, whose matches are of the fields 1 and on."""
        found = v1.TableEntry(table_id=self.id("tables", table), **more)
        for number, match in enumerate(matches, start=1):
            if match is not None:
                found.match.add().CopyFrom(match)
                found.match[-1].field_id = number
        if call is not None:
            found.action.action.CopyFrom(call)
        return found


def update(kind: int, **entity: Message) -> Message:
    """An update of an entity: 1 inserts, 2 modifies, 3 deletes."""
    return v1.Update(type=kind, entity=v1.Entity(**entity))


def octets(value: int) -> bytes:
    """The canonical bytes of a number."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def exact(value: int) -> Message:
    """An exact match."""
    return v1.FieldMatch(exact=v1.FieldMatch.Exact(value=octets(value)))


def lpm(value: int, prefix: int) -> Message:
    """A match of a prefix."""
    return v1.FieldMatch(lpm=v1.FieldMatch.LPM(value=octets(value), prefix_len=prefix))


def ternary(value: int, mask: int) -> Message:
    """A match of the bits of a mask."""
    return v1.FieldMatch(ternary=v1.FieldMatch.Ternary(value=octets(value), mask=octets(mask)))


def ranged(low: int, high: int) -> Message:
    """A match of a range."""
    return v1.FieldMatch(range=v1.FieldMatch.Range(low=octets(low), high=octets(high)))


def optional(value: int) -> Message:
    """An optional match that is there."""
    return v1.FieldMatch(optional=v1.FieldMatch.Optional(value=octets(value)))


def serialized(message: Message) -> bytes:
    """The bytes of a message."""
    return bytes(message.SerializeToString())


def refusal(error: grpc.RpcError) -> Refusal:
    """What a failed call says."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    parts = Status.FromString(details).details if details else ()
    errors = [v1.Error.FromString(part.value) for part in parts]
    return Refusal(error.code().name, error.details(), tuple((each.canonical_code, each.message) for each in errors))


@contextmanager
def serving(cpu_port: int | None = CPU_PORT, address: str = "127.0.0.1:0") -> Iterator[tuple[ServedSwitch, str]]:
    """A switch without ports and a server for it, with the address at which clients find it."""
    served = ServedSwitch(Options(device_id=DEVICE, cpu_port=cpu_port, swap=True))
    server = P4RuntimeServer(served, address, DEVICE, None, cpu_port)
    server.start()
    try:
        yield served, f"127.0.0.1:{server.port}" if address.endswith(":0") else address
    finally:
        server.close()
        served.close()


@contextmanager
def primary(target: str, program: str | None = "served", election_id: int = 1) -> Iterator[tuple[Client, Stream]]:
    """A client that is the primary, with its stream, and `program` as its pipeline."""
    client = Client(target, election_id)
    stream = client.stream()
    stream.arbitrate(election_id)
    assert stream.standing() == 0
    if program is not None:
        client.set(SET.VERIFY_AND_COMMIT, pipeline(program))
    try:
        yield client, stream
    finally:
        stream.close()
        client.close()
