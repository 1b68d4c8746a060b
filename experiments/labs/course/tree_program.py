"""Lab 5, the switch: the student's program with entries of the course, on one switch.

Each item looks at one property. Those about jobs, pipelines and rounds compare the program with itself: an aggregator
that is used beside others has to send what it sends alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inakit.experiments.labs.course.aggregation import GradedAggregator, total
from inakit.experiments.labs.course.tree_network import ADMITTED, CHILD_OF, DOWN, PIPELINE_OF, UP, entry
from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, Agg, Values
from inakit.planner.core.plan import ROOT_LABEL
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import Packets

CHILDREN = 3
ROUNDS = 3


@dataclass(frozen=True)
class TreeNode(GradedAggregator):
    """An aggregator on the tested switch: `ports[n]` leads to the node of child n.

    Results come from `parent`, and go to `ports` in multicast group `job`.
    """

    bench: Bench
    job: int
    label: int
    children: tuple[int, ...]
    ports: tuple[int, ...]
    parent: int
    pipeline: int = 0
    first: int = 0
    slots: int = 4

    who, senders, packet = "label", "children", "packet"

    @classmethod
    def drawn(cls, bench: Bench, label: int, count: int = CHILDREN, **fixed: int) -> TreeNode:
        """An aggregator with drawn ports, children and job."""
        ports = bench.drawn_ports(count + 1)
        children = bench.random.sample(range(1, 100), count)
        return cls(bench, bench.random.randrange(1, 200), label, tuple(children), tuple(ports[1:]), ports[0], **fixed)

    @property
    def entries(self) -> list[TableEntry]:
        """The entries that the aggregator needs."""
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

    def begin(self) -> None:
        start([self])

    def port_of(self, gradient: Agg) -> int:
        return self.ports[self.children.index(gradient.worker)]

    def expected(self, gradient: Agg, values: Values) -> Packets:
        """At the root the result for all below, elsewhere a gradient towards the root."""
        if self.label == ROOT_LABEL:
            result = replace(gradient, kind=RESULT, worker=ROOT_LABEL, values=values).packed()
            return [(port, result) for port in self.ports]
        return [(self.parent, replace(gradient, worker=self.label, values=values).packed())]

    def round(self, slot: int, number: int = 0) -> list[Agg]:
        """A gradient of each child, in a drawn order."""
        order = self.bench.random.sample(self.children, len(self.children))
        return [Agg(GRADIENT, child, slot, number, self.bench.drawn_values(), self.job) for child in order]


def start(nodes: Sequence[TreeNode]) -> None:
    """Start the switch with these aggregators."""
    entries = tuple(dict.fromkeys(each for node in nodes for each in node.entries))
    groups = {node.job: tuple(sorted({p for n in nodes if n.job == node.job for p in n.ports})) for node in nodes}
    multicast = tuple(MulticastGroup(*group) for group in groups.items())
    nodes[0].bench.start(SwitchEntries("switch", entries, multicast))


def check_admission(bench: Bench) -> None:
    """Packets that the plan does not admit neither leave nor count."""
    for what in ("port", "label", "job", "slot", "result"):
        node = TreeNode.drawn(bench, bench.random.choice([ROOT_LABEL, 120]), first=3, slots=2)
        gradients = node.round(1)
        forged = [forgery(what, node, each) for each in node.round(1)]
        node.judge_forgeries(forged[0][2], [each[:2] for each in forged], gradients)


def forgery(what: str, node: TreeNode, each: Agg) -> tuple[Agg, int, str]:
    """A packet that is not admitted, the port at which it comes, and its name in messages."""
    port, at, slots = node.port_of(each), node.children.index(each.worker), node.slots
    other = node.ports[(at + 1) % len(node.ports)]
    return {
        "port": (each, other, "a gradient from the port of another label"),
        "label": (replace(each, worker=100 + at), port, "a gradient of a label that is not admitted"),
        "job": (replace(each, job=node.job + 1), port, "a gradient of a job that is not admitted"),
        "slot": (replace(each, slot=slots), port, f"a gradient for slot {slots} of a job that has {slots}"),
        "result": (replace(each, kind=RESULT, worker=ROOT_LABEL), port, "a result from below"),
    }[what]


def check_sum(bench: Bench) -> None:
    """The sum of the children leaves towards the root, under the aggregator's own label, when it is complete."""
    for _ in range(3):
        node = TreeNode.drawn(bench, bench.random.randrange(100, 200), count=bench.random.randrange(2, 6))
        node.begin()
        gradients = node.round(bench.random.randrange(node.slots))
        for count, gradient in enumerate(gradients, 1):
            left = node.send(gradient)
            if left and count < len(gradients):
                raise bench.wrong(f"a packet leaves when {count} of {len(gradients)} children have sent")
        if not left:
            expected = node.expected(gradient, total(gradients))
            raise bench.wrong("nothing leaves, though all children have sent", expected, "drop")
        packet = left[0][1]
        node.judge_sum(packet.values, gradients)
        expected = node.expected(gradient, packet.values)
        if packet.worker != node.label:
            cause = f"the sum leaves under label {packet.worker}, where its aggregator has {node.label}"
            raise bench.wrong(cause, expected, "agg.label")
        if left != [(node.parent, replace(gradient, worker=node.label, values=packet.values))]:
            raise bench.wrong("the sum does not leave as one gradient towards the root", expected)


def check_pass(bench: Bench) -> None:
    """Packets that are summed elsewhere go on unchanged: gradients towards the root, results to all below."""
    node, up = TreeNode.drawn(bench, 120, pipeline=1), bench.random.randrange(64, 128)
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
        node = TreeNode.drawn(bench, ROOT_LABEL)
        node.begin()
        gradients = node.round(bench.random.randrange(node.slots), bench.random.getrandbits(16))
        left = [node.send(gradient) for gradient in gradients][-1]
        expected = node.expected(gradients[-1], left[0][1].values if left else total(gradients))
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
    node = TreeNode.drawn(bench, bench.random.choice([ROOT_LABEL, 120]), first=5)
    slot = bench.random.randrange(node.slots)
    rounds = [node.round(slot, number) for number in range(ROUNDS)]
    usual = [node.alone(gradients) for gradients in rounds]
    node.begin()
    sums: dict[str, Values] = {}
    for number, gradients in enumerate(rounds):
        for count, (gradient, left) in enumerate(zip(gradients, usual[number], strict=True)):
            what = f"in round {number} of slot {slot}"
            node.judge_same(node.send(gradient), left, gradients, what, sums)
            if number == ROUNDS - 1 and count == 0 and node.send(gradient):
                raise bench.wrong(
                    f"label {gradient.worker} sends its gradient twice, and a packet leaves for the second"
                )
        sums[f"the sum of round {number}"] = total(gradients)
    check_together([node], range(node.slots), f"all {node.slots} slots are in use")


def check_jobs(bench: Bench) -> None:
    """Jobs with the same labels and slots, next to each other in one pipeline, have nothing to do with each other."""
    first = TreeNode.drawn(bench, 120, first=7, slots=3)
    ports = bench.random.sample(range(64, 128), CHILDREN + 1)
    second = replace(first, job=first.job + 1, ports=tuple(ports[1:]), parent=ports[0], first=10, slots=4)
    same_ports = replace(first, job=first.job + 2, first=4, slots=3, label=121)
    check_together([first, second, same_ports], (bench.random.randrange(3),), "three jobs are on the switch")


def check_pipelines(bench: Bench) -> None:
    """Two pipelines have the same slots of one job."""
    labels, ports = bench.random.sample(range(1, 100), 2 * CHILDREN), bench.drawn_ports(2 * CHILDREN + 1)
    job, first = bench.random.randrange(1, 200), bench.random.randrange(1, 40)
    nodes = [
        TreeNode(bench, job, 120 + n, tuple(labels[n::2]), tuple(ports[1 + n :: 2]), ports[0], n, first)
        for n in range(2)
    ]
    check_together(nodes, (bench.random.randrange(4),), "two pipelines have an aggregator with the same slots")


def check_together(nodes: Sequence[TreeNode], slots: Sequence[int], what: str) -> None:
    """Raise `WrongError` unless each of these slots of each aggregator sends the same as when it is alone."""
    rounds = {(at, slot): node.round(slot) for at, node in enumerate(nodes) for slot in slots}
    usual = {
        (at, slot): replace(nodes[at], first=0, pipeline=0).alone([replace(g, slot=0) for g in gradients])
        for (at, slot), gradients in rounds.items()
    }
    order = nodes[0].bench.random.sample([place for place in rounds for _ in range(CHILDREN)], CHILDREN * len(rounds))
    start(nodes)
    sent = dict.fromkeys(rounds, 0)
    for at, slot in order:
        number = sent[at, slot]
        sent[at, slot] += 1
        gradients = rounds[at, slot]
        left = nodes[at].send(gradients[number])
        wanted = [(port, replace(packet, slot=slot)) for port, packet in usual[at, slot][number]]
        others = {
            f"slot {s} of aggregator {nodes[a].label} of job {nodes[a].job}, label {each.worker}": each.values
            for (a, s), found in rounds.items()
            if (a, s) != (at, slot)
            for each in found[: sent[a, s]]
        }
        where = f"{what}, and in slot {slot} of job {nodes[at].job}"
        nodes[at].judge_same(left, wanted, gradients, where, dict(list(others.items())[-4:]))
