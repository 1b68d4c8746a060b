"""What planners know of `p4/ina.p4`: its constants, and the full names of its tables, actions, registers and counters.

Constants have the names that they have in the P4 source. The format of packets is not here:
`inakit.traffic.wire.packet_format` reads it from the program itself. Whoever names a part of the program in Python
takes the name from here.
"""

from __future__ import annotations

# Sizes

SLOTS_PER_PIPELINE = 512
PIPELINES = 8
PORTS = 512
COPIES = 128
"""By so many ports targets `fast` and `virtual` let a packet leave at once; `bmv2` has no such bound."""
BITMAP_BITS = 64
"""The bits of a slot's bitmap, one for each child of an aggregator."""

# Kinds of INA packets

KIND_GRADIENT, KIND_RESULT, KIND_NOTICE = 1, 2, 3

# What an aggregator does with its slots, in the entry of each of its children

POLICY_ROOT = 0x01
"""Its sum is the result, and goes to all workers: the aggregator has no parent."""
POLICY_HOLD = 0x02
"""What is sent again is summed as well, so that no partial sum ever leaves."""
POLICY_SHADOW = 0x04
"""A finished sum stays in its slot for those who ask again."""
POLICY_EVICT = 0x08
"""A fragment of higher priority takes a busy slot."""
POLICY_NOTIFY = 0x10
"""A fragment that finds its slot busy goes back as a notice with ECN."""

# Tables, with the actions of their entries

PIPELINE, SET_PIPELINE = "InaIngress.pipeline", "InaIngress.set_pipeline"
"""By ingress port: the number of the pipeline."""
ADMISSION, ADMIT = "InaIngress.admission", "InaIngress.admit"
"""By ingress port, kind, job, tree and label: such packets may come in."""
AGGREGATION, AGGREGATE = "InaIngress.aggregation", "InaIngress.aggregate"
"""By pipeline, job, tree and label: the label's bits, all bits, first slot, slots, own label, window, policy."""
FORWARD = "InaIngress.forward"
"""By job, tree and label: `SEND`, towards the root."""
IPV4_ROUTE = "InaIngress.ipv4_route"
"""By IPv4 address: `SEND`, towards the host."""
SEND = "InaIngress.send"
"""By a port."""
RESULTS, REPLICATE = "InaIngress.results", "InaIngress.replicate"
"""By job and tree: the multicast group of results."""

# Faults on demand

ARRIVING, ARRIVAL_FAULTY = "InaIngress.arrival.arriving", "InaIngress.arrival.faulty"
"""By ingress port: the shares of packets that are lost, and held back."""
WAYS, DOUBLED = "InaIngress.doubling.ways", "InaIngress.doubling.doubled"
"""By egress port and multicast group: the share of packets that are doubled, and the group to which they go instead."""
LEAVING, DEPARTURE_FAULTY = "InaEgress.departure.leaving", "InaEgress.departure.faulty"
"""By egress port: the share of packets that are lost."""
DRAWS = ("InaIngress.arrival.draws", "InaIngress.doubling.draws", "InaEgress.departure.draws")
"""The registers that hold, for each port, the state of its random numbers."""

# Marks of congestion

QUEUES, PHANTOM = "InaEgress.marks.queues", "InaEgress.marks.phantom"
"""By egress port: how many bytes its link sends in a microsecond, and how many wait in a long queue, times 2^16."""

# Registers of the slots; `SUM` with a number is that of one element

SLOT_OWNER, SLOT_SEQ, SLOT_BITMAP = "InaIngress.slot_owner", "InaIngress.slot_seq", "InaIngress.slot_bitmap"
SUM = "InaIngress.sum"

# Counters: of outcomes, and by port

EVENTS = "InaIngress.events"
RECEIVED, REJECTED = "InaIngress.received", "InaIngress.rejected"
SENT, REPLICATED, LOST = "InaEgress.sent", "InaEgress.replicated", "InaEgress.lost"
