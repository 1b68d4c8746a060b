"""The switches of a plan, joined: packets of workers in, results at workers out, hop by hop in order of arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from inakit.experiments.labs.course.packets import GRADIENT, KINDS, RESULT, Agg, Values, agg_in, described, summed
from inakit.experiments.labs.course.sums import explain_sum
from inakit.experiments.labs.grading.finding import Exchange, Packets, WrongError
from inakit.experiments.labs.tree.model import ModelTree
from inakit.experiments.labs.tree.plans import Drawn

MOST_HOPS = 2000
"""What one packet may cause. A network in which packets go round causes more."""
ROUNDS = 3


class Injected(Protocol):
    """A switch that is asked packet by packet."""

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        ...


@dataclass
class TreeNetwork:
    """A plan's fabric. `switch_of` gives the switch of a name.

    `exchanges` keeps what happened since `quiet`, and `noted` hears of all of it.
    """

    drawn: Drawn
    switch_of: Callable[[str], Injected]
    exchanges: list[Exchange] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    noted: Callable[[Exchange], None] = lambda _: None

    def __post_init__(self) -> None:
        self.far = {(node, port): peer for (node, peer), port in self.drawn.fabric.port_numbers.items()}

    def quiet(self) -> None:
        """Forget what has happened."""
        self.exchanges, self.drops = [], []

    def send(self, host: str, packet: bytes) -> list[tuple[str, bytes]]:
        """What comes to hosts when a host sends a packet, and everything that it causes has happened."""
        waiting = deque([(*self.drawn.attachment(host), packet)])
        arrived: list[tuple[str, bytes]] = []
        for _ in range(MOST_HOPS):
            if not waiting:
                return arrived
            switch, port, coming = waiting.popleft()
            node = self.switch_of(switch)
            got = node.inject(port, coming)
            self.exchanges.append(Exchange(port, coming, tuple(got), switch))
            self.noted(self.exchanges[-1])
            if not got and isinstance(node, ModelTree) and node.why:
                self.drops.append(f"{short(coming)}, at port {port} of {switch}: {node.why}")
            for out, left in got:
                peer = self.far.get((switch, out))
                if peer is None:
                    continue
                if peer in self.drawn.switches:
                    waiting.append((peer, self.drawn.port(peer, switch), left))
                else:
                    arrived.append((peer, left))
        raise self.wrong("packets go round in the network without end")

    def wrong(self, cause: str, expected: Sequence[str] = ()) -> WrongError:
        """What to raise when the last packet shows that something is wrong."""
        return WrongError(cause, tuple(self.exchanges), tuple(expected))


def short(packet: bytes) -> str:
    """A packet by what switches look at."""
    found = agg_in(packet)
    if found is None:
        return described(packet)
    return f"{KINDS.get(found.kind, 'packet')} of job {found.job}, label {found.worker}, slot {found.slot}"


# -- what is sent


@dataclass(frozen=True)
class Round:
    """A round of a slot of a job: the gradient of each worker, by its label."""

    job: int
    slot: int
    number: int
    gradients: dict[int, Agg]

    @property
    def total(self) -> Values:
        """The sum."""
        return summed([each.values for each in self.gradients.values()])


def drawn_rounds(drawn: Drawn, random: Random, jobs: Sequence[int]) -> list[Round]:
    """Rounds of all slots of these jobs."""
    return [
        Round(job, slot, number, {label: drawn_gradient(random, job, label, slot, number) for label in tree.workers})
        for job, tree in drawn.trees.items()
        if job in jobs
        for slot in range(tree.slots or 0)
        for number in range(ROUNDS)
    ]


def drawn_gradient(random: Random, job: int, label: int, slot: int, number: int) -> Agg:
    """A gradient with drawn values."""
    return Agg(GRADIENT, label, slot, number, tuple(random.getrandbits(32) for _ in range(8)), job)


def interleaved(rounds: Sequence[Round], random: Random) -> Iterator[tuple[Round, Agg]]:
    """All gradients in a drawn order, but a slot's rounds one after the other."""
    waiting: dict[tuple[int, int], deque[tuple[Round, Agg]]] = {}
    for each in rounds:
        order = random.sample(list(each.gradients.values()), len(each.gradients))
        waiting.setdefault((each.job, each.slot), deque()).extend((each, gradient) for gradient in order)
    while waiting:
        place = random.choice(list(waiting))
        yield waiting[place].popleft()
        if not waiting[place]:
            del waiting[place]


# -- what has to come


def run_jobs(network: TreeNetwork, random: Random, jobs: Sequence[int] = ()) -> None:
    """Run jobs of a plan (all, unless some are named) at once; raises `WrongError` unless all workers get all sums."""
    drawn = network.drawn
    rounds = drawn_rounds(drawn, random, jobs or tuple(drawn.trees))
    sent: dict[tuple[int, int, int], int] = {}
    network.quiet()
    for each, gradient in interleaved(rounds, random):
        key = (each.job, each.slot, each.number)
        sent[key] = sent.get(key, 0) + 1
        host = drawn.trees[each.job].workers[gradient.worker]
        arrived = network.send(host, gradient.packed())
        judge(network, each, arrived, complete=sent[key] == len(each.gradients))
        network.exchanges = []


def judge(network: TreeNetwork, each: Round, arrived: list[tuple[str, bytes]], *, complete: bool) -> None:
    """Raise `WrongError`, with what happened hop by hop, unless what came to hosts is right."""
    workers = network.drawn.trees[each.job].workers
    try:
        judge_arrived(workers, each, arrived, complete=complete)
    except WrongError as wrong:
        expected = tuple(map(str, wrong.expected))
        why = f". Dropped last: {network.drops[-1]}" if network.drops and wrong.cause.endswith(MISSING) else ""
        raise network.wrong(wrong.cause + why, expected) from None


MISSING = "no result"


def judge_arrived(workers: Mapping[int, str], each: Round, arrived: list[tuple[str, bytes]], *, complete: bool) -> None:
    """Raise `WrongError` unless every worker of a job has its result just when the last one has sent."""
    what, hosts = f"job {each.job}, slot {each.slot}, round {each.number}", set(workers.values())
    results = {host: agg_in(packet) for host, packet in arrived}
    expected = (f"a result at {', '.join(sorted(hosts))}" if complete else "nothing at any host",)
    if arrived and not complete:
        raise WrongError(f"{what}: {short(arrived[0][1])} comes to {arrived[0][0]} before all have sent", (), expected)
    if not complete:
        return
    strangers, missing = sorted(set(results) - hosts), sorted(hosts - set(results))
    if strangers:
        raise WrongError(f"{what}: its result comes to {strangers[0]}, which is no worker of it", (), expected)
    if missing:
        raise WrongError(f"{what}: all have sent, and {', '.join(missing)} get {MISSING}", (), expected)
    if len(arrived) != len(workers):
        raise WrongError(f"{what}: {len(arrived)} results come to {len(workers)} workers", (), expected)
    for host, result in results.items():
        judge_result(each, host, result)


def judge_result(each: Round, host: str, result: Agg | None) -> None:
    """Raise `WrongError` unless a worker's result is the sum, of its job, slot and round."""
    what = f"job {each.job}, slot {each.slot}, round {each.number}"
    wanted = Agg(RESULT, 0, each.slot, each.number, each.total, each.job)
    if result is None or result.kind != RESULT:
        raise WrongError(f"{what}: what comes to {host} is no result", (), (str(wanted),))
    named = {f"label {label}'s gradient": gradient.values for label, gradient in each.gradients.items()}
    why = explain_sum(result.values, named)
    if why:
        raise WrongError(f"{what}: {why}", (), (str(wanted),))
    if result != wanted:
        raise WrongError(f"{what}: what comes to {host} is not labelled as its result", (), (str(wanted),))
