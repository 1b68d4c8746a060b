"""Lab 5, the switch: what is graded of the student's program, with entries of the course, on one switch.

Each item looks at one property. Those about jobs, pipelines and rounds compare the program with itself: an aggregator
that is used beside others has to send what it sends alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inakit.experiments.labs.course.graded_switch import Bench
from inakit.experiments.labs.course.packets import GRADIENT, RESULT, Agg, Values, explain_sum, summed
from inakit.experiments.labs.course.sum_lab import Left, aggregates
from inakit.experiments.labs.course.tree_network import ADMITTED, CHILD_OF, DOWN, PIPELINE_OF, TABLES, UP
from inakit.planner.core.plan import ROOT_LABEL
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry

CHILDREN = 3
ROUNDS = 3


@dataclass(frozen=True)
class Node:
    """An aggregator on the tested switch, and what it needs: `ports[n]` leads to the node of child n.

    Results come from `parent`, and go to `ports` in multicast group `job`.
    """

    job: int
    label: int
    children: tuple[int, ...]
    ports: tuple[int, ...]
    parent: int
    pipeline: int = 0
    first: int = 0
    slots: int = 4

    @property
    def entries(self) -> list[TableEntry]:
        full = (1 << len(self.children)) - 1
        found = [entry(PIPELINE_OF, (port,), (self.pipeline,)) for port in self.ports]
        for bit, (child, port) in enumerate(zip(self.children, self.ports, strict=True)):
            found.append(entry(ADMITTED, (port, GRADIENT, self.job, child)))
            owned = (1 << bit, full, self.label, self.first, self.slots)
            found.append(entry(CHILD_OF, (self.pipeline, self.job, child), owned))
        if self.label != ROOT_LABEL:
            found.append(entry(ADMITTED, (self.parent, RESULT, self.job, ROOT_LABEL)))
            found.append(entry(UP, (self.job, self.label), (self.parent,)))
        return [*found, entry(DOWN, (self.job,), (self.job,))]

    def gradient(self, bench: Bench, child: int, slot: int, number: int = 0) -> Agg:
        return Agg(GRADIENT, child, slot, number, bench.drawn_values(), self.job)

    def round(self, bench: Bench, slot: int, number: int = 0) -> list[Agg]:
        order = bench.random.sample(self.children, len(self.children))
        return [self.gradient(bench, child, slot, number) for child in order]

    def port_of(self, gradient: Agg) -> int:
        """The port that a child's gradient comes in by."""
        return self.ports[self.children.index(gradient.worker)]

    def expected(self, gradient: Agg, values: Values) -> list[tuple[int, bytes]]:
        """What leaves when this gradient completes a sum."""
        if self.label == ROOT_LABEL:
            result = replace(gradient, kind=RESULT, worker=ROOT_LABEL, values=values).packed()
            return [(port, result) for port in self.ports]
        return [(self.parent, replace(gradient, worker=self.label, values=values).packed())]


def entry(table: str, key: tuple[int, ...], params: tuple[int, ...] = ()) -> TableEntry:
    """An entry of a table of the task."""
    return TableEntry(table, key, TABLES[table].action, params)


def drawn_node(bench: Bench, label: int, count: int = CHILDREN, **fixed: int) -> Node:
    ports = bench.drawn_ports(count + 1)
    children = bench.random.sample(range(1, 100), count)
    job = fixed.pop("job", bench.random.randrange(1, 200))
    return Node(job, label, tuple(children), tuple(ports[1:]), ports[0], **fixed)


def start(bench: Bench, nodes: Sequence[Node]) -> None:
    """Start the switch with these aggregators."""
    entries = list(dict.fromkeys(each for node in nodes for each in node.entries))
    groups = {node.job: tuple(sorted({p for n in nodes if n.job == node.job for p in n.ports})) for node in nodes}
    bench.start(SwitchEntries("switch", tuple(entries), tuple(MulticastGroup(*group) for group in groups.items())))


def send(bench: Bench, node: Node, gradient: Agg) -> Left:
    """Send a child's gradient; what leaves of aggregations."""
    return aggregates(bench.send(node.port_of(gradient), gradient.packed()))


def alone(bench: Bench, node: Node, gradients: Sequence[Agg]) -> list[Left]:
    """What leaves for these gradients when the aggregator is alone; `WrongError` if it sums nothing."""
    start(bench, [node])
    left = [send(bench, node, gradient) for gradient in gradients]
    sent = {gradient.values for gradient in gradients}
    if not any(packet.values not in sent for packets in left for _, packet in packets):
        raise bench.wrong("the program sums nothing yet, so that this cannot be tested", "a sum")
    return left


def judge_same(
    bench: Bench, left: Left, usual: Left, what: str, named: dict[str, Values], others: dict[str, Values]
) -> None:
    """Raise `WrongError` unless what leaves is what leaves when nothing else happens. Names are of gradients."""
    if sorted(left, key=str) == sorted(usual, key=str):
        return
    expected = [(port, packet.packed()) for port, packet in usual]
    if left and not usual:
        raise bench.wrong(f"{what}: a packet leaves before all children have sent")
    if usual and not left:
        raise bench.wrong(f"{what}: nothing leaves when all children have sent", expected, "drop")
    got, right = left[0][1].values, usual[0][1].values
    if got == right:
        raise bench.wrong(f"{what}: what leaves, or where, is not the same as without", expected)
    why = explain_sum(got, named, others)
    first = next(n for n, (one, other) in enumerate(zip(got, right, strict=True)) if one != other)
    raise bench.wrong(f"{what}: {why}" if why else what, expected, f"values.v{first}")


def named(gradients: Sequence[Agg], of: str = "") -> dict[str, Values]:
    """The values of gradients, by how messages call them."""
    return {f"label {each.worker}'s gradient{of}": each.values for each in gradients}


# -- the items


def check_admission(bench: Bench) -> None:
    """What the plan does not admit neither leaves nor counts."""
    for what in ("port", "label", "job", "slot", "result"):
        node = drawn_node(bench, bench.random.choice([ROOT_LABEL, 120]), first=3, slots=2)
        gradients = node.round(bench, 1)
        usual = alone(bench, node, gradients)
        start(bench, [node])
        forged = [forgery(what, node, each) for each in node.round(bench, 1)]
        for packet, port, said in forged:
            if aggregates(bench.send(port, packet.packed())):
                raise bench.wrong(f"{said} is not dropped: a packet leaves")
        others = {f"forged label {packet.worker}": packet.values for packet, _, _ in forged}
        for gradient, left in zip(gradients, usual, strict=True):
            judge_same(bench, send(bench, node, gradient), left, f"{forged[0][2]} counts", named(gradients), others)


def forgery(what: str, node: Node, each: Agg) -> tuple[Agg, int, str]:
    """A packet that is not admitted, the port at which it comes, and what it is called."""
    port, at = node.port_of(each), node.children.index(each.worker)
    other = node.ports[(at + 1) % len(node.ports)]
    return {
        "port": (each, other, "a gradient from the port of another label"),
        "label": (replace(each, worker=100 + at), port, "a gradient of a label that is not admitted"),
        "job": (replace(each, job=node.job + 1), port, "a gradient of a job that is not admitted"),
        "slot": (
            replace(each, slot=node.slots),
            port,
            f"a gradient for slot {node.slots} of a job that has {node.slots}",
        ),
        "result": (replace(each, kind=RESULT, worker=ROOT_LABEL), port, "a result from below"),
    }[what]


def check_sum(bench: Bench) -> None:
    """The sum of the children leaves towards the root, under the aggregator's own label, when it is complete."""
    for _ in range(3):
        node = drawn_node(bench, bench.random.randrange(100, 200), count=bench.random.randrange(2, 6))
        start(bench, [node])
        gradients = node.round(bench, bench.random.randrange(node.slots))
        for count, gradient in enumerate(gradients, 1):
            left = send(bench, node, gradient)
            if left and count < len(gradients):
                raise bench.wrong(f"a packet leaves when {count} of {len(gradients)} children have sent")
        judge_complete(bench, node, gradients, left)
        packet = left[0][1]
        if packet.worker != node.label:
            cause = f"the sum leaves under label {packet.worker}, where its aggregator has {node.label}"
            raise bench.wrong(cause, node.expected(gradient, packet.values), "agg.label")
        if left != [(node.parent, replace(gradient, worker=node.label, values=packet.values))]:
            raise bench.wrong(
                "the sum does not leave as one gradient towards the root", node.expected(gradient, packet.values)
            )


def judge_complete(bench: Bench, node: Node, gradients: Sequence[Agg], left: Left) -> None:
    """Raise `WrongError` unless what leaves with the last gradient has the values of the sum."""
    right = summed([each.values for each in gradients])
    expected = node.expected(gradients[-1], right)
    if not left:
        raise bench.wrong("nothing leaves, though all children have sent", expected, "drop")
    why = explain_sum(left[0][1].values, named(gradients))
    if why:
        first = next(n for n in range(len(right)) if left[0][1].values[n] != right[n])
        raise bench.wrong(why, expected, f"values.v{first}")


def check_pass(bench: Bench) -> None:
    """What is summed elsewhere goes on as it is: gradients towards the root, results to all below."""
    node, up = drawn_node(bench, 120, pipeline=1), bench.random.randrange(64, 128)
    label, job = bench.random.randrange(130, 140), node.job
    below = bench.random.choice(node.ports)
    entries = [*node.entries, entry(ADMITTED, (below, GRADIENT, job, label)), entry(UP, (job, label), (up,))]
    bench.start(SwitchEntries("switch", tuple(entries), (MulticastGroup(job, node.ports),)))
    for slot in (0, 1, node.slots + 5):
        packet = Agg(GRADIENT, label, slot, 0, bench.drawn_values(), job)
        got = bench.send(below, packet.packed())
        bench.same(got, [(up, packet.packed())], "a gradient of a label that no aggregator here sums does not go on")
    result = Agg(RESULT, ROOT_LABEL, 1, 0, bench.drawn_values(), job)
    expected = [(port, result.packed()) for port in node.ports]
    bench.same(bench.send(node.parent, result.packed()), expected, "a result from above does not go on to all below")


def check_root(bench: Bench) -> None:
    """At the root the sum becomes the result, for all below."""
    for _ in range(2):
        node = drawn_node(bench, ROOT_LABEL)
        start(bench, [node])
        gradients = node.round(bench, bench.random.randrange(node.slots), bench.random.getrandbits(16))
        left = [send(bench, node, gradient) for gradient in gradients][-1]
        expected = node.expected(gradients[-1], left[0][1].values if left else summed([g.values for g in gradients]))
        if not left:
            raise bench.wrong("nothing leaves the root, though all children have sent", expected, "drop")
        packet = left[0][1]
        if packet.kind != RESULT:
            raise bench.wrong(f"what leaves the root has kind {packet.kind}, not {RESULT}", expected, "agg.kind")
        if packet.worker != ROOT_LABEL:
            raise bench.wrong(f"the result has label {packet.worker}, not {ROOT_LABEL}", expected, "agg.label")
        got = [(port, each.packed()) for port, each in left]
        bench.same(got, expected, "the result does not leave once by each port of the job's group")


def check_rounds(bench: Bench) -> None:
    """Slot after slot and round after round; a gradient that comes again is dropped."""
    node = drawn_node(bench, bench.random.choice([ROOT_LABEL, 120]), first=5)
    slot = bench.random.randrange(node.slots)
    rounds = [node.round(bench, slot, number) for number in range(ROUNDS)]
    usual = [alone(bench, node, gradients) for gradients in rounds]
    start(bench, [node])
    sums: dict[str, Values] = {}
    for number, gradients in enumerate(rounds):
        for count, (gradient, left) in enumerate(zip(gradients, usual[number], strict=True)):
            what = f"in round {number} of slot {slot}"
            judge_same(bench, send(bench, node, gradient), left, what, named(gradients), sums)
            if number == ROUNDS - 1 and count == 0 and send(bench, node, gradient):
                raise bench.wrong(
                    f"label {gradient.worker} sends its gradient twice, and a packet leaves for the second"
                )
        sums[f"the sum of round {number}"] = summed([each.values for each in gradients])
    check_together(bench, [node], range(node.slots), f"all {node.slots} slots are in use")


def check_jobs(bench: Bench) -> None:
    """Jobs with the same labels and slots, next to each other in one pipeline, have nothing to do with each other."""
    first = drawn_node(bench, 120, first=7, slots=3)
    ports = bench.random.sample(range(64, 128), CHILDREN + 1)
    second = replace(first, job=first.job + 1, ports=tuple(ports[1:]), parent=ports[0], first=10, slots=4)
    same_ports = replace(first, job=first.job + 2, first=4, slots=3, label=121)
    check_together(bench, [first, second, same_ports], (bench.random.randrange(3),), "three jobs are on the switch")


def check_pipelines(bench: Bench) -> None:
    labels, ports = bench.random.sample(range(1, 100), 2 * CHILDREN), bench.drawn_ports(2 * CHILDREN + 1)
    job, first = bench.random.randrange(1, 200), bench.random.randrange(1, 40)
    nodes = [Node(job, 120 + n, tuple(labels[n::2]), tuple(ports[1 + n :: 2]), ports[0], n, first) for n in range(2)]
    check_together(bench, nodes, (bench.random.randrange(4),), "two pipelines have an aggregator with the same slots")


def check_together(bench: Bench, nodes: Sequence[Node], slots: Sequence[int], what: str) -> None:
    """Raise `WrongError` unless each of these slots of each aggregator sends what it sends when it is alone."""
    rounds = {(at, slot): node.round(bench, slot) for at, node in enumerate(nodes) for slot in slots}
    usual = {
        (at, slot): alone(bench, replace(nodes[at], first=0, pipeline=0), [replace(g, slot=0) for g in gradients])
        for (at, slot), gradients in rounds.items()
    }
    order = bench.random.sample([place for place in rounds for _ in range(CHILDREN)], CHILDREN * len(rounds))
    start(bench, nodes)
    sent = dict.fromkeys(rounds, 0)
    for at, slot in order:
        number = sent[at, slot]
        sent[at, slot] += 1
        gradients = rounds[at, slot]
        left = send(bench, nodes[at], gradients[number])
        wanted = [(port, replace(packet, slot=slot)) for port, packet in usual[at, slot][number]]
        others = {
            f"slot {s} of aggregator {nodes[a].label} of job {nodes[a].job}, label {each.worker}": each.values
            for (a, s), found in rounds.items()
            if (a, s) != (at, slot)
            for each in found[: sent[a, s]]
        }
        said = f"{what}, and in slot {slot} of job {nodes[at].job}"
        judge_same(bench, left, wanted, said, named(gradients), dict(list(others.items())[-4:]))
