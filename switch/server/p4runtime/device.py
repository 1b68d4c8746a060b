"""One switch in P4Runtime: arbitration, pipeline configs, and requests to the running pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from threading import Lock, RLock

from google.protobuf import empty_pb2
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from inakit.switch.control.codecs import Code, Fault, Fields, copy_of, invalid, not_found
from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.digests import DigestBatch
from inakit.switch.control.p4info import Schema, read_schema
from inakit.switch.interpret.interpreted_switch import clock_from_now
from inakit.switch.interpret.switch_state import InterpretedState
from inakit.switch.program.bmv2_json import parse_program
from inakit.switch.server.p4runtime.arbitration import Arbitration, Client, RoleScope, packet_in, packet_out
from inakit.switch.server.p4runtime.messages import Message, v1
from inakit.switch.server.p4runtime.pipeline import (
    Answers,
    Pipeline,
    Written,
    all_written,
    make_pipeline,
    select,
    write,
)
from inakit.switch.server.served_switch import ServedSwitch

DEVICE_DATA = 3
"""The field number of the JSON in a `P4DeviceConfig`."""


def program_text(config: bytes) -> str:
    """The BMv2 JSON of a config, possibly inside a `P4DeviceConfig`; a fault if there is none."""
    found = [config]
    if config.lstrip()[:1] != b"{":
        try:
            fields = UnknownFieldSet(empty_pb2.Empty.FromString(config))
        except DecodeError as error:
            raise invalid("p4_device_config: neither BMv2 JSON of p4c-bm2-ss nor a P4DeviceConfig with it") from error
        found = [each.data for each in fields if each.field_number == DEVICE_DATA and isinstance(each.data, bytes)]
    if not found:
        raise invalid("p4_device_config: there is no program in it; expected BMv2 JSON of p4c-bm2-ss")
    try:
        return found[0].decode()
    except UnicodeDecodeError as error:
        raise invalid(f"p4_device_config: not a text ({error}); expected BMv2 JSON of p4c-bm2-ss") from error


VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT, RECONCILE_AND_COMMIT = range(1, 6)
"""The numbers of `SetForwardingPipelineConfigRequest.Action`."""

FULL = RoleScope()


@dataclass
class Saved:
    """A saved config that does not run yet; `updates` wait for it.

    They are checked on `pipeline`, whose data plane has no packets.
    """

    text: str
    pipeline: Pipeline
    updates: list[Message] = field(default_factory=list)


class Device:
    """A served switch. `lock` is held during a request, `arbitrating` while clients change."""

    def __init__(self, served: ServedSwitch, device_id: int, cpu_port: int | None) -> None:
        self.served, self.device_id, self.cpu_port = served, device_id, cpu_port
        self.lock, self.arbitrating = RLock(), Lock()
        self.arbitration = Arbitration(device_id, self.lock)
        self.committed: Pipeline | None = None
        self.saved: Saved | None = None
        served.ports.controllers.append(self.packet_in)
        served.digest_subscribers.append(self.learn)
        served.swap_subscribers.append(self.swapped)

    # clients

    def update(self, client: Client, message: Message) -> None:
        with self.arbitrating:
            self.arbitration.update(client, message)

    def leave(self, client: Client) -> None:
        """Forget a client."""
        with self.arbitrating:
            self.arbitration.leave(client)

    def expect_device(self, number: int) -> None:
        """Raise a fault for another device's id."""
        if number != self.device_id:
            raise not_found(f"there is no device {number}: this is {self.device_id}")

    # pipeline configs

    def set_config(self, request: Message) -> None:
        """Verify, save or run a pipeline config."""
        with self.lock:
            if not self.arbitration.check_primary(request).pipelines:
                raise Fault(Code.PERMISSION_DENIED, "the role's config does not let it set pipeline configs")
            action = request.action
            if action not in (VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT, RECONCILE_AND_COMMIT):
                raise invalid(f"unknown action {action} for a pipeline config")
            if action == COMMIT:
                self.commit(request)
                return
            text, schema = self.verify(request)
            if action == VERIFY_AND_SAVE:
                self.saved = Saved(text, self.shadow(request.config, schema))
            elif action == VERIFY_AND_COMMIT:
                self.run(text, request.config, schema)
            elif action == RECONCILE_AND_COMMIT:
                self.reconcile(text, request.config, schema)

    def verify(self, request: Message) -> tuple[str, Schema]:
        """The text of the program in a config, and the schema of its P4Info; a fault if they do not match."""
        if not request.HasField("config") or not request.config.HasField("p4info"):
            raise invalid("the config is missing: it has a p4info and a p4_device_config")
        text = program_text(request.config.p4_device_config)
        schema = read_schema(request.config.p4info, parse_program(text.encode(), "the program"))
        self.shadow(request.config, schema)
        return text, schema

    def shadow(self, config: Message, schema: Schema) -> Pipeline:
        """A pipeline without packets."""
        control = ControlPlane(InterpretedState(schema.program, clock_from_now(), Random(0), self.served.target))
        return make_pipeline(copy_of(config), schema, control, self.cpu_port, self.send)

    def commit(self, request: Message) -> None:
        """Run the saved config, and repeat the updates made since."""
        if request.HasField("config"):
            raise invalid("COMMIT takes no config: it runs the one that was saved")
        if self.saved is None:
            raise not_found("no config is saved: VERIFY_AND_SAVE one first")
        saved, self.saved = self.saved, None
        pipeline = self.run(saved.text, saved.pipeline.config, saved.pipeline.schema)
        write(pipeline, saved.updates, v1.WriteRequest.CONTINUE_ON_ERROR, FULL)

    def run(self, text: str, config: Message, schema: Schema) -> Pipeline:
        """Run a program with empty state."""
        self.committed, self.saved = None, None
        self.served.load(text)
        self.served.swap()
        self.committed = make_pipeline(copy_of(config), schema, self.served.control, self.cpu_port, self.send)
        return self.committed

    def reconcile(self, text: str, config: Message, schema: Schema) -> None:
        """Run a program with the present state; a fault if the state does not fit the new config."""
        state = [] if self.committed is None else list(all_written(self.committed))
        refused = [fault for fault in written(self.shadow(config, schema), state) if fault is not None]
        if refused:
            raise invalid(f"the state cannot be kept: {refused[0]}")
        written(self.run(text, config, schema), state)

    def swapped(self) -> None:
        """Forget the pipeline if another program was loaded by other means."""
        with self.lock:
            if self.committed is not None and self.committed.control is not self.served.control:
                self.committed = None

    def get_config(self, request: Message) -> Message:
        """The parts of the present pipeline's config that a request asks for; a fault if none is set.

        (The standard requires an empty answer if none is set; controllers expect the answer of simple_switch_grpc.)
        """
        self.expect_device(request.device_id)
        response, config = v1.GetForwardingPipelineConfigResponse(), self.expect_pipeline().config
        kind = v1.GetForwardingPipelineConfigRequest
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if request.response_type in (kind.ALL, kind.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if request.response_type in (kind.ALL, kind.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        response.config.SetInParent()
        return response

    @property
    def pipeline(self) -> Pipeline | None:
        """The pipeline for requests: the saved one if it does not run yet, else the running one."""
        return self.saved.pipeline if self.saved is not None else self.committed

    def expect_pipeline(self) -> Pipeline:
        """The pipeline for requests, or a fault."""
        found = self.pipeline
        if found is None:
            message = "no forwarding pipeline config is set: SetForwardingPipelineConfig is first"
            raise Fault(Code.FAILED_PRECONDITION, message)
        return found

    # requests

    def write(self, request: Message) -> Answers:
        """Carry out the updates of a primary, and return the result of each."""
        with self.lock:
            scope = self.arbitration.check_primary(request)
            answers = write(self.expect_pipeline(), request.updates, request.atomicity, scope)
            if self.saved is not None:
                done = zip(request.updates, answers, strict=True)
                self.saved.updates += [copy_of(update) for update, answer in done if answer is None]
            return answers

    def read(self, request: Message) -> tuple[list[Iterator[Message]], Answers]:
        """The entities that a request selects, and the reason for each part that cannot be answered."""
        self.expect_device(request.device_id)
        with self.lock:
            role = self.arbitration.roles.get(request.role)
            if role is None:
                raise not_found(f"there is no role '{request.role}'")
            return select(self.expect_pipeline(), request.entities, role.scope)

    # packets and notifications

    def packet_out(self, client: Client, message: Message) -> None:
        """Inject a primary's packet at the CPU port."""
        if not self.arbitration.is_primary(client) or not self.arbitration.roles[client.role or ""].scope.packets:
            raise Fault(Code.PERMISSION_DENIED, "only the primary of a role that handles packets sends them")
        if self.cpu_port is None:
            raise Fault(Code.FAILED_PRECONDITION, "the switch has no CPU port: start it with --cpu-port")
        pipeline = self.committed
        if pipeline is None:
            raise Fault(Code.FAILED_PRECONDITION, "no pipeline is running to take the packet")
        self.served.ports.inject(self.cpu_port, packet_out(pipeline.schema.packet_out, message))

    def packet_in(self, packet: bytes) -> None:
        """Send a packet that left by the CPU port to the primaries."""
        pipeline = self.committed
        if pipeline is None:
            return
        response = v1.StreamMessageResponse(packet=packet_in(pipeline.schema.packet_in, packet))
        for client, scope in self.arbitration.primaries():
            if scope.gets(response.packet):
                client.send(response)

    def acknowledge(self, message: Message) -> None:
        """Take the acknowledgement of a digest list."""
        with self.lock:
            self.expect_pipeline().digest_lists.acknowledge(message)

    def learn(self, batch: DigestBatch) -> None:
        """Take digests from the data plane."""
        with self.lock:
            if self.committed is not None:
                self.committed.digest_lists.learn(batch)

    def poll(self) -> None:
        """Collect digests, and send notifications that are due."""
        committed = self.committed
        if committed is not None:
            committed.control.digests.report()
        with self.lock:
            if self.committed is not None:
                self.committed.poll(self.ports_down())

    def ports_down(self) -> frozenset[int]:
        """The ports of the switch, present and past, by which no packet can leave."""
        return frozenset(self.served.ports.down)

    def send(self, place: str, number: int, fields: Fields) -> None:
        """Send a message at `place` of a `StreamMessageResponse` to the primaries with `number` in their scope."""
        response = v1.StreamMessageResponse(**{place: fields})
        for client, scope in self.arbitration.primaries():
            if scope.has(number):
                client.send(response)


def written(pipeline: Pipeline, state: list[Written]) -> Answers:
    updates = [v1.Update(type=kind, entity=entity) for kind, entity in state]
    return write(pipeline, updates, v1.WriteRequest.CONTINUE_ON_ERROR, FULL)
