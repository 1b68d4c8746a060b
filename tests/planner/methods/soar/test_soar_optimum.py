"""SOAR's dynamic program: its example, against enumeration and a mixed-integer program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soar_cases import EXAMPLE, binary_tree, least_by_enumeration, least_by_program, trees
from tiers import long_unless

from inakit.planner.methods.soar import DESTINATION, ReductionTree, best_switches, gather, reduction_tree
from inakit.topo.errors import InputError


def test_the_papers_example() -> None:
    """17 messages over three links each are 51; the best sets of the paper's Figures 2 and 3 have 35, 20, 15, 11."""
    assert EXAMPLE.utilisation_s() == 51
    assert gather(EXAMPLE, 7).utilisations_s().tolist() == [51, 35, 20, 15, 11, 9, 8, 7]
    assert best_switches(EXAMPLE, 2) == (2, 4)


def test_the_three_rules_of_thumb_of_the_example_are_worse() -> None:
    """Two switches at the top, those with the most load, one level: 27, 24 and 21 against 20."""
    chosen = {"top": (0, 2), "max": (4, 5), "level": (1, 2)}
    assert {name: EXAMPLE.utilisation_s(switches) for name, switches in chosen.items()} == {
        "top": 27,
        "max": 24,
        "level": 21,
    }


@given(trees(), st.integers(0, 8))
@settings(max_examples=150, deadline=None)
def test_no_set_of_switches_is_better(tree: ReductionTree, k: int) -> None:
    chosen = best_switches(tree, k)
    assert len(chosen) <= k
    assert tree.utilisation_s(chosen) == pytest.approx(least_by_enumeration(tree, k))


@given(trees(most=40), st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_an_integer_program_finds_the_same_optimum(tree: ReductionTree, k: int) -> None:
    found = tree.utilisation_s(best_switches(tree, k))
    assert found == pytest.approx(least_by_program(tree, k), rel=1e-6)


def test_a_switch_that_saves_nothing_is_left_out() -> None:
    """A path of three switches with one message: no sum makes it fewer."""
    assert best_switches(reduction_tree([DESTINATION, 0, 1], [0, 0, 1]), 3) == ()


def test_more_pipelines_make_a_sum_worth_less() -> None:
    """Two messages into two pipelines leave as two."""
    tree = reduction_tree([DESTINATION, 0, 0], [0, 1, 1], sums=[2, 1, 1])
    assert best_switches(tree, 3) == ()
    assert best_switches(reduction_tree([DESTINATION, 0, 0], [0, 1, 1]), 3) == (0,)


@pytest.mark.parametrize("shape", [long_unless(shape == "random", shape) for shape in ("binary", "star", "random")])
def test_ten_thousand_switches(shape: str) -> None:
    rng = np.random.default_rng(1)
    n = 10_000
    v = np.arange(1, n)
    parents = {"binary": (v - 1) // 2, "star": 0 * v, "random": rng.integers(0, v)}
    tree = reduction_tree([DESTINATION, *parents[shape].tolist()], rng.integers(0, 7, n).tolist())
    chosen = best_switches(tree, 32)
    assert len(chosen) == 32
    assert tree.utilisation_s(chosen) < tree.utilisation_s()


def test_more_switches_never_hurt() -> None:
    found = gather(binary_tree(255), 64).utilisations_s()
    assert (np.diff(found) <= 0).all()


@pytest.mark.parametrize(
    ("parent", "load", "message"),
    [
        ([0, 0], [1, 1], "0 switches have the parent -1"),
        ([-1, -1], [1, 1], "2 switches have the parent -1"),
        ([-1, 2, 1], [1, 1, 1], "cycle"),
        ([-1, 0], [1], "load has shape"),
    ],
)
def test_what_is_no_tree_is_refused(parent: list[int], load: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reduction_tree(parent, load, cost=[1.0] * len(parent), sums=[1] * len(parent))


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(InputError, match="-1 switches that aggregate"):
        best_switches(EXAMPLE, -1)
