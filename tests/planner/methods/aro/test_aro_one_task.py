"""ARO's fast methods for one task: on random fabrics they have the printed model's rate, and their routes keep it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from aro_cases import UNIT, random_fabric
from planner_cases import first_is_server, papers_setting, single
from tiers import long_unless

from inakit.planner.core.method import Options
from inakit.planner.core.plan import SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.bisection import Steps, flows_within, least_t
from inakit.planner.methods.aro.leaf_spine import leaf_spine as closed_form
from inakit.planner.methods.aro.one_task import FlowTest, best_choice, best_routing
from inakit.planner.methods.aro.task_graphs import task_graph, tasks_of
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import aro_figure1, fat_tree, goat_testbed, leaf_spine
from inakit.topo.fabric.variations import with_capacity, with_ina, with_pipelines

LEAF_SPINES = tuple(leaf_spine(leaves, spines, 4) for leaves in range(2, 6) for spines in range(1, 6))
OTHERS = (fat_tree(4), fat_tree(4, hosts_per_edge=5), fat_tree(6), goat_testbed(3), aro_figure1())


def equal_links(draw: random.Random) -> Fabric:
    """A leaf-spine with equal links, INA on some switches and even pipelines, for which the closed form holds."""
    fabric = with_pipelines(draw.choice(LEAF_SPINES), draw.randint(1, 5))
    fabric = with_ina(fabric, share=draw.choice([0.2, 0.4, 0.6, 0.8, 1]), seed=draw.randrange(1000))
    fabric = with_capacity(fabric, UNIT)
    if draw.random() < 0.3:
        return with_host_links(fabric, draw.choice([0.5, 2, 3]) * UNIT)
    return fabric


def with_host_links(fabric: Fabric, capacity_bps: float) -> Fabric:
    """The fabric with another capacity of the links of hosts."""
    hosts = fabric.host_names
    links = (
        replace(link, capacity_ab_bps=capacity_bps, capacity_ba_bps=capacity_bps) if {link.a, link.b} & hosts else link
        for link in fabric.links
    )
    return replace(fabric, links=tuple(links))


def anything(draw: random.Random) -> Fabric:
    """A fabric with uneven pipelines, capacities that differ by link and direction, and aggregation rates."""
    return random_fabric(draw, (*LEAF_SPINES, *OTHERS), limited=draw.random() < 0.2)


def random_problem(seed: int) -> Problem:
    draw = random.Random(seed)
    fabric = equal_links(draw) if seed % 2 else anything(draw)
    hosts = [host.name for host in fabric.hosts]
    draw.shuffle(hosts)
    return single(fabric, hosts[1 : draw.randint(2, len(hosts))], hosts[0])


def literal_rate_bps(problem: Problem) -> float:
    """The optimum of the printed model."""
    plan = METHODS["aro-raw"].plan(problem)
    assert plan.outcome.status == "optimal"
    return plan.trees[0].rate_bps


def agrees(problem: Problem) -> None:
    """Assert that the plan has the printed model's rate, says that this is proven, and passes the checker."""
    plan = METHODS["aro"].plan(problem)
    assert plan.outcome.status == "optimal"
    assert plan.trees[0].rate_bps == pytest.approx(literal_rate_bps(problem), rel=1e-6)


@pytest.mark.parametrize(
    "seeds", [long_unless(start < 60, range(start, start + 20)) for start in range(0, 100, 20)], ids=str
)
def test_the_rate_is_the_literal_models(seeds: range) -> None:
    for seed in seeds:
        agrees(random_problem(seed))


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(100, 5000, 100)], ids=str)
def test_the_rate_is_the_literal_models_on_thousands(seeds: range) -> None:
    for seed in seeds:
        agrees(random_problem(seed))


def test_both_ways_are_tried() -> None:
    problems = [random_problem(seed) for seed in range(300)]
    closed = sum(closed_form(problem.fabric, *tasks_of(problem)) is not None for problem in problems)
    assert 100 < closed < 200


def recounted(problem: Problem) -> Iterator[tuple[tuple[str, str], int]]:
    """The flows on every link, counted from the routes alone; those that enter one INP leave it as one."""
    fabric = problem.fabric
    flows: dict[tuple[str, str], set[object]] = {}
    for path in best_routing(fabric, tasks_of(problem)[0], SolverOptions()).paths:
        flow: object = path[0]
        for node, peer in pairwise(path):
            flows.setdefault((node, peer), set()).add(flow)
            if peer in fabric.switch_by_name and fabric.switch_by_name[peer].ina:
                flow = (peer, fabric.ingress_pipeline(peer, node))
    yield from ((link, len(found)) for link, found in flows.items())


@pytest.mark.parametrize("seed", [long_unless(seed < 20, seed) for seed in range(40)])
def test_a_recount_of_the_routes_gives_the_rate(seed: int) -> None:
    problem = replace_limits(random_problem(seed))
    rates = (problem.fabric.capacities_bps[link] / count for link, count in recounted(problem))
    assert min(rates) == pytest.approx(METHODS["aro"].plan(problem).trees[0].rate_bps, rel=1e-9)


def replace_limits(problem: Problem) -> Problem:
    """The fabric without aggregation rates, so that only links limit."""
    switches = tuple(replace(switch, aggregation_rate_bps=None) for switch in problem.fabric.switches)
    return replace(problem, fabric=replace(problem.fabric, switches=switches))


@pytest.mark.parametrize("seed", [long_unless(seed < 10, seed) for seed in range(20)])
def test_the_solver_finds_what_the_closed_form_does_on_larger_fabrics(seed: int) -> None:
    """On 12 leaves and 12 spines with up to 100 workers the printed model would take long."""
    draw = random.Random(seed)
    fabric = with_ina(
        with_pipelines(with_capacity(leaf_spine(12, 12, 12), UNIT), draw.randint(1, 6)), share=0.3, seed=seed
    )
    problem = first_is_server(fabric, workers=draw.randint(20, 100))
    (task,) = tasks_of(problem)
    closed = closed_form(fabric, task)
    assert closed is not None
    steps = Steps(closed.capacities_bps)
    test = FlowTest(task_graph(fabric, task.job.workers, task.server), SolverOptions())
    least = least_t(closed.fits, steps, 0, 1)  # 1 s/bit is plenty
    assert least is not None
    assert test.fits(least.t) is not None
    assert least.t <= steps.from_(0) or test.fits(steps.up_to(least.t * (1 - 1e-6))) is None


@pytest.mark.parametrize("fabric", [leaf_spine(3, 4, 40), leaf_spine(2, 8, 60)])
@pytest.mark.parametrize("aggregating", [("leaf1", "spine1"), ("leaf1", "spine1", "spine2")])
def test_where_the_servers_leaf_has_not_enough_bits_the_solver_decides(
    fabric: Fabric, aggregating: tuple[str, ...]
) -> None:
    """In the closed form's routes more than 64 flows could enter a pipeline of the PS's leaf."""
    problem = first_is_server(with_ina(with_capacity(fabric, UNIT), aggregating))
    closed = closed_form(problem.fabric, tasks_of(problem)[0])
    assert closed is not None
    choice = best_choice(closed, SolverOptions())
    assert choice is None or closed.most_children_at_tor(choice.solution) > 64
    agrees(problem)


@pytest.mark.parametrize("seed", [long_unless(seed < 6, seed) for seed in range(12)])
def test_more_flows_than_bits_are_several_sums(seed: int) -> None:
    """More than 64 flows enter one pipeline of spines and of leaves; the printed model has the same optimum."""
    draw = random.Random(seed)
    fabric = with_pipelines(
        leaf_spine(draw.randint(2, 4), draw.randint(1, 3), draw.randint(30, 80)), draw.randint(1, 2)
    )
    fabric = with_ina(fabric, share=draw.choice([0.3, 0.6, 1]), seed=seed)
    hosts = [host.name for host in fabric.hosts]
    agrees(single(fabric, draw.sample(hosts[1:], min(len(hosts) - 1, draw.randint(70, 150))), hosts[0]))


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("seed", range(0, 10, 2))
def test_solvers_agree(solver: str, seed: int) -> None:
    problem = random_problem(seed)
    rate = METHODS["aro"].plan(problem, Options(solver=solver)).trees[0].rate_bps
    assert rate == pytest.approx(literal_rate_bps(problem), rel=1e-6)


def test_the_papers_setting() -> None:
    """24 leaves and spines, 576 servers, 200 workers, 9 INA switches of 4 pipelines: b / 4 or b / 3, proven."""
    rates = Counter[float]()
    for seed in range(10):
        plan = METHODS["aro"].plan(papers_setting(seed))
        assert plan.outcome.status == "optimal"
        rates[round(100e9 / plan.trees[0].rate_bps, 6)] += 1
    assert set(rates) == {3, 4}


def test_a_fat_tree_of_320_switches_is_planned_to_the_optimum() -> None:
    """500 workers; 64 switches sum, the PS's among them. At least four flows have to share a link."""
    fabric = with_pipelines(with_capacity(fat_tree(16), 100e9), 4)
    draw = random.Random(1)
    hosts = draw.sample([host.name for host in fabric.hosts], 501)
    chosen = draw.sample([switch.name for switch in fabric.switches], 63)
    plan = METHODS["aro"].plan(single(with_ina(fabric, (fabric.tor_of(hosts[0]), *chosen)), hosts[1:], hosts[0]))
    assert plan.outcome.status == "optimal"
    assert plan.trees[0].rate_bps == pytest.approx(100e9 / 4)


def test_an_incumbent_is_not_called_optimal() -> None:
    """The search is stopped before it has excluded a lower t, and the gap says how much may be left."""
    problem = random_problem(0)
    plan = METHODS["aro"].plan(problem, Options(gap=0.9))
    best = METHODS["aro"].plan(problem).trees[0].rate_bps
    found, gap = plan.trees[0].rate_bps, plan.outcome.gap
    assert gap is not None
    assert found <= best * (1 + 1e-9) and best <= found / (1 - gap) * (1 + 1e-9)
    assert (plan.outcome.status == "optimal") == (gap == 0)


def test_time_over_before_any_routes_are_found() -> None:
    with pytest.raises(SolverError, match=r"found no routes in 1e-06 s; raise the time limit"):
        METHODS["aro"].plan(random_problem(0), Options(time_limit_s=1e-6))


def interrupted(t: float) -> str | None:
    """A test of t that knows only 8 and 1."""
    if t not in (1, 2, 4, 8):
        raise SolverError("time is over")
    return "found" if t == 8 else None


def test_a_search_ends_with_what_it_has() -> None:
    least = least_t(interrupted, Steps([1.0]), 0.5, 100)
    assert least is not None
    assert (least.t, least.bound) == (8, 5)
    assert least.gap == pytest.approx(8 / 5 - 1)


def undecided(t: float) -> str | None:
    """A test of t that cannot decide 1 to 4."""
    if t <= 4:
        raise SolverError("time is over")
    return "found" if t >= 6 else None


def test_a_search_goes_on_above_what_it_cannot_decide() -> None:
    """Nothing fits at 5, so nothing fits at 1 to 4 either: what was left open is proven in the end."""
    least = least_t(undecided, Steps([1.0]), 0.5, 100)
    assert least is not None
    assert (least.t, least.gap) == (6, 0)


def test_a_search_goes_on_from_what_it_has() -> None:
    known = least_t(interrupted, Steps([1.0]), 0.5, 100)
    least = least_t(lambda t: "better" if t >= 7 else None, Steps([1.0]), 5, 100, known=known)
    assert least is not None
    assert (least.solution, least.t, least.gap) == ("better", 7, 0)
    assert least_t(lambda _: None, Steps([1.0]), 5, 100, known=known) == replace(known or least, bound=8)


def test_a_search_that_decides_nothing_says_why() -> None:
    def never(_: float) -> None:
        raise SolverError("time is over")

    with pytest.raises(SolverError, match="time is over"):
        least_t(never, Steps([1.0]), 0.5, 100)


@pytest.mark.parametrize("seed", range(50))
def test_the_search_finds_the_first_step_that_fits(seed: int) -> None:
    draw = random.Random(seed)
    capacities = [draw.uniform(0.5, 2) for _ in range(draw.randint(1, 5))]
    steps = Steps(capacities)
    least_that_fits = draw.choice([n / b for n in range(1, 30) for b in capacities])
    found = least_t(lambda t: t if t >= least_that_fits * (1 - 1e-12) else None, steps, 0, 1000)
    assert found is not None
    assert found.t == pytest.approx(least_that_fits)
    assert found.gap == 0


def test_nothing_fits() -> None:
    assert least_t(lambda _: None, Steps([1.0, 2.0]), 0, 50) is None


def test_between_two_steps_no_link_takes_more() -> None:
    draw = random.Random(0)
    capacities = [draw.uniform(0.5, 2) for _ in range(4)]
    steps, t = Steps(capacities), 0.3
    for _ in range(50):
        following = steps.above(t)
        assert [flows_within(b, following * (1 - 1e-6)) for b in capacities] == [flows_within(b, t) for b in capacities]
        assert sum(flows_within(b, following) for b in capacities) > sum(flows_within(b, t) for b in capacities)
        t = following
