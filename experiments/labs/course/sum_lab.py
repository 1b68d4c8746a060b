"""Lab 2: one switch sums the gradients of one job.

Each item tests one property independently of all others: `sum` the values that leave, `wait` the time at which a packet
leaves, `everyone` the kind of this packet and its ports.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from inakit.experiments.labs.course.aggregation import (
    MOST_WORKERS,
    WORKERS,
    Job,
    Left,
    check_every_slot,
    check_forgeries,
    check_slots,
    drawn_round,
    sent_by_all,
    total,
    twice,
)
from inakit.experiments.labs.course.forward_lab import packet_to, with_random_fields
from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.lab import Item, Lab, scored
from inakit.experiments.labs.grading.packets import RESULT, VALUES, Agg, Values, ipv4
from inakit.switch.entries import Lpm, SwitchEntries, TableEntry

SLOTS = 16
NOTHING_LEFT = "no result leaves, though all workers have sent"


def check_other(bench: Bench) -> None:
    """IPv4 packets follow the table; packets of neither IPv4 nor an aggregation are dropped."""
    first, second, other = bench.drawn_ports(3)
    network = bench.random.getrandbits(8) << 24
    routes = ((Lpm(network, 8), first), (Lpm(network | 1 << 16, 16), second))
    entries = tuple(TableEntry("ipv4_lpm", (prefix,), "forward", (port,)) for prefix, port in routes)
    bench.start(SwitchEntries("switch", entries))
    for suffix, port in ((0x020304, first), (0x010305, second)):
        packet = with_random_fields(bench, packet_to(bench, network | suffix))
        bench.same(bench.send(other, packet), [(port, packet)], "an IPv4 packet does not go where the table says")
    plain = ipv4(network | 9, network | 0x020306, ttl=1, payload=bytes(4))
    for packet in (plain, plain[:14] + b"\x46" + plain[15:]):
        cause = "a switch that is no router sends IPv4 packets that expire, or that have options (ihl 6), as they are"
        bench.same(bench.send(other, packet), [(first, packet)], cause)
    unknown = ipv4((network ^ 1 << 31) | 7, (network ^ 1 << 31) | 8)
    bench.same(bench.send(other, unknown), [], "an IPv4 packet that no entry matches is not dropped")
    strange = bytes(12) + b"\x86\xdd" + bench.random.randbytes(50)
    bench.same(bench.send(other, strange), [], "a packet that is neither IPv4 nor of an aggregation is not dropped")


def check_admission(bench: Bench) -> None:
    """Forbidden packets of workers are dropped and not counted."""
    check_forgeries(bench, SLOTS)


def check_sum(bench: Bench) -> None:
    """The first values that leave are the sum of the gradients so far, in any order of workers."""
    for number in range(4):
        job = Job(bench)
        order = bench.random.sample(range(WORKERS), WORKERS)
        gradients = drawn_round(bench, order, bench.random.randrange(SLOTS - 1))
        if number == 3:
            gradients[0] = replace(gradients[0], values=(0,) * VALUES)
        count, left = first_leaving(job, gradients)
        job.judge_sum(left[0][1].values, gradients[:count])


def first_leaving(job: Job, gradients: list[Agg]) -> tuple[int, Left]:
    """Send gradients until a packet leaves; return their number and the packets. Raises `WrongError` if none leaves."""
    for count, gradient in enumerate(gradients, 1):
        if left := job.send(gradient):
            return count, left
    raise job.bench.wrong(NOTHING_LEFT, job.expected(gradients[-1], total(gradients)), "drop")


def check_wait(bench: Bench) -> None:
    """A packet leaves when the last worker has sent, and not before."""
    orders = [range(workers)[::step] for workers in (2, 3, 5, 8, 1) for step in (1, -1)]
    for order in orders:
        workers, job = len(order), Job(bench, len(order))
        for count, gradient in enumerate(drawn_round(bench, order), 1):
            left = job.send(gradient)
            sent = f"{count} of {workers} workers have sent"
            if left and count < workers:
                raise bench.wrong(f"a packet leaves when {sent}: the sum is not complete")
            if not left and count == workers:
                raise bench.wrong(f"no result leaves, though {sent}", "a result at each worker's port", "drop")


def check_everyone(bench: Bench) -> None:
    """A result leaves once by each worker's port; all its fields but kind and values are those of the last gradient."""
    for last in range(WORKERS):
        job = Job(bench)
        order = [worker for worker in range(WORKERS) if worker != last] + [last]
        gradients = drawn_round(bench, order, bench.random.randrange(SLOTS - 1), bench.random.getrandbits(16))
        count, left = first_leaving(job, gradients)
        gradient = gradients[count - 1]
        expected = job.expected(gradient, left[0][1].values)
        ports = sorted(port for port, _ in left)
        if ports != sorted(job.ports):
            missing = sorted(set(job.ports) - set(ports))
            more = f"; it is missing at {', '.join(map(str, missing))}" if missing else ""
            by = ", ".join(map(str, ports))
            raise bench.wrong(f"the result leaves by port {by}, not once by each worker's{more}", expected)
        for _, packet in left:
            if packet.kind != RESULT:
                cause = f"what leaves has kind {packet.kind}, where a result has {RESULT}"
                raise bench.wrong(cause, expected, "agg.kind")
            if (packet.slot, packet.round) != (gradient.slot, gradient.round):
                raise bench.wrong("the result does not bear the slot and round of its gradients", expected, "agg.slot")
        changed = "a field of the result other than kind and values is not that of the last gradient"
        bench.same(list(bench.exchanges[-1].got), expected, changed, "agg.worker")


def check_once(bench: Bench) -> None:
    """A repeated gradient is neither added nor counted, at once and after others'."""
    one = ({0: 0}, {2: 0}, {1: 1}, {2: 1}, {2: 2})
    every = {worker: worker for worker in range(MOST_WORKERS - 1)}
    for workers, again in (*((WORKERS, each) for each in one), (MOST_WORKERS, every)):
        job, gradients = Job(bench, workers), drawn_round(bench, range(workers))
        usual = job.alone(gradients) if workers == WORKERS else job.left_after(gradients)
        job.begin()
        what = "a worker sent its gradient twice"
        for gradient, left in zip(gradients, usual, strict=True):
            job.judge_same(job.send(gradient), left, gradients, what, {})
            if gradient.worker in again:
                what = f"worker {again[gradient.worker]} sent its gradient twice"
                if job.send(gradients[again[gradient.worker]]):
                    raise bench.wrong(f"{what}, and a packet leaves for the second")
    check_every_slot(job, SLOTS, gradients, sent_by_all(job, twice(gradients)), "gradients that are sent twice")


def check_rounds(bench: Bench) -> None:
    """A slot is reused for several rounds."""
    job, slot = Job(bench), bench.random.randrange(SLOTS - 1)
    orders = [[*bench.random.sample(range(WORKERS - 1), WORKERS - 1), WORKERS - 1] for _ in range(4)]
    rounds = [drawn_round(bench, order, slot, number) for number, order in enumerate(orders)]
    usual = [job.alone(gradients) for gradients in rounds]
    job.begin()
    before: dict[str, Values] = {}
    for number, gradients in enumerate(rounds):
        for gradient, left in zip(gradients, usual[number], strict=True):
            job.judge_same(job.send(gradient), left, gradients, f"in round {number} of slot {slot}", before)
        before[f"the sum of round {number}"] = total(gradients)
    script = sent_by_all(job, [gradient for gradients in rounds[:3] for gradient in gradients])
    check_every_slot(job, SLOTS, rounds[0], script, "three rounds")


LAB = Lab(
    name="2-sum",
    title="One switch sums",
    hours="4 to 6",
    files=("sum.p4",),
    items=scored(
        "2-sum",
        Item("other", "other traffic", "Step 1", check_other),
        Item("admission", "who may send what", "Step 2", check_admission),
        Item("sum", "the sum", "Step 3", check_sum),
        Item("wait", "nothing before the last worker", "Step 4", check_wait),
        Item("everyone", "the result for everyone", "Step 5", check_everyone),
        Item("once", "each worker once", "Step 6", check_once),
        Item("slots", "slots", "Step 7", partial(check_slots, slots=SLOTS, rounds_of_each=1)),
        Item("rounds", "round after round", "Step 8", check_rounds),
    ),
)
