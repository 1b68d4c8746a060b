"""What v1model.p4 and BMv2's simple_switch fix for every program: metadata, ports, how a packet came to a pipeline."""

from __future__ import annotations

STANDARD_METADATA = "standard_metadata"
"""The instance that holds the metadata of the switch itself."""

INTRINSIC = {
    "intrinsic_metadata": (
        "mcast_grp", "egress_rid", "priority", "ingress_global_timestamp", "egress_global_timestamp",
    ),
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "qid"),
}  # fmt: skip
"""Metadata of the switch that BMv2 knows as fields of other instances than `standard_metadata`.

Programs declare these instances, as those of P4-14 do, or aliases of these names for fields of `standard_metadata`.
"""

PORTS = 512
"""A port number has 9 bits."""

DROP_PORT = 511
"""A packet whose `egress_spec` is this one is dropped; it is the number of no port."""

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
"""The values of `standard_metadata.instance_type`."""

QUEUE_DEPTH = 64
"""Packets that a queue in front of egress holds unless it is told otherwise."""
