"""`--sample`: what is computed from three pieces is what the whole run measures, and unsteady runs are not sampled.

The short form has a few combinations of planner, slot policy, size and network, the long form a hundred that are
accepted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inakit.experiments.emulate.emulate import Emulation, check
from inakit.experiments.emulate.emulate import run as emulate
from inakit.experiments.run.faults_file import faults_from
from inakit.experiments.run.long_transfers import (
    LEAST_FRAGMENTS,
    LEAST_STEPS,
    TOLERANCE,
    Line,
    UnsteadyError,
    from_pieces,
    piece_of,
    run_sampled,
    step_counts,
    unit_counts,
)
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.prepared import prepare
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import InputError, PlanError

pytestmark = pytest.mark.compiler

WORLD = VirtualWorld()
PROMISED = 0.001
"""The largest error of a figure of a run that is sampled."""
RACKS = FabricChoice("leafspine", leaves=2, spines=2, hosts_per_leaf=3, capacity="100M")
FABRICS = (
    RACKS,
    FabricChoice("leafspine", leaves=3, spines=1, hosts_per_leaf=2, capacity="10M:30M", seed=3),
    FabricChoice("aro-figure1"),
    FabricChoice("fattree", 4, capacity="100G"),
    FabricChoice("fattree", 4, capacity="1G", ina="0.4", pipelines=2),
)
PLANNERS = (
    *("aro", "forest", "atp", "geryon", "inart", "goat", "grid", "panama", "paring", "spar", "soar", "sharp", "lbmm"),
    *("random", "aggtree-balanced", "inarouting", "ring", "halving-doubling", "double-tree", "hierarchical"),
)


@dataclass(frozen=True)
class Combination:
    """A run by the choices of the command line."""

    planner: str
    fabric: FabricChoice = RACKS
    policy: str = ""
    gradient_bytes: int = 4_000_000
    iterations: int = 1
    servers: int = 1

    def run(self, rates: float = 1.0) -> Run:
        """The run of the plan, whose rates are multiplied by `rates`. Raises `PlanError`, `InputError`."""
        size = JobChoice(gradient_bytes=self.gradient_bytes, iterations=self.iterations, servers=self.servers)
        problem = build_problem(self.fabric, size)
        plan = METHODS[self.planner].plan(problem)
        if self.policy:
            plan = with_policy(problem, plan, self.policy)
        prepared = prepare(problem, plan)
        return Run(replace(prepared, plan=prepared.plan.with_rates_times(rates)))


def figures_of(outcome: Outcome) -> dict[str, float]:
    """The figures of a run by name, without rates of collectives, which have no PS."""
    measured = outcome.measured
    names = ("sending_rate_bps", "total_rate_bps", "ps_ingress_bytes", "communication_time_s", "sent_bytes")
    jobs = {f"time of job {job}": measured.of_job(job).communication_time_s for job in measured.jobs}
    return {name: getattr(measured, name) for name in names} | jobs


def check_against_whole(run: Run, sampled: Outcome) -> None:
    """Assert that the sampled run has the counters of the whole run, and its figures up to what is promised."""
    whole = run_plan(run, WORLD)
    for name, figure in figures_of(whole).items():
        assert figures_of(sampled)[name] == pytest.approx(figure, rel=PROMISED), name
    if run.plan.collectives:  # how many packets a receiver acknowledges at once depends on when it looks
        found, expected = (each.monitor.after.interfaces for each in (sampled, whole))
        busiest = max(counted.sent_bytes for counted in expected.values())  # other links carry acknowledgements only
        for name, counted in expected.items():
            assert found[name].sent_bytes == pytest.approx(counted.sent_bytes, PROMISED, PROMISED * busiest), name
    else:
        assert sampled.monitor.after.interfaces == whole.monitor.after.interfaces
        assert sampled.monitor.after.switches == whole.monitor.after.switches
    assert (sampled.verdict, sampled.bandwidth is None) == (whole.verdict, whole.bandwidth is None)


@pytest.mark.parametrize(
    "combination",
    [
        Combination("aro"),
        Combination("atp", policy="goat", iterations=2),
        Combination("inart", servers=2, gradient_bytes=7_000_000),
        Combination("ring", gradient_bytes=16_000_000),
    ],
    ids=str,
)
def test_a_steady_run_is_computed_from_its_pieces(combination: Combination) -> None:
    run = combination.run()
    sampled = run_sampled(run, WORLD)
    assert sampled.sampled is not None
    assert sampled.sampled.why_whole is None
    assert sampled.sampled.by_packets < sampled.sampled.fragments / 2
    assert sampled.sampled.error < TOLERANCE
    check_against_whole(run, sampled)


def combinations() -> Iterator[Combination]:
    """Yield all combinations in an order that is drawn once."""
    sizes = (4_000_000, 5_500_000, 7_000_000)
    every = [Combination(*each) for each in product(PLANNERS, FABRICS, ("", *POLICIES), sizes, (1, 2), (1, 2))]
    random.Random(39).shuffle(every)
    yield from every


@pytest.mark.long
@pytest.mark.parametrize("quarter", range(4))
def test_a_hundred_runs_that_are_accepted_are_right(quarter: int) -> None:
    accepted = 0
    for combination in islice(combinations(), quarter, None, 4):
        try:
            run = combination.run()
        except (PlanError, InputError):  # a policy or a number of PSs that the planner does not take
            continue
        sampled = run_sampled(run, WORLD)
        assert sampled.sampled is not None
        if sampled.sampled.why_whole is None:
            check_against_whole(run, sampled)
            accepted += 1
        if accepted == 25:
            break
    assert accepted == 25


def two_jobs(**second: Any) -> Problem:
    """Two jobs of one worker; `second` changes the second one."""
    problem = build_problem(RACKS, JobChoice(gradient_bytes=4_000_000))
    one, two, three, four, *_ = (host.name for host in problem.fabric.hosts)
    jobs = Job(1, (one,), (three,), 4_000_000), Job(2, (two,), (four,), 4_000_000)
    return replace(problem, jobs=(jobs[0], replace(jobs[1], **second)))


FAULTS: tuple[Mapping[str, Any], ...] = (
    {"links": [{"link": "all", "drop": 0.01}]},
    {"links": [{"link": "all", "reorder": 0.01}]},
    {"links": [{"link": "all", "duplicate": 0.01}]},
    {"stragglers": {"mean": 0.9, "spread": 0.1}},
)
COLLIDING = (
    ("forest", 2, "atp"),
    ("inart", 2, "atp"),
    ("inart", 4, "esa"),
    ("inart", 3, "esa"),
    ("paring", 4, "esa"),
    ("aro", 4, "atp"),
)
"""Planners, fabrics and policies whose trees share slots: fragments that meet in them are sent again."""


def unsteady_runs() -> Iterator[tuple[str, Run]]:
    """Yield thirty runs that later differ from their beginning, each with a part of the reason."""
    plain = Combination("aro").run()
    for document in FAULTS:
        yield "faults", replace(plain, interferences=faults_from(document, plain.problem).interferences)
    yield "its plan changes", replace(plain, replans=Options())
    yield "captures", replace(plain, captures=(("leaf1", 1),))
    yield "replays", replace(plain, prepared=prepare(plain.problem, plain.plan, "replay"))
    for planner in ("aro", "atp", "inart"):
        for second, why in (
            ({"arrival_s": 0.1}, "jobs arrive"),
            ({"compute_s": 0.1, "iterations": 2}, "jobs compute"),
            ({"iterations": 2}, "different numbers"),
        ):
            problem = two_jobs(**second)
            yield why, Run(prepare(problem, METHODS[planner].plan(problem)))
    for planner, rates in product(("aro", "atp", "lbmm", "inart"), (1.02, 1.1)):
        yield "a queue grows|OVERLOADED", Combination(planner, gradient_bytes=8_000_000).run(rates)
    for planner, fabric, policy in COLLIDING:
        yield "packets sent again|halved windows|collisions", Combination(planner, FABRICS[fabric], policy).run()


@pytest.mark.parametrize("chosen", [(0, 4, 6, 7, 16, 24), pytest.param(tuple(range(30)), marks=pytest.mark.long)])
def test_unsteady_runs_are_not_sampled(chosen: tuple[int, ...]) -> None:
    runs = list(unsteady_runs())
    assert len(runs) == 30
    for number in chosen:
        why, run = runs[number]
        with pytest.raises(UnsteadyError, match=why):
            from_pieces(run, WORLD)


def test_a_run_that_is_not_steady_is_sent_whole_and_says_why() -> None:
    run = Combination("aro", gradient_bytes=64_000).run()
    whole = run_sampled(run, WORLD)
    assert whole.sampled is not None
    assert (whole.sampled.by_packets, whole.sampled.fragments) == (250, 250)
    assert whole.sampled.why_whole == "it is too short: its pieces would be most of it"
    assert figures_of(whole) == figures_of(run_plan(run, WORLD))


@pytest.mark.parametrize("planner", ["forest", "inart", "ring"])
def test_pieces_grow_by_the_same_fragments_until_the_whole_run(planner: str) -> None:
    prepared = Combination(planner, gradient_bytes=30_000_000, servers=2).run().prepared
    tried = list(step_counts(prepared))
    assert len(tried) > 1
    for steps in tried:
        pieces = [piece_of(prepared, steps, number) for number in (0, 1, 2, steps)]
        counts = [{key: count for key, (count, _) in unit_counts(piece).items()} for piece in pieces]
        assert counts[-1] == {key: count for key, (count, _) in unit_counts(prepared).items()}
        for key, (first, second, third, whole) in {key: [each[key] for each in counts] for key in counts[0]}.items():
            step = second - first
            assert (third, whole) == (second + step, first + steps * step), key
            assert LEAST_FRAGMENTS <= step <= first
        assert steps >= LEAST_STEPS


def test_a_line_through_integers_ends_at_an_integer() -> None:
    line = Line(steps=1000)
    assert line.count("bytes", [10, 13, 16]) == 3010
    assert line.error == 0
    assert line.end("time", [1.0, 1.5000001, 2.0]) == 501
    assert line.error == pytest.approx(1e-7 * 1000 / 501)
    with pytest.raises(UnsteadyError, match=r"bytes does not grow on a line: .* wrong by up to 33.22%"):
        line.count("bytes", [10, 14, 16])


def test_a_world_in_real_time_is_not_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatedWorld, "check", lambda _self: None)  # this machine need not be able to run it
    problem = build_problem(RACKS, JobChoice(gradient_bytes=64_000))
    with pytest.raises(InputError, match="runs in real time"):
        run_sampled(Run(prepare(problem, METHODS["aro"].plan(problem))), EmulatedWorld("fast"))
    with pytest.raises(InputError, match="runs in real time"):
        check(Emulation(problem, ("aro",), "fast", results=tmp_path, sample=True))


def test_the_report_says_how_much_was_sent_by_packets(tmp_path: Path) -> None:
    problem = build_problem(RACKS, JobChoice(gradient_bytes=4_000_000, iterations=1))
    console = Console(record=True, width=200, quiet=False, file=StringIO())
    record = emulate(Emulation(problem, ("aro",), "virtual", results=tmp_path, sample=True), console)
    sampled = record.planners["aro"].sampled
    assert sampled is not None
    assert sampled.fragments == 15_625
    assert f"aro: by packets: {sampled.by_packets:,} of 15,625 fragments; the rest is computed" in console.export_text()
