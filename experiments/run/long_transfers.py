"""Long transfers in virtual time from short ones: three pieces of a run are sent by packets, and the rest is computed.

In a steady run every figure that adds up (times, bytes, packets) grows by the same amount with each further step of
fragments. The pieces are the run's first `r`, `r + d` and `r + 2d` fragments of each tree, where the whole run has
`r + n d` of them: the line through the first and the last piece then gives whole numbers for whole numbers, and the
piece between them says how straight it is. If it is not on the line, longer pieces are tried. A run that then is not on
it, or whose pieces lose packets or fill queues, is not steady, and is sent whole.

No bound on the error holds for runs whose
later part differs from everything in their pieces; therefore runs with faults, arrivals and the like are never sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from math import isqrt
from typing import NamedTuple, TypeVar

from inakit.experiments.run.console import Stage, unseen
from inakit.experiments.run.observation import observation
from inakit.experiments.run.outcome import Outcome, collisions, judged
from inakit.experiments.run.record import Sampled
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.world import World
from inakit.planner.core.plan import fragment_ranges
from inakit.planner.prepared import Prepared
from inakit.topo.errors import InputError
from inakit.traffic.measure.counters import InterfaceCounters, Snapshot, SwitchCounters
from inakit.traffic.measure.fidelity import dropped_by_queues
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.measure.verdict import VALID

TOLERANCE = 5e-4
"""The largest error of a figure, as a share of it, that the pieces may show: half of the 0.1 % that is promised."""
LEAST_FRAGMENTS = 512
"""The least fragments of every tree in a step: twice the most that are in flight (`SHARED_WINDOW`)."""
LEAST_STEPS = 12
"""A run of fewer steps is sent whole: its pieces have at least 6 steps, and would hardly save anything."""
SHORTER = 4
"""The number of steps is divided by this if pieces are not steady."""
DEEPER_PACKETS = 1
"""A queue whose peak grows by more packets from the shortest to the longest piece would fill in the whole run."""


Key = TypeVar("Key")


class UnsteadyError(Exception):
    """A run cannot be computed from its pieces, for the reason in words."""


class CurvedError(UnsteadyError):
    """Pieces are not on a line, up to the tolerance: longer ones can be."""


class Piece(NamedTuple):
    """The measurements of a piece: at its endpoints, in its network, and the deepest queue of each link."""

    measured: Measured
    before: Snapshot
    after: Snapshot
    queues: Sequence[int]


def run_sampled(run: Run, world: World, *, stage: Stage = unseen) -> Outcome:
    """Run a plan in virtual time by pieces, or whole if it is not steady; `sampled` of the outcome says which.

    Raises `InputError` for a world in real time, and the errors of `run_plan`.
    """
    check_sampled(world)
    try:
        return from_pieces(run, world, stage)
    except UnsteadyError as unsteady:
        total = fragments_of(run.prepared)
        whole = run_plan(run, world, stage=stage)
        return replace(whole, sampled=Sampled(fragments=total, by_packets=total, why_whole=str(unsteady)))


def from_pieces(run: Run, world: World, stage: Stage = unseen) -> Outcome:
    """The outcome that pieces of a run give for the whole run. Raises `UnsteadyError` with the last reason."""
    if (why := never_steady(run)) is not None:
        raise UnsteadyError(why)
    unsteady: UnsteadyError = UnsteadyError("it is too short: its pieces would be most of it")
    prepared, by_packets = run.prepared.fitted(world.program), 0
    for steps in step_counts(prepared):
        pieces = [piece_of(prepared, steps, number) for number in range(3)]
        by_packets += sum(map(fragments_of, pieces))
        try:
            outcome, error = computed(run, prepared, pieces, steps, world, stage)
        except CurvedError as curved:
            unsteady = curved
        else:
            sampled = Sampled(fragments=fragments_of(prepared), by_packets=by_packets, error=error)
            return replace(outcome, sampled=sampled)
    raise unsteady


def check_sampled(world: World) -> None:
    """Raise `InputError` for a world in real time, whose later parts no piece can tell."""
    if world.real_time:
        raise InputError(
            f"switch '{world.name}' runs in real time, where every part is sent: choose virtual, or omit --sample"
        )


def never_steady(run: Run) -> str | None:
    """The reason why a run cannot be steady, in words; None if only its pieces can tell."""
    jobs = run.problem.jobs
    reasons = {
        "replays are not sampled": run.mode != "reliable",
        "faults, background traffic and circuits that change are events of the whole run": bool(run.interferences),
        "its plan changes between iterations": run.replans is not None,
        "captures need every packet": bool(run.captures),
        "its gradients are given": run.gradients is not None,
        "jobs arrive during it": any(job.arrival_s for job in jobs),
        "jobs compute while others send": len(jobs) > 1 and any(job.compute_s for job in jobs),
        "jobs have different numbers of iterations": len({job.iterations for job in jobs}) > 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


# -- The pieces.


def fragments_of(prepared: Prepared) -> int:
    """The fragments of all gradients of a run."""
    return sum(prepared.problem.fragment.count(job.gradient_bytes) * job.iterations for job in prepared.problem.jobs)


def unit_counts(prepared: Prepared) -> dict[tuple[int, int | None], tuple[int, int]]:
    """The fragments of each tree that carries any, or of each collective, and the least fragments that it can add.

    Keys are jobs' and trees' numbers. The chunks of a collective grow alike if fragments are added by whole rounds.
    """
    problem, plan = prepared.problem, prepared.plan
    found: dict[tuple[int, int | None], tuple[int, int]] = {
        key: (len(fragments), 1) for key, fragments in fragment_ranges(problem, plan).items() if fragments
    }
    count = {job.number: problem.fragment.count(job.gradient_bytes) for job in problem.jobs}
    return found | {(each.job, None): (count[each.job], each.chunks) for each in plan.collectives}


def step_counts(prepared: Prepared) -> Iterator[int]:
    """Yield the numbers of steps to try, those of the shortest pieces first.

    They are even, so that lines through two integers end at integers. Pieces have up to as many fragments of a tree
    beyond the first step as there are steps; trees of one job stay in proportion if that is less than a step.
    """
    units = unit_counts(prepared).values()
    most = min(count // max(LEAST_FRAGMENTS, unit) for count, unit in units) - 1
    if len(units) > 1:
        most = min(most, *(isqrt(count // unit) for count, unit in units))
    while most >= LEAST_STEPS:
        steps = min(range(LEAST_STEPS, most + 1, 2), key=lambda steps: sum(map(fragments_of_pieces(steps), units)))
        yield steps
        most = steps // SHORTER


def fragments_of_pieces(steps: int) -> Callable[[tuple[int, int]], int]:
    """A function that returns the fragments of a tree, given its count and its unit, in all three pieces."""
    return lambda of_tree: 3 * of_tree[0] - 3 * (steps - 1) * step_of(*of_tree, steps)


def step_of(count: int, unit: int, steps: int) -> int:
    """The fragments of one of `steps` steps: after the last one, at least as many are left for the shortest piece."""
    return count // (steps + 1) // unit * unit


def piece_of(prepared: Prepared, steps: int, number: int) -> Prepared:
    """Piece 0, 1 or 2 of a run of `steps` steps: every tree without the last `steps - number` of its steps."""
    left = {
        key: count - (steps - number) * step_of(count, unit, steps)
        for key, (count, unit) in unit_counts(prepared).items()
    }
    totals: dict[int, int] = {}
    for (job, _), count in left.items():
        totals[job] = totals.get(job, 0) + count
    problem, plan = prepared.problem, prepared.plan
    jobs = (replace(job, gradient_bytes=4 * problem.fragment.values * totals[job.number]) for job in problem.jobs)
    trees = (replace(each, share=left.get((each.job, each.tree.number), 0) / totals[each.job]) for each in plan.trees)
    return replace(prepared, problem=replace(problem, jobs=tuple(jobs)), plan=replace(plan, trees=tuple(trees)))


# -- The whole run of the pieces.


@dataclass
class Line:
    """The line through three values, `steps` steps long. `error`: the largest of a figure at its end, as a share."""

    steps: int
    error: float = 0.0

    def end(self, what: str, values: Sequence[float], scale: float | None = None) -> float:
        """The value at the line's end. The error is a share of it, or of `scale`."""
        first, middle, last = values
        end = first + self.steps * (last - first) / 2
        self.note(what, abs(2 * middle - first - last) / 2 * self.steps / (abs(scale or end) or 1.0))
        return end

    def count(self, what: str, values: Sequence[int]) -> int:
        """`end` of integers."""
        first, middle, last = values
        end = first + self.steps // 2 * (last - first)
        self.note(what, abs(2 * middle - first - last) / 2 * self.steps / (abs(end) or 1))
        return end

    def note(self, what: str, error: float) -> None:
        """Keep the largest error of a figure. Raises `CurvedError` beyond the tolerance."""
        if error > TOLERANCE:
            raise CurvedError(f"{what} does not grow on a line: the whole run would be wrong by up to {error:.2%}")
        self.error = max(error, self.error)

    def counts(self, what: str, values: Sequence[Mapping[Key, int]]) -> dict[Key, int]:
        """`count` of each key."""
        return {key: self.count(what, [each[key] for each in values]) for key in values[-1]}

    def measured(self, pieces: Sequence[Measured]) -> Measured:
        """The measurements at the endpoints."""
        iterations = tuple(map(self.iteration, zip(*(piece.iterations for piece in pieces), strict=True)))
        whole_s = sum(each.communication_time_s for each in iterations)
        late_s = {
            host: self.end("lateness", [piece.late_s[host] for piece in pieces], whole_s) for host in pieces[-1].late_s
        }
        return replace(pieces[-1], iterations=iterations, late_s=late_s)

    def iteration(self, pieces: Sequence[Iteration]) -> Iteration:
        """One iteration. A rate is the end of the bytes over that of the time in which they are sent."""
        time_s = self.end("communication time", [each.communication_time_s for each in pieces])
        sent = self.counts("bytes of workers", [each.sent_bytes for each in pieces])
        rates = {}
        for host, rate in pieces[-1].sending_rate_bps.items():
            sending_s = [8 * each.sent_bytes[host] / (each.sending_rate_bps[host] or 1.0) for each in pieces]
            rates[host] = 8 * sent[host] / self.end("sending time", sending_s) if rate else 0.0
        return replace(
            pieces[-1],
            started_s=self.end("start", [each.started_s for each in pieces], time_s),
            communication_time_s=time_s,
            sending_rate_bps=rates,
            sent_bytes=sent,
            ps_ingress_bytes=self.counts("bytes of PSs", [each.ps_ingress_bytes for each in pieces]),
        )

    def snapshot(self, pieces: Sequence[Snapshot]) -> Snapshot:
        """All counters of the network."""
        return replace(
            pieces[-1],
            at_s=self.end("end", [each.at_s for each in pieces]),
            interfaces={
                name: InterfaceCounters(
                    **self.counts("traffic of a link", [vars(each.interfaces[name]) for each in pieces])
                )
                for name in pieces[-1].interfaces
            },
            queues=self.counts("drops", [each.queues for each in pieces]),
            switches={name: self.switch([each.switches[name] for each in pieces]) for name in pieces[-1].switches},
        )

    def switch(self, pieces: Sequence[SwitchCounters]) -> SwitchCounters:
        """The counters of a switch."""
        names = [part.name for part in fields(SwitchCounters)]
        return SwitchCounters(
            **{name: self.counts("a count of a switch", [vars(each)[name] for each in pieces]) for name in names}
        )


def computed(
    run: Run, prepared: Prepared, pieces: Sequence[Prepared], steps: int, world: World, stage: Stage
) -> tuple[Outcome, float]:
    """Run the pieces; return the outcome of the whole run, and its largest error. Raises `UnsteadyError`."""
    line = Line(steps)
    for number in prepared.prediction.jobs:
        planned = [each.prediction.jobs[number].communication_time_s for each in pieces]
        whole_s = prepared.prediction.jobs[number].communication_time_s
        line.note("planned time", abs(line.end("planned time", planned) / whole_s - 1))
    found = []
    for piece in pieces:
        asked = replace(run, prepared=piece, observation=observation(piece))
        outcome = run_plan(asked, world, stage=stage)
        found.append(steady(piece, outcome))
    for shortest, longest in zip(found[0].queues, found[-1].queues, strict=True):
        if longest > shortest + DEEPER_PACKETS:
            raise UnsteadyError(f"a queue grows with the length of the run: {shortest} packets, then {longest}")
    monitor = copy(outcome.monitor)
    monitor.before = line.snapshot([each.before for each in found])
    monitor.after = line.snapshot([each.after for each in found])
    whole = judged(prepared, line.measured([each.measured for each in found]), monitor)
    observed = None if run.observation is None else outcome.observed
    return replace(whole, setup_s=outcome.setup_s, observed=observed), line.error


def steady(prepared: Prepared, outcome: Outcome) -> Piece:
    """The measurements of a piece. Raises `UnsteadyError` if it is not VALID, or something was lost or sent again."""
    measured, monitor = outcome.measured, outcome.monitor
    length = f"a piece of {fragments_of(prepared):,} fragments"
    if outcome.verdict != VALID:
        raise UnsteadyError(f"{length} is {outcome.verdict}: {outcome.reasons[0]}")
    counts = {
        "packets sent again": measured.retransmissions,
        "halved windows": measured.window_cuts,
        "collisions in slots": collisions(monitor),
        "packets dropped by queues": dropped_by_queues(monitor),
    }
    for what, count in counts.items():
        if count:
            raise UnsteadyError(f"{length} has {what}: {count:,}")
    assert outcome.observed is not None
    queues = outcome.observed.links.samples.most_queue.max(axis=1).tolist()
    return Piece(measured, monitor.before, monitor.after, queues)
