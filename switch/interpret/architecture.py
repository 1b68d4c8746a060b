"""BMv2's simple_switch: the path of a packet through parser, pipelines and deparser, and of its copies.

The switch processes one packet at a time: the packet and its copies run as far as possible before the next packet is
taken in. Packets in a queue with a rate continue later, by `advance`.
"""

from __future__ import annotations

from collections import deque

from inakit.switch.entries import MirrorSession, MulticastGroup
from inakit.switch.interpret.packet import NO_SESSION, Packet, Standard
from inakit.switch.interpret.parser import deparser_of, parser_of
from inakit.switch.interpret.pipelines import pipeline_of
from inakit.switch.interpret.switch_state import Context
from inakit.switch.program.bmv2_json import MALFORMED
from inakit.switch.program.program import EGRESS_CLONE, INGRESS_CLONE, NORMAL, RECIRCULATED, REPLICATED, RESUBMITTED
from inakit.topo.errors import RunError

MAX_PASSES = 4096
"""The greatest number of passes of a packet and its copies through the switch; more are a loop."""


class SimpleSwitch:
    """The program of `context` as a switch: `process` takes a packet in and returns the packets that leave.

    `incoming` holds the packets that wait for the parser, `queues` those that wait for egress.
    """

    def __init__(self, context: Context) -> None:
        for extra in context.program.extras:
            with context.located(extra.source):
                raise context.refusal(f"{extra.kind} '{extra.name}'")
        self.program, self.state, self.places = context.program, context.state, context.places
        self.note = context.trace.note
        self.parse = parser_of(context)
        self.ingress = pipeline_of(context, context.program.ingress)
        self.egress = pipeline_of(context, context.program.egress)
        self.deparse = deparser_of(context)
        self.standard = Standard(context.places)
        self.kept = {  # the places of the fields that a copy keeps, by the number of their list
            number: [context.places.field(field) for field in each.only_fields]
            for number, each in context.program.field_lists.items()
        }
        self.digests = context.program.digests
        self.initial = context.places.initial
        self.metadata = context.places.metadata
        self.incoming: deque[Packet] = deque()
        self.queues, self.drop_port = self.state.queues, self.state.target.drop_port
        self.sent: list[tuple[int, bytes]] = []

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """The packets that leave, as (port, packet), when `data` arrives at `port`; `RunError` if the program fails."""
        self.take_in(port, data)
        try:
            sent = self.advance(MAX_PASSES)
            if self.incoming or self.queues.ready:
                raise RunError(f"a packet has made {MAX_PASSES} passes and copies: the program sends it in a loop")
            return sent
        finally:
            self.incoming.clear()
            self.queues.ready.clear()

    def take_in(self, port: int, data: bytes) -> None:
        """Take in `data` at `port`; `advance` processes it."""
        self.incoming.append(self.arrival(port, data))

    def advance(self, passes: int) -> list[tuple[int, bytes]]:
        """Return the packets that leave within `passes` passes of ready packets; `RunError` if the program fails."""
        self.sent = []
        try:
            for _ in range(passes):
                if (leaving := self.queues.pop()) is not None:
                    self.pass_egress(*leaving)
                elif self.incoming:
                    self.pass_ingress(self.incoming.popleft())
                else:
                    break
        except MALFORMED as error:
            raise RunError(f"a packet finds that '{self.program.name}' is not as p4c writes it: {error!r}") from error
        return self.sent

    def arrival(self, port: int, data: bytes) -> Packet:
        """An arriving packet with its metadata."""
        packet, standard = Packet(self.initial), self.standard
        packet.data, packet.port, packet.received, packet.length = data, port, len(data), len(data)
        standard.ingress_port.write(packet, port)
        standard.packet_length.write(packet, len(data))
        standard.received_us.write(packet, self.state.clock())
        self.note(f"Processing packet received on port {port}")
        return packet

    def pass_ingress(self, packet: Packet) -> None:
        """Run parser and ingress, make copies and the digest; then send the packet to the parser, a group or a port."""
        standard, length = self.standard, packet.length
        self.parse(packet)
        packet[standard.parser_error.place] = packet.error
        packet[standard.checksum_error.place] = int(packet.bad_checksum)
        self.note("Pipeline 'ingress': start")
        self.ingress(packet)
        self.note("Pipeline 'ingress': end")
        packet.exited = False
        if packet.session != NO_SESSION:
            self.clone_ingress(packet, length)
        if packet.digest:
            self.learn(packet)
        if packet.resubmit:
            self.return_to_parser(packet, packet.data, length, RESUBMITTED, packet.resubmit)
        elif packet[standard.group.place]:
            packet[standard.instance_type.place] = REPLICATED
            self.replicate(packet, packet[standard.group.place])
        elif packet[standard.egress_spec.place] == self.drop_port:
            self.note("Dropping packet at the end of ingress")
        else:
            packet[standard.instance_type.place] = NORMAL
            self.enqueue(packet[standard.egress_spec.place], packet)

    def clone_ingress(self, packet: Packet, length: int) -> None:
        """Send a copy of the packet as received, parsed again, with the kept fields as ingress left them."""
        mirror = self.mirror_of(packet)
        if mirror is None:
            return
        self.note("Cloning packet at ingress")
        copy = packet.copy_with(self.initial)
        copy.length = length
        self.standard.ingress_port.write(copy, packet.port)
        self.parse(copy)
        self.keep(copy, packet, packet.session_list, INGRESS_CLONE)
        self.send_clone(copy, mirror)

    def mirror_of(self, packet: Packet) -> MirrorSession | None:
        """The mirror session that an action requested, if it is set up; clears the request."""
        number, packet.session = packet.session, NO_SESSION
        return self.state.sessions.get(number)

    def keep(self, copy: Packet, packet: Packet, fields: int, instance_type: int) -> None:
        """Set a copy's metadata to 0, except for the fields of list `fields`."""
        copy[: self.metadata] = self.initial[: self.metadata]
        for place in self.kept.get(fields, ()):
            copy[place] = packet[place]
        copy[self.standard.instance_type.place] = instance_type

    def send_clone(self, copy: Packet, mirror: MirrorSession) -> None:
        """Send a copy as its mirror session says, cut to the session's size."""
        if mirror.size_bytes:
            copy.truncated = mirror.size_bytes
        if mirror.group is not None:
            self.replicate(copy, mirror.group)
        if mirror.port is not None:
            self.enqueue(mirror.port, copy)

    def learn(self, packet: Packet) -> None:
        """Store the digest that an action requested; clears the request."""
        digest, packet.digest = self.digests.get(packet.digest), 0
        if digest is not None:
            values = tuple(packet[self.places.field(each)] & (1 << each.bits) - 1 for each in digest.only_fields)
            self.state.digests.append((digest.name, values))

    def return_to_parser(self, packet: Packet, data: bytes, length: int, instance_type: int, fields: int) -> None:
        """Return the packet to the parser as `data`, with metadata 0 except for the fields of list `fields`."""
        self.note("Resubmitting packet" if instance_type == RESUBMITTED else "Recirculating packet")
        copy = packet.copy_with(self.initial)
        copy.data, copy.length = data, length
        self.keep(copy, packet, fields, instance_type)
        self.standard.packet_length.write(copy, length)
        if instance_type == RECIRCULATED:
            copy.received = length
        self.incoming.append(copy)

    def replicate(self, packet: Packet, number: int) -> None:
        """Send a copy to each port of a multicast group; send none if the group is unknown."""
        group = self.state.groups.get(number, MulticastGroup(number, ()))
        for replica, port in group.replicas:
            self.note(f"Replicating packet on port {port}")
            self.standard.replica.write(packet, replica)
            self.enqueue(port, packet.copy_with(packet))

    def enqueue(self, port: int, packet: Packet) -> None:
        """Put a packet into the queue of its priority; a packet with a priority that its port lacks is lost."""
        standard, priority = self.standard, packet[self.standard.priority.place]
        if priority >= self.queues.priorities:
            self.note("Priority out of range, dropping packet")
            return
        self.note(f"Egress port is {port}")
        standard.queued_us.write(packet, self.state.clock())
        standard.queued_depth.write(packet, self.queues.size(port, priority))
        if not self.queues.push(port, priority, packet):
            self.note("Queue is full, dropping packet")

    def pass_egress(self, port: int, priority: int, packet: Packet) -> None:
        """Run egress and deparser."""
        standard, now = self.standard, self.state.clock()
        standard.left_depth.write(packet, self.queues.size(port, priority))
        standard.queue.write(packet, priority)
        standard.egress_us.write(packet, now)
        standard.waited_us.write(packet, now - packet[standard.queued_us.place])
        standard.egress_port.write(packet, port)
        standard.egress_spec.write(packet, self.drop_port + 1)
        standard.packet_length.write(packet, packet.length)
        self.note("Pipeline 'egress': start")
        self.egress(packet)
        self.note("Pipeline 'egress': end")
        if packet.session != NO_SESSION:
            self.clone_egress(packet)
        if packet[standard.egress_spec.place] == self.drop_port:
            self.note("Dropping packet at the end of egress")
            return
        data = self.deparse(packet)
        if packet.recirculate:
            self.return_to_parser(packet, data, len(data), RECIRCULATED, packet.recirculate)
            return
        data = data if packet.truncated is None else data[: packet.truncated]
        self.note(f"Transmitting packet of size {len(data)} out of port {port}")
        self.sent.append((port, data))

    def clone_egress(self, packet: Packet) -> None:
        """Send a copy of the packet in its present state, which passes egress itself."""
        mirror = self.mirror_of(packet)
        if mirror is None:
            return
        self.note("Cloning packet at egress")
        copy = packet.copy_with(packet)
        self.keep(copy, packet, packet.session_list, EGRESS_CLONE)
        self.send_clone(copy, mirror)
