"""Runs in virtual time that are observed: known times on a network worked out by hand, and parts that add up."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from command import Answer, inakit

from inakit.experiments.bench.exactness import case
from inakit.experiments.run.faults import Event, When
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.observation import (
    MOST_HOPS,
    Observed,
    Sampling,
    followed,
    observation,
    parse_sampling,
    round_up,
)
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.registry import find_world
from inakit.experiments.worlds.world import Observation
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.virtual.engine import PS_PER_S
from inakit.traffic.measure.over_time import PARTS
from inakit.traffic.wire.packet_format import FRAGMENT

pytestmark = pytest.mark.compiler

US_PS = 10**6
BITS_PER_US = 8 * FRAGMENT.wire_bytes * 1e6
"""The rate in bit/s at which a link sends one fragment in a microsecond."""
STEP_S = 10e-6


def two_workers(fragments: int) -> tuple[Problem, Plan]:
    """Workers w1 and w2, a switch that sums, and a PS; w2's link is half as fast as the others.

    The links of w1 and of the PS delay by 0.05 and 0.2 µs. Each worker sends a fragment in 10 µs.
    """
    fast, slow = BITS_PER_US, BITS_PER_US / 2
    links = (
        Link("w1", "s", 0, 1, fast, fast, 50e-9),
        Link("w2", "s", 0, 2, slow, slow),
        Link("ps", "s", 0, 3, fast, fast, 2e-7),
    )
    fabric = Fabric("by-hand", (Host("w1"), Host("w2"), Host("ps")), (Switch("s", 1, ((1, 2, 3),)),), links)
    branches = (Branch(1, 3, ("w1", "s")), Branch(2, 3, ("w2", "s")), Branch(3, 0, ("s", "ps")))
    tree = AggregationTree(1, "ps", {1: "w1", 2: "w2"}, (Aggregator(3, "s", 0, (1, 2), 0, 64),), branches)
    planned = PlannedTree(1, 1.0, BITS_PER_US / 10, tree)
    job = Job(1, ("w1", "w2"), ("ps",), fragments * 4 * FRAGMENT.values)
    return Problem(fabric, (job,), FRAGMENT), Plan("by hand", fabric.name, (planned,), SolverOutcome("heuristic", 0.0))


def ran(problem: Problem, plan: Plan, noted: Observation | None, faults: FaultPlan | None = None) -> Outcome:
    outcome = run_plan(
        Run(
            Prepared(problem, plan),
            interferences=faults.interferences if faults else (),
            observation=noted,
        ),
        find_world("virtual"),
    )
    assert outcome.measured.exact
    return outcome


def observed(
    problem: Problem,
    plan: Plan,
    noted: Observation | None = None,
    faults: FaultPlan | None = None,
) -> Observed:
    """What is observed of a run, by default as the kit chooses."""
    found = ran(problem, plan, noted or observation(Prepared(problem, plan)), faults).observed
    assert found is not None
    return found


def pause(worker: str, lasting_s: float) -> FaultPlan:
    return FaultPlan(events=(Event(When(0.0), "pause", (worker,), lasting_s=lasting_s),))


def in_us(found: Observed) -> dict[str, list[float]]:
    """Every part of the fragments' times in microseconds; what is not a whole picosecond would show."""
    return {part: (times / US_PS).tolist() for part, times in zip(PARTS, found.fragments.parts_ps.T, strict=True)}


def test_every_part_of_a_fragments_time_is_known() -> None:
    found = observed(*two_workers(1))
    assert found.fragments.started_ps.tolist() == [0]
    assert found.fragments.waited_for == ("w2",)
    assert in_us(found) == {
        "slots": [0.0],  # both send at once
        "sending": [3.0],  # 2 from w2, 1 to the PS
        "queues": [0.0],
        "delay": [0.2],  # of the PS's link
        "server": [0.0],  # it answers at once
        "result_sending": [3.0],
        "result_queues": [0.0],
        "result_delay": [0.2],
    }
    assert found.fragments.total_ps.tolist() == [6_400_000]


def test_a_slow_worker_shows_as_waiting_in_a_slot() -> None:
    found = observed(*two_workers(1), faults=pause("w2", 95e-6))
    assert in_us(found)["slots"] == [95.0]
    assert in_us(found)["sending"] == [3.0]
    assert found.fragments.waited_for == ("w2",)


def test_fragments_that_are_sent_at_once_wait_in_queues() -> None:
    problem, plan = two_workers(5)
    full = replace(plan, trees=tuple(replace(planned, rate_bps=BITS_PER_US) for planned in plan.trees))
    found = observed(problem, full)
    # Workers send one in 1 µs, w2's link one in 2 µs.
    assert (found.fragments.started_ps / US_PS).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert in_us(found)["queues"] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert in_us(found)["server"] == [0.0] * 5
    assert in_us(found)["result_queues"] == [0.0] * 5
    assert found.fragments.total_ps.tolist() == found.fragments.parts_ps.sum(axis=1).tolist()


def test_links_and_workers_over_time_are_known() -> None:
    problem, plan = two_workers(1)
    links = observed(problem, plan, replace(observation(Prepared(problem, plan)), interval_s=4e-6)).links
    w2 = links.samples.utilisation[links.links.index(("w2", "s"))]
    assert w2[:2].tolist() == [0.5, 0.0]  # from 0 to 2 µs
    ((_, first, second),) = [row for row in links.worker_rows(("w1", "w2")) if float(row[0]) == 0]
    for rate in (first, second):
        assert float(rate) == pytest.approx(BITS_PER_US / 4)
    assert "ps → s" in [link["link"] for link in links.as_json()["most_loaded"]]


@pytest.mark.parametrize("policy", ["goat", "shadow-copy", "switchml", "atp", "esa"])
def test_parts_add_up_under_every_policy(policy: str) -> None:
    found = observed(*case(policy, levels=2, fragments=60, slots=8, rate_bps=2e7))
    fragments = found.fragments
    assert (found.every, len(fragments.seq), fragments.incomplete) == (1, 60, 0)
    assert (fragments.parts_ps >= 0).all()
    parts = dict(zip(PARTS, fragments.parts_ps.T, strict=True))
    assert (parts["sending"] > 0).all()
    assert (parts["result_sending"] > 0).all()
    assert (parts["server"] == 0).all()  # a PS answers at once
    assert (fragments.parts_ps.sum(axis=1) == fragments.total_ps).all()


@pytest.mark.parametrize("faults", [LinkFaults(drop=0.02), LinkFaults(reorder=0.1), LinkFaults(duplicate=0.1)])
def test_a_fragments_time_is_that_of_its_first_and_last_packets(faults: LinkFaults) -> None:
    problem, plan = case("shadow-copy", levels=2, fragments=60, slots=8, rate_bps=2e7)
    switches = problem.fabric.switch_by_name
    everywhere = {link: faults for link in problem.fabric.capacities_bps if link[1] in switches}
    outcome = ran(problem, plan, observation(Prepared(problem, plan)), FaultPlan(links=everywhere))
    assert outcome.observed is not None
    fragments, (iteration,) = outcome.observed.fragments, outcome.measured.iterations
    assert (len(fragments.seq), fragments.incomplete) == (60, 0)
    assert (fragments.parts_ps >= 0).all()
    assert fragments.started_ps.min() / PS_PER_S == pytest.approx(iteration.started_s)
    ended_s = (fragments.started_ps + fragments.total_ps).max() / PS_PER_S
    assert iteration.started_s + iteration.communication_time_s == pytest.approx(ended_s)


def test_observing_a_run_changes_nothing_else_of_it() -> None:
    problem = build_problem(FabricChoice("aro-figure1"), JobChoice(gradient_bytes=64_000, iterations=2))
    plan = METHODS["atp"].plan(problem)
    with_series, without = (ran(problem, plan, noted) for noted in (observation(Prepared(problem, plan)), None))
    extra = {"links_over_time", "fragments"}
    assert with_series.results.as_json().keys() - without.results.as_json().keys() == extra
    texts = [
        json.dumps({key: value for key, value in each.results.repeatable().items() if key not in extra})
        for each in (with_series, without)
    ]
    assert texts[0] == texts[1]
    assert list(with_series.measured.rows()) == list(without.measured.rows())


def test_of_very_many_fragments_some_are_followed() -> None:
    problem = build_problem(FabricChoice("fattree"), JobChoice(gradient_bytes=500_000_000, iterations=3))
    every, hops = followed(problem, METHODS["aro"].plan(problem))
    assert every > 100
    assert every % 2 == 1
    assert hops < 3 * MOST_HOPS


def test_a_sample_of_fragments_has_the_times_that_they_have_among_all() -> None:
    problem, plan = case("shadow-copy", levels=1, fragments=60, slots=8, rate_bps=2e7)
    everything = observed(problem, plan).fragments
    sample = observed(problem, plan, replace(observation(Prepared(problem, plan)), every=7)).fragments
    mine = everything.seq % 7 == 0
    assert 0 < len(sample.seq) < 60
    assert sample.seq.tolist() == everything.seq[mine].tolist()
    assert sample.parts_ps.tolist() == everything.parts_ps[mine].tolist()


@pytest.mark.parametrize(("seconds", "rounded"), [(0.0012, 0.002), (0.002, 0.002), (0.0021, 0.005), (7e-6, 1e-5)])
def test_intervals_are_round(seconds: float, rounded: float) -> None:
    assert round_up(seconds) == pytest.approx(rounded)


def test_what_is_asked_of_series() -> None:
    assert parse_sampling("2ms") == Sampling(asked=True, interval_s=2e-3)
    assert parse_sampling("off").off
    with pytest.raises(InputError, match="series '5 apples': expected on, off, or an interval"):
        parse_sampling("5 apples")


def emulated(series: str, at: Path) -> Answer:
    """A short run in virtual time with an option `--series`."""
    return inakit(
        "emulate", "--topo", "aro-figure1", "--planners", "aro", "--switch", "virtual", "--iterations", "1",
        "--gradient-bytes", "32000", "--series", series, "--details", at=at,
    )  # fmt: skip


def test_the_command_writes_tables_files_and_a_picture(tmp_path: Path) -> None:
    answer = emulated("1ms", tmp_path)
    assert answer.code == 0, answer
    assert "time per fragment" in answer.output
    assert "median" in answer.output
    assert "w0 → l1" in answer.output
    (folder,) = tmp_path.glob("results/2*")
    entry = json.loads((folder / "run.json").read_text())["planners"]["aro"]
    assert entry["links_over_time"]["interval_s"] == 1e-3
    seconds = entry["fragments"]["seconds"]
    assert sum(seconds[part]["mean"] for part in PARTS) == pytest.approx(seconds["total"]["mean"])
    with gzip.open(folder / "aro/fragments.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == entry["fragments"]["followed"] == 125
    assert all(sum(int(row[f"{part}_ps"]) for part in PARTS) == int(row["total_ps"]) for row in rows)
    with gzip.open(folder / "aro/link_series.csv.gz", "rt") as file:
        full = [row for row in csv.DictReader(file) if row["utilisation"] == "1"]
    assert {float(row["rate_bps"]) for row in full} == {20e6}
    assert (folder / "aro/worker_rates.csv").read_text().startswith("at_s,w0_bps,w1_bps,")
    assert (folder / "aro/series.png").read_bytes().startswith(b"\x89PNG")


def test_a_collective_has_links_over_time_and_a_report_but_no_fragments_in_slots(tmp_path: Path) -> None:
    answer = inakit(
        "emulate", "--topo", "leafspine:leaves=2,spines=1,hosts_per_leaf=2", "--planners", "ring",
        "--switch", "virtual", "--iterations", "1", "--gradient-bytes", "7680", "--series", "1ms", at=tmp_path,
    )  # fmt: skip
    assert answer.code == 0, answer
    (folder,) = tmp_path.glob("results/2*")
    entry = json.loads((folder / "run.json").read_text())["planners"]["ring"]
    assert entry["links_over_time"]["interval_s"] == 1e-3
    assert entry["fragments"]["followed"] == 0
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_without_series_there_are_none(tmp_path: Path) -> None:
    answer = emulated("off", tmp_path)
    assert answer.code == 0, answer
    assert "where fragments" not in answer.output
    (folder,) = tmp_path.glob("results/2*")
    assert not list(folder.glob("aro/*series*"))


def test_a_world_of_real_time_has_no_series() -> None:
    problem, plan = two_workers(1)
    run = Run(Prepared(problem, plan), observation=observation(Prepared(problem, plan)))
    with pytest.raises(InputError, match="'fast' has no series of queues, links and workers: choose virtual"):
        run_plan(run, EmulatedWorld("fast"))
