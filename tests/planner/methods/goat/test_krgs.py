"""KRGS against the exact model, and the paper's theorems as properties of every rounding."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp, inf, log, sqrt
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import long_unless

from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.goat.krgs import (
    OBJECTIVES,
    Costs,
    FloatArray,
    Fractions,
    Gina,
    GradientSchedule,
    KrgsOptions,
    admitted,
    fits,
    knapsacks,
    krgs,
    optimum,
    overloads,
    relax,
    repair,
    round_off,
    schedule,
    solved,
    theorem_6,
    traffic,
    value,
)
from inakit.planner.solvers import PROVEN_GAP
from inakit.topo.errors import InputError, SolverError

SOLVER = SolverOptions()


def drawn(seed: int) -> Gina:
    """Four switches with room for one and a half gradients, up to eight groups of workers, and up to six sub-models."""
    draw = np.random.default_rng(seed)
    groups, models = draw.integers(4, 9), draw.integers(3, 7)
    distance = draw.integers(1, 5, (groups, 5)).astype(float)
    distance[:, -1] += 2
    sizes = draw.integers(1, 9, models).astype(float)
    memory = np.append(draw.uniform(0.25, 0.6, 4) * sizes.sum(), inf)
    return Gina(sizes, memory, draw.integers(1, 4, groups), distance, np.append(draw.integers(1, 4, 4), 0.0))


def figure2() -> Gina:
    """Section II-B: three fragments, and a slot in each of three switches, of which S3 is the PS's."""
    distance = np.array([[1, 2, 2, 3], [1, 2, 2, 3], [2, 1, 2, 3], [2, 1, 2, 3]], float)
    return Gina(np.ones(3), np.array([1, 1, 1, inf]), np.ones(4, int), distance, np.array([2.0, 2, 1, 0]))


def test_figure_2_takes_each_fragment_to_a_switch_of_its_own() -> None:
    """Fig. 2(c) counts 13 transfers by switches, and the workers' own twelve."""
    found, outcome = schedule(figure2(), KrgsOptions())
    assert value(figure2(), found) == 13 + 12
    assert found.x[:, :3].sum(axis=0).tolist() == [1, 1, 1]
    assert value(figure2(), optimum(figure2(), traffic(figure2()), SOLVER)[0]) == 13 + 12
    assert outcome.gap is not None


@pytest.mark.parametrize(("objective", "cases"), [("traffic", 12), ("saved", 10), long_unless(False, "traffic", 30)])
def test_krgs_is_within_5_percent_of_the_optimum_and_never_infeasible(objective: str, cases: int) -> None:
    gaps = []
    for seed in range(cases):
        gina = drawn(seed)
        costs = OBJECTIVES[objective](gina)
        exact, proof = optimum(gina, costs, SOLVER)
        found, outcome = schedule(gina, KrgsOptions(seed, objective=objective))
        best = value(gina, exact, costs)
        assert proof.status == "optimal"
        assert fits(gina, exact.x)
        assert fits(gina, found.x)
        gaps.append((value(gina, found, costs) - best) / abs(best))
        assert gaps[-1] >= -PROVEN_GAP
        assert outcome.gap is not None
    assert fmean(gaps) < 0.05


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_theorems_2_and_3_of_every_rounding(seed: int) -> None:
    """Each gradient has k(g) switches and a node; each worker has one node, at which its sub-model is summed."""
    gina = drawn(seed)
    fractions, _ = relax(gina, traffic(gina), SOLVER)
    rounded = round_off(gina, fractions, np.random.default_rng(seed))
    chosen = rounded.x[:, : gina.server].sum(axis=1)
    assert chosen.tolist() == np.floor(fractions.x[:, : gina.server].sum(axis=1) + 1e-9).tolist()
    for found in (rounded, repair(gina, rounded, traffic(gina))):
        assert found.x.any(axis=1).all()
        assert found.y.shape == (gina.workers.sum(), len(gina.sizes))
        assert np.take_along_axis(found.x, found.y.T, axis=1).all()


def chances(gina: Gina, fractions: Fractions) -> FloatArray:
    """`[g, s]`: the probability x~ / S_a with which Algorithm 1 sums a sub-model at a switch."""
    found = np.zeros((len(gina.sizes), gina.server))
    for g, row in enumerate(fractions.x[:, : gina.server]):
        for sack in knapsacks(row):
            found[g, sack] = row[sack] / row[sack].sum()
    return found


def chance_of_more(sizes: FloatArray, chance: FloatArray, limit: float) -> float:
    """The probability that the sub-models which a switch gets independently of one another exceed a limit."""
    cases = np.array(list(product((False, True), repeat=len(sizes))))
    likely = np.where(cases, chance, 1 - chance).prod(axis=1)
    return float(likely[cases @ sizes > limit].sum())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_theorem_6_against_the_relaxation(seed: int) -> None:
    """Without a draw: at most twice the memory that x~ takes (13), and how unlikely more is (15), (16), (17)."""
    gina = drawn(seed)
    fractions, _ = relax(gina, traffic(gina), SOLVER)
    chance, memory, count = chances(gina, fractions), gina.memory[: gina.server], gina.server
    assert (chance <= 2 * fractions.x[:, :count] + 1e-6).all()
    assert (gina.sizes @ chance <= 2 * (gina.sizes @ fractions.x)[:count] + 1e-6).all()
    assert ((gina.sizes @ fractions.x)[:count] <= memory + 1e-6).all()
    nu = 2 * memory.min() / gina.sizes.max()
    least = (log(count) + sqrt(log(count) ** 2 + 8 * nu * log(count))) / (2 * nu)
    for rho in (0.1, 0.5, 1, least, log(count) / nu + 2):
        bound = exp(-(rho**2) * nu / (2 + rho))
        assert rho < least - 1e-9 or bound <= 1 / count + 1e-9
        for s in range(count):
            more = chance_of_more(gina.sizes, chance[:, s], 2 * (1 + rho) * float(memory[s]))
            assert more <= bound


def test_roundings_are_as_frequent_as_theorem_6_counts_with() -> None:
    gina, roundings = drawn(3), 2000
    fractions, _ = relax(gina, traffic(gina), SOLVER)
    chance, draw = chances(gina, fractions), np.random.default_rng(3)
    assert ((chance > 0.1) & (chance < 0.9)).any()
    found = np.mean([round_off(gina, fractions, draw).x[:, : gina.server] for _ in range(roundings)], axis=0)
    assert (abs(found - chance) <= 5 * np.sqrt(chance * (1 - chance) / roundings) + 1e-9).all()


def fractional_rank(gina: Gina, fractions: Fractions) -> tuple[int, int]:
    """The number of variables between their bounds, and the rank of the rows of Eq. (4) that hold with equality."""
    (groups, models, nodes), tight = fractions.y.shape, 1e-7
    x = {place: column for column, place in enumerate(product(range(models), range(nodes)))}
    y = {place: len(x) + column for column, place in enumerate(product(range(groups), range(models), range(nodes)))}
    values = np.concatenate([fractions.x.ravel(), fractions.y.ravel()])
    rows = []
    for w, g in product(range(groups), range(models)):
        rows.append({y[w, g, s]: 1.0 for s in range(nodes)})
        rows += [{y[w, g, s]: 1.0, x[g, s]: -1.0} for s in range(nodes)
                 if abs(fractions.y[w, g, s] - fractions.x[g, s]) < tight]  # fmt: skip
    rows += [{x[g, s]: 1.0 for s in range(nodes)} for g in range(models) if abs(fractions.x[g].sum() - 1) < tight]
    rows += [{x[g, s]: gina.sizes[g] for g in range(models)} for s in range(nodes - 1)
             if abs(gina.sizes @ fractions.x[:, s] - gina.memory[s]) < tight * gina.memory[s]]  # fmt: skip
    matrix = np.zeros((len(rows), len(values)))
    for number, row in enumerate(rows):
        matrix[number, list(row)] = list(row.values())
    between = (values > tight) & (values < 1 - tight)
    return int(between.sum()), int(np.linalg.matrix_rank(matrix[:, between])) if between.any() else 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_krgs_as_printed_rounds_a_vertex(objective: str) -> None:
    """At a vertex the rows that hold with equality determine all variables that are not at a bound of their own."""
    fractional = 0
    for seed in range(12):
        gina = replace(drawn(seed), sizes=np.full(5, 4.0))
        rounded, fractions = krgs(gina, KrgsOptions(seed, objective=objective))
        between, rank = fractional_rank(gina, fractions)
        assert between == rank, seed
        fractional += between
        again, _ = krgs(gina, KrgsOptions(seed, objective=objective))
        assert (again.x == rounded.x).all() and (again.y == rounded.y).all()
    assert fractional
    joined, _ = relax(gina, traffic(gina), SOLVER)
    assert np.subtract(*fractional_rank(gina, joined)) > 0


def test_overloads_of_one_rounding() -> None:
    """Each is a ratio to the memory, or to the relaxation; means over roundings keep to what the theorems' proofs use.

    They use E[x^] <= 2 x~ and E[y^] <= 2 y~, so on average a switch has at most twice its memory and its traffic.
    """
    gina = drawn(3)
    found = [overloads(gina, KrgsOptions(seed)) for seed in range(120)]
    assert max(each.memory.max() for each in found) > 1
    assert np.mean([each.memory for each in found], axis=0).max() <= 2
    assert np.mean([each.switches for each in found], axis=0).max() <= 2.2
    assert fmean(each.traffic for each in found) >= 1
    assert fmean(each.server for each in found) >= 1
    rounded, fractions = krgs(gina, KrgsOptions(7))
    least = relax(gina, traffic(gina), SOLVER)[1]
    one = overloads(gina, KrgsOptions(7))
    assert one.traffic == pytest.approx(value(gina, rounded) / least)
    assert one.memory == pytest.approx((gina.sizes @ rounded.x / gina.memory)[:-1])
    s = int(fractions.y.sum(axis=(0, 1))[:-1].argmax())
    sent = (gina.workers[:, None] * fractions.y[:, :, s]).sum(axis=0) @ gina.sizes
    assert one.switches[s] == pytest.approx((rounded.y == s).sum(axis=0) @ gina.sizes / sent)


def test_theorem_6_factor() -> None:
    """The paper's own numbers (64 MB, sub-models of 2 MB, 20 switches) give 4; larger sub-models give more."""
    twenty = Gina(
        np.full(3, 2.0), np.append(np.full(20, 64.0), inf), np.ones(1, int), np.ones((1, 21)), np.eye(1, 21)[0]
    )
    assert theorem_6(twenty) == 4
    assert theorem_6(replace(twenty, sizes=np.full(3, 64.0))) == pytest.approx(2 * log(20) / 2 + 6)


def test_only_sums_that_fit_are_admitted() -> None:
    gina = figure2()
    crowded = GradientSchedule(np.array([[True, False, False, False]] * 3), np.zeros((4, 3), int))
    kept = admitted(gina, crowded)
    assert kept.x[:, 0].tolist() == [True, False, False]
    assert (kept.y == crowded.y).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_repaired_is_within_memory_and_no_dearer_than_no_aggregation(seed: int) -> None:
    gina = drawn(seed)
    fractions, _ = relax(gina, traffic(gina), SOLVER)
    found = repair(gina, round_off(gina, fractions, np.random.default_rng(seed)), traffic(gina))
    assert fits(gina, found.x)
    assert value(gina, found) <= gina.sizes.sum() * (gina.workers @ gina.distance[:, -1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_every_knapsack_has_half_of_what_it_stands_for(fractions: list[float]) -> None:
    """Lemma 4 holds for the packings that `knapsacks` finds."""
    sacks = knapsacks(np.array(fractions))
    assert len(sacks) == int(sum(fractions) + 1e-9)
    assert all(np.array(fractions)[sack].sum() >= 0.5 - 1e-6 for sack in sacks)
    packed = [index for sack in sacks for index in sack]
    assert len(set(packed)) == len(packed)


def enumerated(gina: Gina, costs: Costs) -> float:
    """The least value over every set of nodes that sum each sub-model, within memory."""
    models, nodes = len(gina.sizes), gina.server
    rows = np.array([(*row, True) for row in product((False, True), repeat=nodes)])
    least = np.array([gina.workers @ costs.send[:, row].min(axis=1) + costs.forward[row].sum() for row in rows])
    choices = (np.array(choice) for choice in product(range(len(rows)), repeat=models))
    return min(float(gina.sizes @ least[choice]) for choice in choices if fits(gina, rows[choice]))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_optima_gaps_and_bounds_are_true(objective: str) -> None:
    """Enumeration is the second way: memory is unequal, and sub-models are of few or many sizes."""
    optimal = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        distance = draw.integers(1, 5, (5, 4)).astype(float)
        distance[:, -1] += 2
        distance[:, :3][draw.random((5, 3)) < 0.2] = inf
        sizes = draw.choice([2.0, 3, 5], 3)
        memory, onward = np.append(draw.integers(0, 9, 3), inf), np.append(draw.integers(1, 4, 3), 0.0)
        gina = Gina(sizes, memory, draw.integers(1, 4, 5), distance, onward)
        costs = OBJECTIVES[objective](gina)
        best = enumerated(gina, costs)
        found, outcome = schedule(gina, KrgsOptions(seed, objective=objective))
        reached, (_, bound) = value(gina, found, costs), relax(gina, costs, SOLVER)
        assert value(gina, optimum(gina, costs, SOLVER)[0], costs) == pytest.approx(best)
        assert bound <= best + 1e-6 and best <= reached + 1e-6
        assert outcome.gap == pytest.approx((reached - bound) / max(abs(bound), 1e-9), abs=PROVEN_GAP)
        assert outcome.status != "optimal" or reached == pytest.approx(best)
        optimal += outcome.status == "optimal"
    assert optimal > 5


def test_a_relaxation_without_time_is_no_bound() -> None:
    distance = np.random.default_rng(1).integers(1, 5, (30, 20)).astype(float) + 2 * np.eye(1, 20, 19)[0]
    memory = np.append(np.full(19, 8.0), inf)
    gina = Gina(np.linspace(1, 2, 30), memory, np.ones(30, int), distance, np.append(np.full(19, 2.0), 0))
    with pytest.raises(SolverError, match="raise the time limit"):
        relax(gina, traffic(gina), SolverOptions(time_limit_s=0.01))


def test_eq_4_is_not_eq_1() -> None:
    """Eq. (4) sends a gradient past a sum next door to one further from the PS, which saves more of a longer way."""
    gina = Gina(np.ones(1), np.array([1, 1, inf]), np.full(1, 8), np.array([[1.0, 4, 2]]), np.array([1.0, 3, 0]))
    taken = {name: optimum(gina, of(gina), SOLVER)[0].y[0, 0] for name, of in OBJECTIVES.items()}
    assert taken == {"traffic": 0, "saved": 1}


def test_without_reach_or_memory_all_go_to_the_ps() -> None:
    for memory, distance in ((0.5, 1.0), (8, inf)):
        gina = Gina(np.ones(2), np.array([memory, inf]), np.full(1, 3), np.array([[distance, 4]]), np.array([1.0, 0]))
        found, _ = schedule(gina, KrgsOptions())
        assert (found.y == gina.server).all()


def test_problems_that_make_no_sense() -> None:
    good = figure2()
    with pytest.raises(InputError, match="distances"):
        Gina(good.sizes, good.memory, good.workers, good.distance[:, 1:], good.onward)
    with pytest.raises(InputError, match="the last node must be the PS"):
        Gina(good.sizes, np.ones(4), good.workers, good.distance, good.onward)
    with pytest.raises(InputError, match="no size"):
        Gina(np.zeros(3), good.memory, good.workers, good.distance, good.onward)
    with pytest.raises(InputError, match="unknown objective 'trafic'"):
        KrgsOptions(objective="trafic")
    with pytest.raises(InputError, match="0 roundings"):
        KrgsOptions(roundings=0)


def test_the_relaxation_is_a_bound() -> None:
    gina = drawn(1)
    costs: Costs = traffic(gina)
    _, bound = relax(gina, costs, SOLVER)
    assert bound <= value(gina, optimum(gina, costs, SOLVER)[0], costs) * (1 + PROVEN_GAP)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_equal_sub_models_are_one_in_the_relaxation(objective: str) -> None:
    """It has the value of the relaxation that tells them apart, and is a solution of that."""
    gina = replace(drawn(5), sizes=np.array([4.0, 4, 4, 2, 2]))
    costs = OBJECTIVES[objective](gina)
    _, apart, _ = solved(gina, costs, SOLVER, relaxed=True)
    fractions, bound = relax(gina, costs, SOLVER)
    assert bound == pytest.approx(apart, rel=1e-6)
    assert fits(gina, fractions.x - 1e-6)
    assert fractions.y.sum(axis=2) == pytest.approx(1)
    assert (fractions.y <= fractions.x[None] + 1e-6).all()
