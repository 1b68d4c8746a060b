"""The prediction for a plan: rates, loads, bytes and times, by the papers' definitions.

Everything follows from the trees and their rates. Bytes are those of whole frames (`wire_bytes`). Losses do not count,
and results take no extra time: they return on the same ways at the same rate, behind the gradients. Rates are added by
`fsum`, which gives the same sum on every machine: from Python 3.12 on, `sum` rounds floats in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, inf

from inakit.planner.core.collective_times import Foreseen, acknowledgement_loads_bps, chunk_loads_bps, foresee
from inakit.planner.core.loads import summed_flows, sums_by_key
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Plan, fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp
from inakit.topo.fabric.fabric import DirectedLink


@dataclass(frozen=True)
class JobPrediction:
    """The prediction for one job while all jobs send: worker rates, PS ingress, and the time of a gradient.

    Bytes are those of one iteration. A job keeps the same rate before other jobs arrive and after they end. `way_s` is
    the time of a fragment's longest way to a root plus that of its result's longest way back: each link first sends a
    frame of every flow that shares it, and each pipeline that recirculates processes a frame of every flow again. The
    communication time does not contain `way_s`.
    """

    sending_rate_bps: float
    ps_ingress_bytes: int
    communication_time_s: float
    sent_bytes: int
    way_s: float


@dataclass(frozen=True)
class SwitchAggregation:
    """The gradient packets that a switch receives and sends, planned for one iteration or measured in a run."""

    packets_in: int
    packets_out: int

    @property
    def ratio(self) -> float:
        """Packets received per packet sent; 1 without aggregation."""
        return self.packets_in / self.packets_out if self.packets_out else inf


@dataclass(frozen=True)
class Prediction:
    """The expected results of a plan. Bytes are those of one iteration of every job.

    - `link_loads_bps`: gradients on every directed link; `result_loads_bps`: results on the way back
    - `worker_rates_bps[job, worker]`: the worker's sending rate (InArt's gradient sending rate, ARO's throughput)
    - `ps_ingress_bps`, by PS, and `ps_ingress_bytes`: received by PSs (InArt's ingress traffic amount of PSs, GOAT's
      aggregation overhead of the PS)
    - `aggregated_bytes`: bytes sent by workers less bytes received by PSs (GOAT's in-network aggregation amount)
    - `overhead_bytes`: gradients summed over links (GOAT's communication overhead)
    - `network_throughput_bps`: the same per second, the sum of the link loads (InArt's network throughput)
    - `switches`: packets in and out of every switch that gradients pass
    - `summed_bps`, by switch and pipeline: the input rate of the aggregators
    """

    jobs: dict[int, JobPrediction]
    link_loads_bps: dict[DirectedLink, float]
    result_loads_bps: dict[DirectedLink, float]
    worker_rates_bps: dict[tuple[int, str], float]
    ps_ingress_bps: dict[str, float]
    overhead_bytes: int
    switches: dict[str, SwitchAggregation]
    summed_bps: dict[Inp, float]

    @property
    def sending_rate_bps(self) -> float:
        """The sending rate of the slowest job: the bottleneck sending rate among all workers of trees."""
        return min(job.sending_rate_bps for job in self.jobs.values())

    @property
    def sent_bytes(self) -> int:
        """The bytes that all workers send in one iteration."""
        return sum(job.sent_bytes for job in self.jobs.values())

    @property
    def ps_ingress_bytes(self) -> int:
        """The bytes that all PSs receive in one iteration."""
        return sum(job.ps_ingress_bytes for job in self.jobs.values())

    @property
    def communication_time_s(self) -> float:
        """The communication time of the slowest job."""
        return max(job.communication_time_s for job in self.jobs.values())

    @property
    def aggregated_bytes(self) -> int:
        """The sent bytes that do not reach a PS because switches sum them (GOAT's in-network aggregation amount)."""
        return self.sent_bytes - self.ps_ingress_bytes

    @property
    def loads_with_results_bps(self) -> dict[DirectedLink, float]:
        """The load of every directed link while results return and gradients are still sent.

        With one PS no link carries both. With several, the sum can exceed a capacity (ARO, footnote 3).
        """
        return dict(sum((Counter(self.link_loads_bps), Counter(self.result_loads_bps)), Counter()))

    @property
    def network_throughput_bps(self) -> float:
        """The sum of the gradients' rates over all links (InArt's network throughput)."""
        return fsum(self.link_loads_bps.values())


@dataclass(frozen=True)
class TreeLoad:
    """A tree, the rate of each of its flows, and the packets per flow in an iteration."""

    job: int
    tree: AggregationTree
    rate_bps: float
    packets: int

    @property
    def arrivals(self) -> int:
        """The number of flows that end at the root."""
        return sum(branch.parent == ROOT_LABEL for branch in self.tree.branches)

    def time_s(self, wire_bytes: int) -> float:
        """The seconds in which a flow sends its packets; infinite if it has packets and the rate 0."""
        bits = self.packets * wire_bytes * 8
        return bits / self.rate_bps if self.rate_bps else inf if bits else 0.0


def evaluate(problem: Problem, plan: Plan) -> Prediction:
    """Predict the figures of `plan` on the problem's fabric. The plan must have passed `check`."""
    loads, alone = list(tree_loads(problem, plan)), [foresee(problem, each) for each in plan.collectives]
    wire, ways_s = problem.fragment.wire_bytes, tree_ways_s(problem, loads)
    summed = {number: predict_job(problem, number, loads, ways_s) for number in dict.fromkeys(x.job for x in loads)}
    jobs = summed | {each.collective.job: predict_collective(problem, each) for each in alone}
    hops = sum(x.packets * len(branch.links) for x in loads for branch in x.tree.branches)
    hops += sum(int(count) * len(c.links) for each in alone for c, count in each.counts())
    worker_rates_bps = sums_by_key(((x.job, worker), x.rate_bps) for x in loads for worker in x.tree.workers.values())
    for each in alone:
        worker_rates_bps |= {(each.collective.job, host): rate for host, rate in each.rates_bps(wire).items()}
    return Prediction(
        jobs={job.number: jobs[job.number] for job in problem.jobs},
        link_loads_bps=together(link_loads(loads), chunk_loads_bps(plan.collectives)),
        result_loads_bps=together(result_loads(loads), acknowledgement_loads_bps(plan.collectives, problem.fragment)),
        worker_rates_bps=worker_rates_bps,
        ps_ingress_bps=sums_by_key((x.tree.root, x.rate_bps * x.arrivals) for x in loads if not x.tree.in_network_root),
        overhead_bytes=hops * wire,
        switches=switch_aggregation(loads, alone),
        summed_bps=sums_by_key(
            (inp, count * x.rate_bps) for x in loads for inp, count in summed_flows([x.tree]).items()
        ),
    )


def together(*found: dict[DirectedLink, float]) -> dict[DirectedLink, float]:
    """The sums of several link loads."""
    return dict(sum(map(Counter, found), Counter[DirectedLink]()))


def predict_collective(problem: Problem, foreseen: Foreseen) -> JobPrediction:
    """The prediction for a job whose workers sum without switches. Its sending rate is their mean rate."""
    rates = foreseen.rates_bps(problem.fragment.wire_bytes).values()
    return JobPrediction(
        sending_rate_bps=fsum(rates) / len(rates),
        ps_ingress_bytes=0,
        communication_time_s=foreseen.times.end_s,
        sent_bytes=int(foreseen.sent.sum()) * problem.fragment.wire_bytes,
        way_s=foreseen.times.longest_way_s,
    )


def tree_loads(problem: Problem, plan: Plan) -> Iterator[TreeLoad]:
    """Every tree of the plan with its rate and its packets, in the order of the plan."""
    ranges = fragment_ranges(problem, plan)
    for planned in plan.trees:
        yield TreeLoad(planned.job, planned.tree, planned.rate_bps, len(ranges[planned.job, planned.tree.number]))


def predict_job(
    problem: Problem, number: int, of_all: list[TreeLoad], ways_s: dict[tuple[int, int], float]
) -> JobPrediction:
    """The prediction for one job, given the trees of all jobs and the times of their ways.

    A job's trees send at the same time, so its slowest tree is its communication time.
    """
    loads, wire_bytes = [load for load in of_all if load.job == number], problem.fragment.wire_bytes
    received = sum(load.packets * load.arrivals for load in loads if not load.tree.in_network_root)
    return JobPrediction(
        sending_rate_bps=fsum(load.rate_bps for load in loads),
        ps_ingress_bytes=received * wire_bytes,
        communication_time_s=max(load.time_s(wire_bytes) for load in loads),
        sent_bytes=sum(load.packets * len(load.tree.workers) for load in loads) * wire_bytes,
        way_s=max(ways_s[number, load.tree.number] for load in loads),
    )


def tree_ways_s(problem: Problem, loads: list[TreeLoad]) -> dict[tuple[int, int], float]:
    """By job and tree number, the seconds of a fragment's longest way to the root and of its result's way back."""
    hops_s, passes_s = link_times(problem, loads), recirculation_times(problem, loads)
    return {(load.job, load.tree.number): way_s(load.tree, hops_s, passes_s) for load in loads}


def link_times(problem: Problem, loads: list[TreeLoad]) -> dict[DirectedLink, float]:
    """By link, the seconds for one frame of every gradient and result flow on it, plus delay and switch latency."""
    flows: Counter[DirectedLink] = Counter()
    for load in loads:
        flows.update(link for branch in load.tree.branches for link in branch.links)
        flows.update((above, node) for node, above in load.tree.result_parents.items())
    bits, capacities = 8 * problem.fragment.wire_bytes, problem.fabric.capacities_bps
    delays = {frozenset((link.a, link.b)): link.delay_s for link in problem.fabric.links}
    latencies = {switch.name: switch.latency_s for switch in problem.fabric.switches}
    return {
        link: count * bits / capacities[link] + delays[frozenset(link)] + latencies.get(link[0], 0.0)
        for link, count in flows.items()
    }


def recirculation_times(problem: Problem, loads: list[TreeLoad]) -> dict[Inp, float]:
    """For each pipeline that recirculates, the seconds for a frame of each summed flow in passes after the first."""
    bits, found = 8 * problem.fragment.wire_bytes, {}
    for (switch, pipeline), flows in summed_flows(load.tree for load in loads).items():
        chip = problem.fabric.switch_by_name[switch].chip
        if chip is not None and chip.recirculation_bps is not None:
            found[switch, pipeline] = flows * (chip.passes - 1) * bits / chip.recirculation_bps
    return found


def way_s(tree: AggregationTree, hops_s: dict[DirectedLink, float], passes_s: dict[Inp, float]) -> float:
    """The seconds of the longest way from a worker to the root, plus those of a result's longest way back."""

    def times(label: int) -> Iterator[float]:
        yield from (hops_s[link] for link in pairwise(tree.way(label)))
        while label != ROOT_LABEL:
            label = tree.branch_of[label].parent
            if label in tree.aggregator_of:
                yield passes_s.get(tree.aggregator_of[label].inp, 0.0)

    up = max(fsum(times(label)) for label in tree.workers)
    back = 0.0
    for worker in tree.workers.values():
        node, took = worker, 0.0
        while node != tree.root:
            node, below = tree.result_parents[node], node
            took += hops_s[node, below]
        back = max(back, took)
    return up + back


def link_loads(loads: Iterable[TreeLoad]) -> dict[DirectedLink, float]:
    """The bit/s of gradients on every directed link."""
    return sums_by_key(
        (link, load.rate_bps) for load in loads for branch in load.tree.branches for link in branch.links
    )


def result_loads(loads: Iterable[TreeLoad]) -> dict[DirectedLink, float]:
    """The bit/s of results on every directed link.

    Results are multicast: one copy on every link of the way back, however many flows came by it.
    """
    return sums_by_key(
        ((parent, node), load.rate_bps) for load in loads for node, parent in load.tree.result_parents.items()
    )


def load_hops(load: TreeLoad, *, results: bool = True) -> Iterator[DirectedLink]:
    """Yield the link of every hop of a fragment: of its gradients and, with `results`, of its result."""
    yield from (link for branch in load.tree.branches for link in branch.links)
    if results:
        yield from ((above, node) for node, above in load.tree.result_parents.items())


def switch_aggregation(loads: list[TreeLoad], alone: list[Foreseen]) -> dict[str, SwitchAggregation]:
    """The gradient packets of one iteration that each switch receives and sends.

    A flow enters every node of its path but the first, and leaves every node but the last.
    """
    received: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    for load in loads:
        for branch in load.tree.branches:
            received.update(dict.fromkeys(branch.path[1:], load.packets))
            sent.update(dict.fromkeys(branch.path[:-1], load.packets))
    for connection, count in (found for each in alone for found in each.counts()):
        received.update(dict.fromkeys(connection.path[1:-1], count))
        sent.update(dict.fromkeys(connection.path[1:-1], count))
    hosts = {load.tree.root for load in loads if not load.tree.in_network_root}
    return {node: SwitchAggregation(count, sent[node]) for node, count in received.items() if node not in hosts}
