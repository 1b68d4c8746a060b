"""The printed model against enumeration, its variants against one another, and what its plans promise."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import pytest
from aro_cases import CLOS, LEAF_SPINES, UNIT, best_value_bps, random_problem, worth_of_plan
from planner_cases import FRAGMENT, first_is_server, job, single
from tiers import long_unless

from inakit.experiments.papers.aro.examples import figure6
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.plan import Plan, SolverOptions, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.accelerations import (
    PRINTED,
    SEARCH,
    VARIANTS,
    AcceleratedOptions,
    LiteralOptions,
    check_rates,
    excluding,
    first_stage,
    locations,
    optimise,
    pre_pruned,
    solve_literal,
    take,
    unevenness,
)
from inakit.planner.methods.aro.one_task import generate_routes
from inakit.planner.methods.aro.printed_model import Form, build, task_graphs
from inakit.planner.methods.aro.task_graphs import tasks_of
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import InputError, SolverError
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.generators import Cable, aro_figure1, fat_tree, leaf_spine, wire
from inakit.topo.fabric.variations import with_ina, with_pipelines

EXACT = 1e-6
"""The relative difference that the solver takes for equality."""


def cases(jobs: int, servers: int, count: int, workers: int, bases: tuple[Fabric, ...] = CLOS) -> dict[str, Problem]:
    """Random problems, every fifth with aggregators of a limited rate."""
    return {
        f"{jobs}x{servers} {seed}": random_problem(seed, jobs, servers, workers, bases, limited=seed % 5 == 4)
        for seed in range(count)
    }


ONE_TASK = cases(1, 1, 32, 5)
SJMT = cases(1, 2, 12, 4) | cases(1, 3, 6, 3)
MJMT = cases(2, 1, 12, 4) | cases(2, 2, 5, 3, LEAF_SPINES[:2])
SEVERAL = SJMT | MJMT
PROBLEMS = ONE_TASK | SEVERAL


def planned(problem: Problem, variant: str = "aro-raw", **options: object) -> Plan:
    return METHODS[variant].plan(problem, AcceleratedOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [long_unless(n % 2 == 0, name) for n, name in enumerate(PROBLEMS)])
def test_the_optimum_is_what_enumeration_finds(name: str) -> None:
    plan = planned(PROBLEMS[name])
    assert plan.outcome.status == "optimal"
    assert worth_of_plan(PROBLEMS[name], plan) == pytest.approx(best_value_bps(PROBLEMS[name]), rel=EXACT)


@pytest.mark.parametrize("name", list(SEVERAL)[::2])
def test_two_way_leaves_room_for_the_results(name: str) -> None:
    """Footnote 3 leaves room for results, and counts at least the loads of the multicast that is really sent."""
    problem = PROBLEMS[name]
    plan = planned(problem, two_way=True)
    assert worth_of_plan(problem, plan) == pytest.approx(best_value_bps(problem, two_way=True), rel=EXACT)
    for link, load in evaluate(problem, plan).loads_with_results_bps.items():
        assert load <= problem.fabric.capacities_bps[link] * (1 + EXACT)


def test_two_way_costs_something_in_some_of_them() -> None:
    def rate(problem: Problem, *, two_way: bool) -> float:
        return worth_of_plan(problem, planned(problem, two_way=two_way))

    lower = [rate(p, two_way=True) < 0.99 * rate(p, two_way=False) for p in list(SEVERAL.values())[::2]]
    assert 3 < sum(lower) < len(lower)


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        *(long_unless(name != "2x1 6", name, 31) for name in list(PROBLEMS)[::8]),  # which takes seconds
        *((name, 100) for name in list(ONE_TASK)[::8]),
    ],
)
def test_quantized_rates_are_the_best_multiples_of_a_step(name: str, levels: int) -> None:
    problem = PROBLEMS[name]
    used = {link for graph in task_graphs(problem) for link in graph.links}
    step = max(problem.fabric.capacities_bps[link] for link in used) / levels  # Eq. (11)
    plan = planned(problem, "aro-qsr", levels=levels)
    assert all(each.rate_bps / step == pytest.approx(round(each.rate_bps / step)) for each in plan.trees)
    found = worth_of_plan(problem, plan)
    assert found == pytest.approx(best_value_bps(problem, step_bps=step), rel=EXACT)
    best = worth_of_plan(problem, planned(problem))
    assert plan.outcome.gap is not None
    assert found <= best * (1 + EXACT) <= found * (1 + plan.outcome.gap) * (1 + 2 * EXACT)


def test_an_uneven_capacity_is_rounded_down_to_whole_steps() -> None:
    """With the printed ceiling, Eq. (10) would give r = 2 of 4 steps on a link of 1.5 steps, more than it carries."""
    cables = [Cable("w1", "s", UNIT), Cable("w2", "s", UNIT), Cable("ps", "s", UNIT * 0.375)]
    problem = single(wire("step", ["w1", "w2", "ps"], {"s": 1}, cables), ["w1", "w2"], "ps")
    assert planned(problem, "aro-qsr", levels=4).trees[0].rate_bps == pytest.approx(UNIT / 4)


def test_too_few_levels_are_an_error_that_says_so() -> None:
    problem = first_is_server(with_ina(leaf_spine(2, 2, 4), ()))
    with pytest.raises(InputError, match=r"job 1 gets the rate 0: 3 levels are too coarse.*raise levels"):
        planned(problem, "aro-qsr", levels=3)


def test_a_job_that_has_no_rate_yet_needs_time_not_levels() -> None:
    problem = ONE_TASK["1x1 0"]
    cut = SolverOutcome("feasible", 60.0, gap=9.0)
    none = dict.fromkeys((task.key for task in tasks_of(problem)), 0.0)
    with pytest.raises(SolverError, match=r"job 1 has the rate 0 in the best plan of 60 s; raise the time limit"):
        check_rates(problem, cut, none, LiteralOptions())


@pytest.mark.parametrize("name", [long_unless(n % 2 == 0, name) for n, name in enumerate(list(PROBLEMS)[::2])])
def test_the_other_variants_are_no_better_and_claim_nothing(name: str) -> None:
    problem = PROBLEMS[name]
    best = worth_of_plan(problem, planned(problem, "aro-qsr", levels=40))
    step = max(problem.fabric.capacities_bps[link] for graph in task_graphs(problem) for link in graph.links) / 40
    for variant, model in product(("aro-acc", "aro-app", "aro-sro"), (SEARCH, PRINTED)):
        plan = planned(problem, variant, levels=40, model=model)
        assert worth_of_plan(problem, plan) <= best * (1 + EXACT)
        assert all(each.rate_bps / step == pytest.approx(round(each.rate_bps / step)) for each in plan.trees)
        assert (plan.outcome.status, plan.outcome.gap) == ("heuristic", None)


@pytest.mark.parametrize("name", [name for name in ONE_TASK if int(name.split()[1]) % 5 != 4][::6])
def test_a_single_tasks_search_is_the_printed_model_after_app(name: str) -> None:
    search, printed = (
        planned(ONE_TASK[name], "aro-app", model=model, alpha=0.5).trees[0].rate_bps for model in (SEARCH, PRINTED)
    )
    assert search == pytest.approx(printed)


def test_app_loses_where_every_aggregator_is_needed() -> None:
    """Two leaves that do not sum have three workers each; a leaf's flows take two spines, or with APP one."""
    fabric = with_ina(leaf_spine(3, 2, 3), ("spine1", "spine2"))
    problem = single(fabric, ["h4", "h5", "h6", "h7", "h8", "h9"], "h1")
    assert worth_of_plan(problem, planned(problem, "aro-qsr")) == pytest.approx(UNIT / 2)
    assert worth_of_plan(problem, planned(problem, "aro-app", alpha=0.5)) == pytest.approx(UNIT * 0.33)
    assert worth_of_plan(problem, planned(problem, "aro-app", alpha=1)) == pytest.approx(UNIT / 2)


def test_sro_leaves_out_what_its_first_stage_has_not_used() -> None:
    smaller = 0
    for problem in list(PROBLEMS.values())[::2]:
        graphs = optimise(problem, VARIANTS["aro-sro"], LiteralOptions())[0].graphs
        smaller += any(len(a.links) < len(b.links) for a, b in zip(graphs, task_graphs(problem), strict=True))
    assert smaller > 2


@pytest.mark.parametrize("name", list(SEVERAL)[::4])
def test_cbc_finds_the_same_optimum(name: str) -> None:
    problem = SEVERAL[name]
    highs, cbc = (worth_of_plan(problem, planned(problem, solver=solver)) for solver in ("highs", "cbc"))
    assert cbc == pytest.approx(highs, rel=10 * EXACT)


@pytest.mark.parametrize("name", list(PROBLEMS)[::4])
def test_routes_load_links_as_the_model_counts_them(name: str) -> None:
    problem = PROBLEMS[name]
    aro = optimise(problem, VARIANTS["aro-raw"], LiteralOptions())[0]
    switches = {switch.name for switch in problem.fabric.switches if switch.ina}
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for i, (task, graph) in enumerate(zip(aro.tasks, aro.graphs, strict=True)):
        paths[task.job.number] += generate_routes(graph, aro.counts(i))
    trees = [each.tree for each in plan_from_paths(problem, paths, switches).trees]
    for i, tree in enumerate(trees):
        assert flow_counts([tree]) == Counter({link: count for link, count in aro.counts(i).items() if count})


@pytest.mark.parametrize("name", list(SJMT)[::3])
def test_a_gradient_is_split_in_proportion_to_the_rates(name: str) -> None:
    plan = planned(SJMT[name])
    total = sum(each.rate_bps for each in plan.trees)
    assert [each.share for each in plan.trees] == pytest.approx([each.rate_bps / total for each in plan.trees])


def test_rates_of_tasks_are_kept_or_lowered_together() -> None:
    problem = first_is_server(leaf_spine(2, 1, 2))
    paths = {
        1: [("h2", "leaf1", "h1"), ("h3", "leaf2", "spine1", "leaf1", "h1"), ("h4", "leaf2", "spine1", "leaf1", "h1")]
    }
    for given, expected in ((UNIT / 9, UNIT / 9), (UNIT * 9, UNIT / 3)):
        assert plan_from_paths(problem, paths, rates_bps={(1, "h1"): given}).trees[0].rate_bps == pytest.approx(
            expected
        )


def test_a_server_without_a_rate_gets_no_tree_and_needs_no_paths() -> None:
    problem = single(leaf_spine(2, 1, 2), ["h3", "h4"], "h1", "h2")
    paths = {1: [(worker, "leaf2", "spine1", "leaf1", "h2") for worker in ("h3", "h4")]}
    (planned_tree,) = plan_from_paths(problem, paths, rates_bps={(1, "h2"): UNIT / 4}).trees
    assert (planned_tree.share, planned_tree.tree.number, planned_tree.tree.root) == (1, 2, "h2")
    with pytest.raises(InputError, match="job 1: its rate is 0 for every PS"):
        plan_from_paths(problem, paths, rates_bps={})


def test_a_job_of_twice_the_weight_gets_twice_the_rate() -> None:
    """Eq. (3) makes beta_s r equal, so beta_s is the inverse of a job's weight; the paper says a model's size."""
    fabric = leaf_spine(1, 1, 4)
    jobs = (replace(job(["h2"], "h1"), weight=2.0), replace(job(["h3"], "h1"), number=2))
    rates = [each.rate_bps for each in planned(Problem(fabric, jobs, FRAGMENT)).trees]
    assert rates == pytest.approx([UNIT * 2 / 3, UNIT / 3])


def test_the_time_limit_leaves_a_gap_and_no_optimum() -> None:
    fabric = with_pipelines(with_ina(leaf_spine(6, 6, 6), share=0.3, seed=3), 3)
    hosts = [host.name for host in fabric.hosts]
    jobs = tuple(job(hosts[4 + n :: 3], hosts[2 * n], hosts[2 * n + 1], number=n + 1) for n in range(2))
    jobs = tuple(replace(j, workers=tuple(set(j.workers) - {*hosts[:4]})) for j in jobs)
    outcome = planned(Problem(fabric, jobs, FRAGMENT), time_limit_s=1.0).outcome
    assert outcome.status == "feasible"
    assert outcome.gap is not None
    assert outcome.gap > EXACT


def test_alternatives_are_spines_or_a_pods_switches_or_cores() -> None:
    assert locations(leaf_spine(3, 2, 2)) == [("spine1", "spine2")]
    assert [len(names) for names in locations(fat_tree(4))] == [2, 2, 2, 2, 4]
    assert locations(fat_tree(4))[0] == ("agg1_1", "agg1_2")


def test_app_prefers_the_evener_aggregator_of_figure_6() -> None:
    graph = figure6()
    assert (unevenness(graph, "aa0"), unevenness(graph, "aa1")) == (8, 2)
    (pruned,) = pre_pruned([graph], 0.6)
    assert "aa0" not in pruned.into
    assert "aa1" in pruned.into


def test_tasks_take_turns_at_the_aggregators() -> None:
    offered, group = ["a", "b", "c"], ("a", "b", "c")
    taken = [take(offered, group, group, 2, ord) for _ in range(3)]
    assert taken == [["a", "b"], ["c", "a"], ["b", "c"]]


@pytest.mark.parametrize("fabric", CLOS, ids=lambda fabric: fabric.name)
def test_what_is_pruned_still_reaches_the_server(fabric: Fabric) -> None:
    for seed in range(5):
        problem = first_is_server(with_ina(fabric, share=0.6, seed=seed))
        (graph,) = task_graphs(problem)
        everything = [switch.name for switch in fabric.switches]
        for pruned in (*pre_pruned([graph], 0.1), first_stage(graph), excluding(graph, everything)):
            assert set(pruned.workers) == set(graph.workers)
            assert set(pruned.links) <= set(graph.links)
            full = build(problem, [pruned], Form(), UNIT)
            solve_literal(full, SolverOptions())
            for path in generate_routes(pruned, full.counts(0)):
                assert set(pairwise(path)) <= set(pruned.links)


def test_sro_starts_without_common_spines() -> None:
    (graph,) = task_graphs(single(aro_figure1(), [f"w{i}" for i in range(5)], "ps"))
    assert "s0" in graph.into
    assert "s0" not in first_stage(graph).into


def test_every_row_of_table_ii_has_a_planner() -> None:
    assert set(VARIANTS) <= set(METHODS)
    rows = {(v.sro, v.app, v.qsr) for v in VARIANTS.values()}
    assert rows == {
        (True, True, True),
        (True, False, True),
        (False, True, True),
        (False, False, False),
        (False, False, True),
    }


@pytest.mark.parametrize("options", [{"levels": 0}, {"alpha": 0.0}, {"alpha": 1.5}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        LiteralOptions(**options)  # type: ignore[arg-type]


def test_tasks_are_numbered_job_by_job() -> None:
    problem = Problem(leaf_spine(2, 1, 4), (job(["h3"], "h1", "h2"), job(["h4"], "h1", number=2)), FRAGMENT)
    assert [task.key for task in tasks_of(problem)] == [(1, "h1"), (1, "h2"), (2, "h1")]
