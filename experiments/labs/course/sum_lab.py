"""Lab 2: one switch sums the gradients of one job. What is graded, and how it is tested.

Each item looks at one property only, whatever else is wrong: `sum` at the values that leave, `wait` at when something
leaves, `everyone` at what it is and where it goes. Others compare the program with itself: forged packets, a gradient
that comes twice, other slots and earlier rounds must make no difference to what leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from inakit.experiments.labs.course.graded_switch import Bench
from inakit.experiments.labs.course.packets import GRADIENT, RESULT, Agg, Values, agg_in, explain_sum, ipv4, summed
from inakit.experiments.labs.grading.items import Item, Packets
from inakit.switch.entries import Lpm, MulticastGroup, SwitchEntries, TableEntry

SLOTS = 16
WORKERS = 4
GROUP = 1
WORKER_AT, IPV4_LPM = "worker_at", "ipv4_lpm"
Left = list[tuple[int, Agg]]
"""Packets of aggregations that have left, and their ports."""
Named = dict[str, Values]

IS_WORKER, FORWARD = "is_worker", "forward"


class Job:
    """A job on the student's switch, started anew: worker n is at `ports[n]`."""

    def __init__(self, bench: Bench, ports: list[int] | None = None) -> None:
        self.bench = bench
        self.ports = bench.drawn_ports(WORKERS) if ports is None else ports
        bench.start(entries_of(self.ports))

    def send(self, gradient: Agg, port: int | None = None) -> Left:
        """Send a gradient, by default from its worker's port; what leaves of aggregations."""
        at = self.ports[gradient.worker] if port is None else port
        return aggregates(self.bench.send(at, gradient.packed()))

    def expected(self, gradient: Agg, values: Values) -> Packets:
        """The results that a gradient completes: one at each worker's port."""
        return [(port, gradient.result(values).packed()) for port in self.ports]


def entries_of(ports: list[int]) -> SwitchEntries:
    full = (1 << len(ports)) - 1
    at = tuple(TableEntry(WORKER_AT, (port,), IS_WORKER, (worker, full)) for worker, port in enumerate(ports))
    return SwitchEntries("switch", at, (MulticastGroup(GROUP, tuple(ports)),))


def aggregates(packets: Packets) -> Left:
    """Those of these packets that belong to an aggregation."""
    return [(port, found) for port, packet in packets if (found := agg_in(packet)) is not None]


def drawn_round(bench: Bench, order: Iterable[int] = range(WORKERS), slot: int = 0, number: int = 0) -> list[Agg]:
    return [Agg(GRADIENT, worker, slot, number, bench.drawn_values()) for worker in order]


def alone(bench: Bench, gradients: list[Agg], ports: list[int]) -> list[Left]:
    """What leaves for each of these gradients when nothing else happens; `WrongError` if nothing is summed at all."""
    job = Job(bench, ports)
    left = [job.send(gradient) for gradient in gradients]
    sent = {gradient.values for gradient in gradients}
    if not any(packet.values not in sent for packets in left for _, packet in packets):
        raise bench.wrong("the program sums nothing yet, so that this cannot be tested", "a sum")
    return left


def judge_same(job: Job, left: Left, usual: Left, sent: list[Agg], what: str, others: Named) -> None:
    """Raise `WrongError` unless what leaves is what also leaves when nothing else happens."""
    if left == usual:
        return
    expected = [(port, packet.packed()) for port, packet in usual]
    if left and not usual:
        raise job.bench.wrong(f"{what}: a result leaves before all workers have sent")
    if usual and not left:
        raise job.bench.wrong(f"{what}: no result leaves when all workers have sent", expected, "drop")
    got, right = left[0][1].values, usual[0][1].values
    if got == right:
        raise job.bench.wrong(f"{what}: what leaves, or where, is not the same as without", expected)
    why = explain_sum(got, named(sent), others)
    first = next(n for n, (one, other) in enumerate(zip(got, right, strict=True)) if one != other)
    raise job.bench.wrong(f"{what}: {why}" if why else what, expected, f"values.v{first}")


def named(gradients: Iterable[Agg]) -> dict[str, Values]:
    """The values of gradients, by how messages call them."""
    return {f"worker {gradient.worker}'s gradient": gradient.values for gradient in gradients}


# -- the items


def check_other(bench: Bench) -> None:
    """IPv4 goes where the table says, and what is neither IPv4 nor an aggregation goes nowhere."""
    first, second, other = bench.drawn_ports(3)
    network = bench.random.getrandbits(8) << 24
    routes = ((Lpm(network, 8), first), (Lpm(network | 1 << 16, 16), second))
    entries = tuple(TableEntry(IPV4_LPM, (prefix,), FORWARD, (port,)) for prefix, port in routes)
    bench.start(SwitchEntries("switch", entries))
    for suffix, port in ((0x020304, first), (0x010305, second)):
        packet = ipv4(network | 9, network | suffix, payload=bench.random.randbytes(20))
        bench.same(bench.send(other, packet), [(port, packet)], "an IPv4 packet does not go where the table says")
    unknown = ipv4((network ^ 1 << 31) | 7, (network ^ 1 << 31) | 8)
    bench.same(bench.send(other, unknown), [], "an IPv4 packet that no entry matches is not dropped")
    strange = bytes(12) + b"\x86\xdd" + bench.random.randbytes(50)
    bench.same(bench.send(other, strange), [], "a packet that is neither IPv4 nor of an aggregation is not dropped")


def check_admission(bench: Bench) -> None:
    """What no worker may send neither leaves nor counts."""
    judge_forgeries(bench, FORGERIES, FORGED_SLOT)


def judge_forgeries(bench: Bench, forgeries: Mapping[str, Forge], slot: int) -> None:
    """Raise `WrongError` for a forgery of gradients of a slot that leaves, or makes a difference to what leaves."""
    for what, forge in forgeries.items():
        ports, gradients = bench.drawn_ports(WORKERS), drawn_round(bench, slot=slot)
        usual = alone(bench, gradients, ports)
        job = Job(bench, ports)
        forged = [forge(job, each) for each in drawn_round(bench, slot=slot)]
        for packet, port in forged:
            if job.send(packet, port):
                raise bench.wrong(f"{what} is not dropped: a packet leaves")
        others = {f"forged {name}": values for name, values in named(packet for packet, _ in forged).items()}
        for gradient, left in zip(gradients, usual, strict=True):
            judge_same(job, job.send(gradient), left, gradients, f"{what} counts", others)


FORGED_SLOT = 1
Forge = Callable[[Job, Agg], tuple[Agg, int]]


def from_elsewhere(job: Job, gradient: Agg) -> tuple[Agg, int]:
    """A gradient that comes in at a port without a worker."""
    return gradient, 64 + job.ports[gradient.worker]


def of_another(job: Job, gradient: Agg) -> tuple[Agg, int]:
    """A gradient that bears a worker's number, but comes from the port of another."""
    return gradient, job.ports[(gradient.worker + 1) % WORKERS]


def beyond_slots(job: Job, gradient: Agg) -> tuple[Agg, int]:
    return replace(gradient, slot=SLOTS + FORGED_SLOT), job.ports[gradient.worker]


def forged_result(job: Job, gradient: Agg) -> tuple[Agg, int]:
    """A result that a worker sends."""
    return gradient.result(gradient.values), job.ports[gradient.worker]


FORGERIES: dict[str, Forge] = {
    "a gradient from a port without a worker": from_elsewhere,
    "a gradient with another number than that of its port's worker": of_another,
    f"a gradient for slot {SLOTS + FORGED_SLOT}, where {SLOTS - 1} is the last,": beyond_slots,
    "a result that a worker sends": forged_result,
}


def check_sum(bench: Bench) -> None:
    """The first values that leave are the sum of what has come, whatever the order of workers."""
    for _ in range(4):
        job = Job(bench)
        order = bench.random.sample(range(WORKERS), WORKERS)
        gradients = drawn_round(bench, order, bench.random.randrange(SLOTS))
        for count, gradient in enumerate(gradients, 1):
            left = job.send(gradient)
            if left:
                judge_sum(job, left[0][1].values, gradients[:count])
                break
        else:
            raise bench.wrong(NOTHING_LEFT, job.expected(gradient, total(gradients)), "drop")


NOTHING_LEFT = "no result leaves, though all workers have sent"


def total(gradients: Iterable[Agg]) -> Values:
    """The sum of gradients."""
    return summed([gradient.values for gradient in gradients])


def judge_sum(job: Job, got: Values, sent: list[Agg]) -> None:
    """Raise `WrongError` unless these values are the sum of what was sent."""
    why, right = explain_sum(got, named(sent)), total(sent)
    if why:
        first = next(n for n, (one, other) in enumerate(zip(got, right, strict=True)) if one != other)
        raise job.bench.wrong(why, job.expected(sent[-1], right), f"values.v{first}")


def check_wait(bench: Bench) -> None:
    """Nothing leaves before the last worker has sent, and something does then."""
    for workers in (2, 3, 5, 8):
        job = Job(bench, bench.drawn_ports(workers))
        for gradient in drawn_round(bench, range(workers)):
            left = job.send(gradient)
            sent = f"{gradient.worker + 1} of {workers} workers have sent"
            if left and gradient.worker < workers - 1:
                raise bench.wrong(f"a packet leaves when {sent}: the sum is not complete")
            if not left and gradient.worker == workers - 1:
                raise bench.wrong(f"no result leaves, though {sent}", "a result at each worker's port", "drop")


def check_everyone(bench: Bench) -> None:
    """What leaves is a result, and leaves once by each worker's port."""
    for last in range(WORKERS):
        job = Job(bench)
        order = [worker for worker in range(WORKERS) if worker != last] + [last]
        gradients = drawn_round(bench, order, bench.random.randrange(SLOTS), bench.random.getrandbits(16))
        for gradient in gradients:
            left = job.send(gradient)
            if left:
                judge_result(job, gradient, left)
                break
        else:
            raise bench.wrong(NOTHING_LEFT, job.expected(gradient, total(gradients)), "drop")


def judge_result(job: Job, gradient: Agg, left: Left) -> None:
    """Raise `WrongError` unless these are a result, with the slot and round of its gradients, for each worker."""
    expected = job.expected(gradient, left[0][1].values)
    ports = sorted(port for port, _ in left)
    if ports != sorted(job.ports):
        missing = sorted(set(job.ports) - set(ports))
        more = f"; it is missing at {', '.join(map(str, missing))}" if missing else ""
        said = ", ".join(map(str, ports))
        raise job.bench.wrong(f"the result leaves by port {said}, not once by each worker's{more}", expected)
    for _, packet in left:
        if packet.kind != RESULT:
            cause = f"what leaves has kind {packet.kind}, where a result has {RESULT}"
            raise job.bench.wrong(cause, expected, "agg.kind")
        if (packet.slot, packet.round) != (gradient.slot, gradient.round):
            raise job.bench.wrong("the result does not bear the slot and round of its gradients", expected, "agg.slot")


def check_once(bench: Bench) -> None:
    """A gradient that comes again is neither added nor counted."""
    for again in range(WORKERS - 1):
        ports, gradients = bench.drawn_ports(WORKERS), drawn_round(bench)
        usual = alone(bench, gradients, ports)
        job = Job(bench, ports)
        for gradient, left in zip(gradients, usual, strict=True):
            judge_same(job, job.send(gradient), left, gradients, f"worker {again} sent its gradient twice", {})
            if gradient.worker == again and job.send(gradient):
                raise bench.wrong(f"worker {again} sent its gradient twice, and a packet leaves for the second")


def check_slots(bench: Bench) -> None:
    """Slots are independent of each other: gradients for several of them come in turn."""
    ports, slots = bench.drawn_ports(WORKERS), [0, SLOTS - 1, *bench.random.sample(range(1, SLOTS - 1), 3)]
    rounds = {slot: drawn_round(bench, slot=slot) for slot in slots}
    usual = {slot: alone(bench, gradients, ports) for slot, gradients in rounds.items()}
    job = Job(bench, ports)
    for worker in range(WORKERS):
        for slot in slots:
            others = {
                f"the gradient of worker {worker} for slot {n}": rounds[n][worker].values for n in slots if n != slot
            }
            left, what = job.send(rounds[slot][worker]), f"slots {', '.join(map(str, slots))} are in use at once"
            judge_same(job, left, usual[slot][worker], rounds[slot], what, others)


def check_rounds(bench: Bench) -> None:
    """A slot is used again and again."""
    ports, slot = bench.drawn_ports(WORKERS), bench.random.randrange(SLOTS)
    rounds = [drawn_round(bench, slot=slot, number=number) for number in range(4)]
    usual = [alone(bench, gradients, ports) for gradients in rounds]
    before: Named = {}
    job = Job(bench, ports)
    for number, gradients in enumerate(rounds):
        for gradient, left in zip(gradients, usual[number], strict=True):
            what = f"in round {number} of slot {slot}"
            judge_same(job, job.send(gradient), left, gradients, what, before)
        before[f"the sum of round {number}"] = total(gradients)


ITEMS = (
    Item("other", "other traffic", 10, "Step 1", check_other),
    Item("admission", "who may send what", 15, "Step 2", check_admission),
    Item("sum", "the sum", 20, "Step 3", check_sum),
    Item("wait", "nothing before the last worker", 10, "Step 4", check_wait),
    Item("everyone", "the result for everyone", 10, "Step 5", check_everyone),
    Item("once", "each worker once", 15, "Step 6", check_once),
    Item("slots", "slots", 10, "Step 7", check_slots),
    Item("rounds", "round after round", 10, "Step 8", check_rounds),
)
