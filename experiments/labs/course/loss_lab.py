"""Lab 4: exactly once under loss, duplicates and reordering.

The student's switch is tested with the course's workers, the student's worker with the course's switch, and finally
both together. Each test searches for a schedule of arrivals and faults that breaks a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from random import Random

from inakit.experiments.labs.course.aggregation import (
    MOST_WORKERS,
    Job,
    check_every_slot,
    check_forgeries,
    drawn_rounds,
    sent_by_all,
    total,
)
from inakit.experiments.labs.course.loss_network import (
    Fault,
    Fragments,
    LongRun,
    ModelSwitch,
    ModelWorker,
    Network,
    Node,
    Schedule,
    StudentSwitch,
    StudentWorker,
)
from inakit.experiments.labs.grading.bench import Bench, line_of, trace_of
from inakit.experiments.labs.grading.lab import Item, Lab, WrongError, scored
from inakit.experiments.labs.grading.packets import Agg

SWITCH, WORKER = "switch", "worker"
SLOTS = 16
MOST_LINES = 24


def drawn_fragments(bench: Bench, workers: int, pool: int, count: int) -> Fragments:
    """A job with random fragments."""
    return Fragments(pool, tuple(tuple(bench.drawn_values() for _ in range(count)) for _ in range(workers)))


def student_switch(bench: Bench, job: Fragments) -> StudentSwitch:
    """The student's switch, restarted for a job."""
    ports = bench.random.sample(range(1, 64), job.workers)
    return StudentSwitch(bench.sandboxed, ports)


def student_workers(bench: Bench, job: Fragments) -> list[StudentWorker]:
    """The student's workers."""
    made = []
    for worker in range(job.workers):
        made.append(StudentWorker(job, worker, bench.submission.text("worker.py")))
        bench.of_item.callback(made[-1].close)
    return made


def model_workers(job: Fragments) -> list[ModelWorker]:
    """The course's workers."""
    return [ModelWorker(job, worker) for worker in range(job.workers)]


def sound_job(bench: Bench, workers: int, count: int) -> tuple[Fragments, StudentSwitch]:
    """A job of one slot and at most `count` fragments that the student's switch sums correctly without loss."""
    for fewer in range(count, 1, -1):
        job = drawn_fragments(bench, workers, 1, fewer)
        switch = student_switch(bench, job)
        if Network(job, switch, model_workers(job)).explore() is None:
            return job, switch
    raise WrongError("this cannot be tested yet: also when nothing is lost, workers do not get their first sums")


def judge(found: Schedule | None, job: Fragments, switch: Node) -> None:
    """Raise `WrongError` with a schedule that breaks the network, if there is one, and the switch's trace.

    The finding has the expected sum, and the program's trace of the last gradient that came to the switch.
    """
    if found is None:
        return
    broken, trace = found.broken, tuple[str, ...]()
    sums = () if broken.fragment is None or broken.got is None else (job.sum_of(broken.fragment), broken.got)
    if isinstance(switch, StudentSwitch) and found.arrivals:
        packets = [(switch.ports[worker], packet.packed()) for worker, packet in found.arrivals]
        field = "port" if broken.fragment is None else "values.v0"
        lines = trace_of(switch.switch, switch.entries, packets, field)
        trace = (line_of(*packets[-1]), *lines) if lines else ()
    left_out = len(found.story) - MOST_LINES
    before = [f"({left_out} events before)"] if left_out > 0 else []
    expected, got = ([" ".join(f"{value:08x}" for value in each)] for each in sums) if sums else ((), ())
    raise WrongError(broken.cause, sent=before + found.story[-MOST_LINES:], expected=expected, got=got, trace=trace)


def explore(
    job: Fragments, switch: Node, workers: Sequence[Node], *kinds: Fault, faults: int = 0, only_behind: bool = False
) -> None:
    """Raise `WrongError` if a schedule with faults of these kinds breaks the network."""
    network = Network(job, switch, workers, frozenset(kinds), faults, only_behind=only_behind)
    judge(network.explore(), job, switch)


# -- the switch

WIDTHS = (16, 24, 31)
"""Bits of a number in which a program could keep rounds, which have 32 (the number is signed in 32 bits, too)."""


def rounds_of_all(bench: Bench, count: int, first: int = 0) -> tuple[Job, list[list[Agg]]]:
    """A job of eight workers, and the gradients of consecutive rounds of one of the slots."""
    slot = bench.random.randrange(SLOTS)
    drawn = drawn_rounds(bench, (slot,), count, MOST_WORKERS, versions=1).values()
    return Job(bench, MOST_WORKERS), [[replace(each, round=each.round + first) for each in some] for some in drawn]


def judge_rounds(job: Job, rounds: Sequence[Sequence[Agg]]) -> None:
    """Raise `WrongError` unless each round's result is all that leaves, with all headers as they have to be."""
    for gradients in rounds:
        for gradient in gradients:
            expected = job.expected(gradient, total(gradients)) if gradient is gradients[-1] else []
            what = "the result is not the last gradient with another kind and other values, once by each worker's port"
            cause = f"in round {gradient.round}: {what if expected else 'a gradient before the last is not dropped'}"
            job.bench.same(job.bench.send(job.port_of(gradient), gradient.packed()), expected, cause)


def judge_copies(job: Job, rounds: Sequence[Sequence[Agg]], copies: Mapping[int, Sequence[Agg]], what: str) -> None:
    """Raise `WrongError` unless copies are dropped and change nothing, in any slot.

    They are sent after the gradient of their number.
    """
    order = list(chain(*rounds))
    usual = job.left_after(order)
    script: list[Agg] = []
    job.begin()
    for number, (gradient, left) in enumerate(zip(order, usual, strict=True)):
        sent = next(some for some in rounds if gradient in some)
        job.judge_same(job.send(gradient), left, sent, f"after {what}", {})
        script.append(gradient)
        for copy in () if left else copies.get(number, ()):
            script.append(copy)
            if job.send(copy):
                raise job.bench.wrong(f"{what} is not dropped: a packet leaves")
    check_every_slot(job, SLOTS, order, sent_by_all(job, script), what)


def check_plain(bench: Bench) -> None:
    """The switch without loss: slots, rounds, versions, admission; also 8 workers in all slots, and 300 rounds."""
    for workers, pool, count in ((3, 2, 8), (2, 1, 6)):
        job = drawn_fragments(bench, workers, pool, count)
        explore(job, student_switch(bench, job), model_workers(job))
    for workers, pool, count in ((8, SLOTS, 3 * SLOTS), (2, 1, 300)):
        job = drawn_fragments(bench, workers, pool, count)
        switch = student_switch(bench, job)
        judge(LongRun(job, switch, model_workers(job), Random(0), share=0).go().found, job, switch)
    check_forgeries(bench, SLOTS)
    own, rounds = rounds_of_all(bench, 3)
    judge_rounds(own, rounds)
    check_every_slot(own, SLOTS, rounds[0], sent_by_all(own, chain(*rounds)), "three rounds")
    for bits in WIDTHS:
        own, rounds = rounds_of_all(bench, 6, (1 << bits) - 3)
        if own.left_after(rounds[0])[-1]:  # a program may also wait for round 0
            judge_rounds(own, rounds[1:])
            late = [replace(each, round=2) for each in rounds[0]]
            judge_copies(own, rounds, {38: late, 40: late}, "a gradient of round 2, which is over,")
        elif own.left_after(rounds[3])[-1]:
            raise bench.wrong(f"round {1 << bits} is taken for round 0", "drop")


def check_again(bench: Bench) -> None:
    """A worker repeats a gradient before the sum is complete."""
    for workers, count in ((3, 2), (2, 4)):
        job, switch = sound_job(bench, workers, count)
        kinds = (Fault.GRADIENT_TWICE, Fault.LOST_GRADIENT, Fault.IMPATIENT)
        explore(job, switch, model_workers(job), *kinds, faults=2)
    own, rounds = rounds_of_all(bench, 2)
    copies = {number: [gradient] for number, gradient in enumerate(chain(*rounds))}
    judge_copies(own, rounds, copies, "a gradient that comes again before the sum is complete")


def check_answer(bench: Bench) -> None:
    """The network loses results: a worker that asks again gets its result."""
    for workers, count in ((2, 4), (3, 3)):
        job, switch = sound_job(bench, workers, count)
        explore(job, switch, model_workers(job), Fault.LOST_RESULT, faults=2, only_behind=True)
    own, (first, second) = rounds_of_all(bench, 2)
    for gradients in (first, second):
        left = [own.send(gradient) for gradient in gradients][-1]
        if not left:
            return  # another item tests the sums of eight workers
        kept = left[0][1].values
        for gradient in gradients:
            port = own.port_of(gradient)
            cause = "the result does not leave only by the port of the worker that asks again, or with other headers"
            bench.same(bench.send(port, gradient.packed()), [(port, gradient.result(kept).packed())], cause)
    script = sent_by_all(own, [*first, *first, *second, *second])
    check_every_slot(own, SLOTS, [*first, *second], script, "asking for a result")


def check_stale(bench: Bench) -> None:
    """A gradient of a finished round arrives."""
    for workers, count in ((2, 6), (3, 4)):
        job, switch = sound_job(bench, workers, count)
        explore(job, switch, model_workers(job), Fault.OLD_GRADIENT, faults=1)
    own, rounds = rounds_of_all(bench, 3)
    judge_copies(own, rounds, {2 * MOST_WORKERS: rounds[0]}, "a gradient of a round that is over")


# -- the worker


def check_sending(bench: Bench) -> None:
    """The worker without loss: it sends each fragment once, and has at most one fragment per slot in flight."""
    for workers, pool, count in ((2, 2, 7), (2, 3, 4), (2, 3, 2)):
        job = drawn_fragments(bench, workers, pool, count)
        made = student_workers(bench, job)
        explore(job, ModelSwitch(job), made)
        run = LongRun(job, ModelSwitch(job), made, Random(0), share=0).go()
        judge(run.found, job, run.switch)
        for worker, packets in enumerate(run.first):
            if packets > min(job.pool, job.count):
                raise WrongError(f"worker {worker} starts with {packets} packets, where the pool has {job.pool} slots")
        for worker, packets in enumerate(run.packets):
            if packets != job.count:
                raise WrongError(
                    f"worker {worker} sends {packets} packets for {job.count} fragments, though nothing is lost"
                )


def check_patience(bench: Bench) -> None:
    """The network loses packets: the worker retransmits. It is the only worker, so no result comes twice."""
    for pool, count in ((1, 3), (2, 4)):
        job = drawn_fragments(bench, 1, pool, count)
        made = student_workers(bench, job)
        explore(job, ModelSwitch(job), made, Fault.LOST_GRADIENT, Fault.LOST_RESULT, faults=3)


def check_results(bench: Bench) -> None:
    """The network duplicates or delays results, or brings a gradient; none has an effect, and none is answered."""
    for pool, count in ((1, 4), (2, 5)):
        job = drawn_fragments(bench, 2, pool, count)
        made = student_workers(bench, job)
        kinds = (Fault.RESULT_TWICE, Fault.COPY_OF_RESULT, Fault.COPY_OF_GRADIENT, Fault.NO_RESULT)
        explore(job, ModelSwitch(job), made, *kinds, faults=1)


# -- both


def check_together(bench: Bench) -> None:
    """Both parts under all faults: explored, and in long runs, of many rounds and of all slots and workers.

    The course's part replaces a part that has failed.
    """
    if {SWITCH, WORKER} <= bench.failed:
        raise WrongError("not tried: neither the switch nor the worker does its part alone")
    for workers, pool, count, share in ((2, 1, 3, 0), (3, 4, 60, 0.15), (MOST_WORKERS, SLOTS, 3 * SLOTS, 0.3)):
        job = drawn_fragments(bench, workers, pool, count)
        switch: Node = ModelSwitch(job) if SWITCH in bench.failed else student_switch(bench, job)
        nodes: Sequence[Node] = model_workers(job) if WORKER in bench.failed else student_workers(bench, job)
        if share:
            judge(LongRun(job, switch, nodes, bench.random, share).go().found, job, switch)
        else:
            explore(job, switch, nodes, *sorted({*Fault} - {Fault.OLD_GRADIENT, Fault.NO_RESULT}), faults=2)


LAB = Lab(
    name="4-loss",
    title="Exactly once, whatever is lost",
    hours="8 to 12",
    files=("loss.p4", "worker.py"),
    items=scored(
        "4-loss",
        Item("plain", "the switch: rounds and versions", "Step 1", check_plain, SWITCH),
        Item("again", "the switch: a gradient comes again", "Step 2", check_again, SWITCH),
        Item("answer", "the switch: a result was lost", "Step 3", check_answer, SWITCH),
        Item("stale", "the switch: a gradient of a round that is over", "Step 4", check_stale, SWITCH),
        Item("sending", "the worker: fragments in turn", "Step 5", check_sending, WORKER),
        Item("patience", "the worker: sending again", "Step 6", check_patience, WORKER),
        Item("results", "the worker: results that come twice or late", "Step 7", check_results, WORKER),
        Item("together", "both together", "Step 8", check_together),
    ),
    sandbox_only="explores states, which only the sandboxed switch can",
)
