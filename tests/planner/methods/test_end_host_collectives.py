"""The schemes of collectives: what every one costs in steps and bytes, and that planners keep their promises."""

from __future__ import annotations

from math import ceil, log2
from pathlib import Path

import pytest
from planner_cases import COLLECTIVES, first_is_server, single
from tolerance import assert_within

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.files import load_plan, save_plan
from inakit.planner.methods.collectives import (
    Make,
    RankGroup,
    Scheme,
    binary_tree,
    both_trees,
    halving_doubling,
    hierarchical,
    hierarchical_across,
    parts_of,
    ps_sharded,
    recursive_doubling,
    ring,
    skips_of,
)
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import fat_tree, leaf_spine

WITHOUT_SEARCH = [name for name in COLLECTIVES if not name.endswith("-best")]


def group(ranks: int) -> RankGroup:
    """One rack, and a gradient of 1,000 fragments."""
    return RankGroup(ranks, (tuple(range(ranks)),), 1000)


def sent_by_rank(scheme: Scheme, rank: int) -> float:
    """How many gradients a rank sends."""
    own = (t for (source, _), transfers in scheme.transfers.items() for t in transfers if source == rank)
    return sum(transfer.count for transfer in own) / scheme.chunks


def steps(scheme: Scheme) -> int:
    return len({transfer.step for transfers in scheme.transfers.values() for transfer in transfers})


@pytest.mark.parametrize("ranks", [2, 8, 64])
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (ring, lambda n: 2 * (n - 1)),
        (ps_sharded, lambda _: 2),
        (halving_doubling, lambda n: 2 * log2(n)),
    ],
)
def test_optimal_schemes_send_two_gradients_less_their_own_part(make: Make, expected: object, ranks: int) -> None:
    scheme = make(group(ranks))
    assert {sent_by_rank(scheme, rank) for rank in range(ranks)} == {2 * (ranks - 1) / ranks}
    assert steps(scheme) == expected(ranks)  # type: ignore[operator]


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 11, 12, 100])
def test_any_number_of_ranks_sums_by_halves(ranks: int) -> None:
    """No rank waits while others fold: all send 2 (n - 1) / n, in 2 log2 n steps, rounded up."""
    scheme = halving_doubling(group(ranks))
    assert {sent_by_rank(scheme, rank) for rank in range(ranks)} == {2 * (ranks - 1) / ranks}
    assert steps(scheme) == 2 * ceil(log2(ranks))


def test_skips_halve_and_distances_are_sums_of_them() -> None:
    assert skips_of(11) == [1, 2, 3, 6]
    assert [parts_of(distance, [1, 2, 3, 6]) for distance in (4, 5, 10)] == [[1, 3], [2, 3], [1, 3, 6]]


def test_racks_of_different_sizes_are_cut_into_equal_groups() -> None:
    """Racks of 4 and 6 ranks: groups of 2 in racks, or of 5 across them. Round a group, then among them, and back."""
    racks = RankGroup(10, (tuple(range(4)), tuple(range(4, 10))), 1000)
    assert [steps(make(racks)) for make in (hierarchical, hierarchical_across)] == [1 + 2 * 4 + 1, 4 + 2 * 1 + 4]


def test_a_short_gradient_has_no_more_servers_than_fragments() -> None:
    """64 ranks would have 4,032 connections; 4 fragments are at 4 servers, which are in different quarters."""
    scheme = ps_sharded(RankGroup(64, (tuple(range(64)),), fragments=4))
    assert {source for (source, _), sent in scheme.transfers.items() if not sent[-1].adds} == {0, 16, 32, 48}
    assert (scheme.chunks, len(scheme.transfers)) == (4, 2 * 4 * 63 - 4 * 3)


def test_recursive_doubling_sends_everything_in_few_steps() -> None:
    scheme = recursive_doubling(group(16))
    assert (steps(scheme), sent_by_rank(scheme, 3)) == (4, 4)


@pytest.mark.parametrize("ranks", range(2, 40))
def test_a_rank_has_children_in_one_of_the_two_trees_at_most(ranks: int) -> None:
    """In NCCL's words: the first tree's leaves are the second one's nodes. All ranks but one hang below a root."""
    trees = both_trees(ranks)
    inner = [set(tree.values()) - set(range(ranks)).difference(tree) for tree in trees]
    assert all(len(tree) == ranks - 1 for tree in trees)
    assert not inner[0] & inner[1] or ranks % 2
    assert all(list(tree.values()).count(rank) <= 2 for tree in trees for rank in range(ranks))


def test_the_binary_tree_is_that_of_nccl() -> None:
    assert binary_tree(8) == {1: 2, 2: 4, 3: 2, 4: 0, 5: 6, 6: 4, 7: 6}
    assert binary_tree(6)[5] == 4


@pytest.mark.parametrize("workers", [2, 3, 5, 7, 12])
@pytest.mark.parametrize("name", WITHOUT_SEARCH)
def test_every_number_of_ranks_is_summed(name: str, workers: int) -> None:
    """`plan` checks, symbolically, that every rank ends with every sum."""
    problem = first_is_server(leaf_spine(4, 2, 4), workers)
    prediction = evaluate(problem, METHODS[name].plan(problem))
    assert prediction.communication_time_s > 0
    assert prediction.ps_ingress_bytes == 0


def test_no_link_is_shared_by_a_ring_through_racks() -> None:
    """15 workers of a fat-tree send at what acknowledgements leave them of a link."""
    problem = first_is_server(fat_tree(4))
    collective = METHODS["ring"].plan(problem).collectives[0]
    rates = {connection.rate_bps for connection in collective.connections}
    assert_within(min(rates), 20e6 / (1 + 70 / 326 / 32), 1e-9, "rate", "bit/s")


def test_a_random_order_is_slower() -> None:
    problem = first_is_server(fat_tree(4))
    times = {name: evaluate(problem, METHODS[name].plan(problem)).communication_time_s for name in WITHOUT_SEARCH}
    assert times["ring-random"] > 1.5 * times["ring"]


def test_a_search_finds_an_order_for_oversubscribed_uplinks() -> None:
    """By racks, both trees of six ranks in three racks use the same uplinks."""
    fabric = fat_tree(4, oversubscription=2)
    problem = first_is_server(fabric, 6)
    names = "double-tree", "double-tree-best"
    times = [evaluate(problem, METHODS[name].plan(problem)).communication_time_s for name in names]
    assert times[1] < 0.7 * times[0]


def test_rings_in_racks_need_fewer_steps() -> None:
    """4 racks of 4 ranks: 2 * 15 steps round the ring, 3 in racks, 6 among them, and 3 in racks."""
    hosts = tuple(f"h{rack * 5 + place}" for rack in range(4) for place in range(2, 6))
    problem = single(leaf_spine(4, 2, 5), hosts, "h1")
    plans = {name: METHODS[name].plan(problem).collectives[0] for name in ("ring", "hierarchical")}
    assert (len(plans["ring"].steps), len(plans["hierarchical"].steps)) == (30, 12)


def test_plans_are_read_back_equal(tmp_path: Path) -> None:
    plan = METHODS["double-tree"].plan(first_is_server(leaf_spine(2, 2, 3)))
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan


def test_files_of_version_1_are_still_read(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    plan = METHODS["lbmm"].plan(first_is_server(leaf_spine(2, 2, 3)))
    save_plan(plan, file)
    text = file.read_text().replace('"version": 2', '"version": 1').replace(',\n  "collectives": []', "")
    file.write_text(text)
    assert "collectives" not in text
    assert load_plan(file) == plan


def test_one_worker_has_nobody_to_send_to() -> None:
    with pytest.raises(InputError, match="job 1 has one worker: a collective needs at least two"):
        METHODS["ring"].plan(first_is_server(leaf_spine(2, 2, 3), 1))
