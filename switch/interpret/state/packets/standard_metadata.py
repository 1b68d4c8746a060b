"""Where in a packet the metadata fields stand that the switch itself reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from inakit.switch.interpret.state.packets.packet import Packet, PacketPlaces


class MetadataSlot(NamedTuple):
    """The place of a metadata field that the switch itself uses, and as many ones as it has bits."""

    place: int
    ones: int

    def write(self, packet: Packet, value: int) -> None:
        """Write a number, cut to the field's bits."""
        packet[self.place] = value & self.ones


class Standard:
    """The metadata fields that the switch itself uses; one that the program lacks has a place of its own."""

    def __init__(self, places: PacketPlaces) -> None:
        def slot(name: str) -> MetadataSlot:
            return MetadataSlot(*places.intrinsic(name))

        self.ingress_port = slot("ingress_port")
        self.egress_spec = slot("egress_spec")
        self.egress_port = slot("egress_port")
        self.instance_type = slot("instance_type")
        self.packet_length = slot("packet_length")
        self.parser_error = slot("parser_error")
        self.checksum_error = slot("checksum_error")
        self.group = slot("mcast_grp")
        self.replica = slot("egress_rid")
        self.priority = slot("priority")
        self.received_us = slot("ingress_global_timestamp")
        self.egress_us = slot("egress_global_timestamp")
        self.queued_us = slot("enq_timestamp")
        self.queued_depth = slot("enq_qdepth")
        self.left_depth = slot("deq_qdepth")
        self.queue = slot("qid")
        self.waited_us = slot("deq_timedelta")
