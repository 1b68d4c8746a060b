"""A switch with a few aggregation trees, and the packets that arrive at it.

Ports 1 to 4 are pipeline 0, ports 5 to 8 are pipeline 1; port 8 leads to the root.

    job 1, tree 1   labels 11, 12, 13 at ports 1, 2, 3 are summed in pipeline 0 under label 20;
                    label 31, a descendant of 11, passes by port 1;
                    labels 14, 15 at ports 5, 6 are summed in pipeline 1 under label 21
    job 1, tree 2   labels 11, 12 at ports 1, 2, in the same slots of pipeline 0, under label 20
    job 1, tree 3   label 11 at port 1 alone under label 20
    job 2, tree 1   labels 11, 12 at ports 1, 2, summed here as the root; results go back to them
    job 2, tree 2   label 11 at port 1 alone, with its root here
    job 3, tree 1   label 11 at port 1 is not aggregated here
    job 4, tree 1   labels 11, 12 at ports 1, 2, summed here as the root, with finished sums kept (SwitchML)
    job 4, tree 2   the same one level below the root, under label 20
    job 5, trees 1, 2   labels 11, 12 at ports 1, 2, in the same slots; the higher priority takes them (ESA)
    job 6, tree 1   labels 11, 12 at ports 1, 2, summed here as the root; early fragments go back (P4INC-AOI)
    job 7, tree 1   labels 14, 15 at ports 5, 6, below the root under label 20; losses are repaired, results kept
    job 7, tree 2   the same as the root

The links behind ports 1 and 8 never send, so that MARKED bytes that left by them are a long queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address

from inakit.planner.install.ina_program import POLICY_EVICT as EVICT
from inakit.planner.install.ina_program import POLICY_HOLD as HOLD
from inakit.planner.install.ina_program import POLICY_NOTIFY as NOTIFY
from inakit.planner.install.ina_program import POLICY_REPAIR as REPAIR
from inakit.planner.install.ina_program import POLICY_ROOT as ROOT
from inakit.planner.install.ina_program import POLICY_SHADOW as SHADOW
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.traffic.wire.packet_format import Kind

SLOTS = 4
ROOT_PORT = 8
SERVER_IP = "10.0.0.100"
MARKED = 2000
"""In bytes."""
PIPELINE = {port: 0 if port <= 4 else 1 for port in range(1, 9)}

SWITCHML, ESA, P4INC, HOPS = HOLD | SHADOW, EVICT, HOLD | SHADOW | NOTIFY, HOLD | SHADOW | REPAIR

# (job, tree, label, ingress port, child bit, full, own label, policy)
CHILDREN = (
    (1, 1, 11, 1, 0b001, 0b111, 20, 0),
    (1, 1, 12, 2, 0b010, 0b111, 20, 0),
    (1, 1, 13, 3, 0b100, 0b111, 20, 0),
    (1, 1, 31, 1, 0, 0b111, 20, 0),
    (1, 1, 14, 5, 0b01, 0b11, 21, 0),
    (1, 1, 15, 6, 0b10, 0b11, 21, 0),
    (1, 2, 11, 1, 1 << 62, 3 << 61, 20, 0),
    (1, 2, 12, 2, 1 << 61, 3 << 61, 20, 0),
    (1, 3, 11, 1, 0b1, 0b1, 20, 0),
    (2, 1, 11, 1, 0b01, 0b11, 0, ROOT),
    (2, 1, 12, 2, 0b10, 0b11, 0, ROOT),
    (2, 2, 11, 1, 0b1, 0b1, 0, ROOT),
    (4, 1, 11, 1, 0b01, 0b11, 0, SWITCHML | ROOT),
    (4, 1, 12, 2, 0b10, 0b11, 0, SWITCHML | ROOT),
    (4, 2, 11, 1, 0b01, 0b11, 20, SWITCHML),
    (4, 2, 12, 2, 0b10, 0b11, 20, SWITCHML),
    (5, 1, 11, 1, 0b01, 0b11, 20, ESA),
    (5, 1, 12, 2, 0b10, 0b11, 20, ESA),
    (5, 2, 11, 1, 0b01, 0b11, 21, ESA),
    (5, 2, 12, 2, 0b10, 0b11, 21, ESA),
    (6, 1, 11, 1, 0b01, 0b11, 0, P4INC | ROOT),
    (6, 1, 12, 2, 0b10, 0b11, 0, P4INC | ROOT),
    (7, 1, 14, 5, 0b01, 0b11, 20, HOPS),
    (7, 1, 15, 6, 0b10, 0b11, 20, HOPS),
    (7, 2, 14, 5, 0b01, 0b11, 0, HOPS | ROOT),
    (7, 2, 15, 6, 0b10, 0b11, 0, HOPS | ROOT),
)
FIRST_SLOT = {2: 3 * SLOTS, 4: SLOTS, 6: 2 * SLOTS, 7: SLOTS}
"""By job, where it is not 0."""
WINDOW = {6: 2 * SLOTS}
"""By job, where it is not SLOTS: a fragment may be early for its slot."""
UNAGGREGATED = ((3, 1, 11, 1),)
RESULT_GROUPS = {
    (1, 1): (1, 2, 3, 5, 6),
    (1, 2): (1, 2),
    (2, 1): (1, 2),
    (2, 2): (1,),
    (4, 1): (1, 2),
    (5, 1): (1, 2),
    (6, 1): (1, 2),
    (7, 1): (5, 6),
    (7, 2): (5, 6),
}
RELEASED = ((1, 1, ROOT_PORT, 0, 0), (7, 1, ROOT_PORT, 0b11, HOPS))
"""(job, tree, port, full, policy): results that come by this port free slots of its pipeline, or are kept there."""


def worker_ip(port: int) -> str:
    """The address of the worker at this port."""
    return f"10.0.0.{port}"


def address(text: str) -> int:
    """An IPv4 address as a number."""
    return int(IPv4Address(text))


def aggregation_entries() -> Iterable[TableEntry]:
    """Entries that aggregate, and admit, the gradients of `CHILDREN`."""
    for job, tree, label, port, child, full, own_label, policy in CHILDREN:
        yield admission(port, Kind.GRADIENT, job, tree, label)
        yield TableEntry(
            "InaIngress.aggregation",
            (PIPELINE[port], job, tree, label),
            "InaIngress.aggregate",
            (child, full, FIRST_SLOT.get(job, 0), SLOTS, own_label, WINDOW.get(job, SLOTS), policy),
        )
    for job, tree, port, full, policy in RELEASED:
        key = (PIPELINE[port], job, tree, 0)
        params = (0, full, FIRST_SLOT.get(job, 0), SLOTS, 0, SLOTS, policy)
        yield TableEntry("InaIngress.aggregation", key, "InaIngress.aggregate", params)
    for job, tree, label, port in UNAGGREGATED:
        yield admission(port, Kind.GRADIENT, job, tree, label)


def forwarding_entries() -> Iterable[TableEntry]:
    """Entries that send gradients and sums to the root, and other packets to their addresses."""
    senders = {(job, tree, label) for job, tree, label, *_ in (*CHILDREN, *UNAGGREGATED)}
    sums = {(job, tree, own) for job, tree, _, _, _, _, own, policy in CHILDREN if not policy & ROOT}
    for key in sorted(senders | sums):
        yield TableEntry("InaIngress.forward", key, "InaIngress.send", (ROOT_PORT,))
    yield route(SERVER_IP, ROOT_PORT)
    for port in (1, 2, 3, 5, 6):
        yield route(worker_ip(port), port)


def queue_entries() -> Iterable[TableEntry]:
    """Entries that measure the queues behind two ports."""
    for port in (1, ROOT_PORT):
        yield TableEntry("InaEgress.marks.queues", (port,), "InaEgress.marks.phantom", (0, MARKED << 16))


def result_entries() -> Iterable[TableEntry]:
    """Entries that admit and replicate what comes from the root."""
    for group, (job, tree) in enumerate(RESULT_GROUPS, start=1):
        yield TableEntry("InaIngress.results", (job, tree), "InaIngress.replicate", (group,))
        yield admission(ROOT_PORT, Kind.RESULT, job, tree, 0)
        yield admission(ROOT_PORT, Kind.NOTICE, job, tree, 0)


def admission(port: int, kind: Kind, job: int, tree: int, label: int) -> TableEntry:
    """The entry that admits packets of this kind at a port."""
    return TableEntry("InaIngress.admission", (port, kind, job, tree, label), "InaIngress.admit")


def route(ip: str, port: int) -> TableEntry:
    """The entry that sends packets to an address."""
    return TableEntry("InaIngress.ipv4_route", (address(ip),), "InaIngress.send", (port,))


def example_entries() -> SwitchEntries:
    """The entries of the switch described above."""
    pipelines = (
        TableEntry("InaIngress.pipeline", (port,), "InaIngress.set_pipeline", (number,))
        for port, number in PIPELINE.items()
    )
    groups = tuple(MulticastGroup(group, ports) for group, ports in enumerate(RESULT_GROUPS.values(), start=1))
    tables = (*aggregation_entries(), *forwarding_entries(), *result_entries(), *queue_entries())
    return SwitchEntries("s1", (*pipelines, *tables), groups)
