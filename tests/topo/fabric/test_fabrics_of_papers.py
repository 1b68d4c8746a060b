"""The papers' fabrics give the papers' numbers, counted from first principles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import pytest

from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.generators import aro_figure1, aro_figure3a, pipelines_trap
from inakit.topo.fabric.up_down import up_down_paths
from inakit.topo.fabric.variations import with_ina, with_pipelines


def bottleneck(fabric: Fabric, paths: tuple[Path, ...]) -> Fraction:
    """The rate that every worker reaches, when all send to one PS along `paths` at the same rate.

    An INA switch makes one flow of all that arrives in one pipeline and leaves by one link.
    """
    hops = {hop for path in paths for hop in pairwise(path)}
    turns = {turn for path in paths for turn in zip(path, path[1:], path[2:], strict=False)}

    @cache
    def flows(node: str, peer: str) -> int:
        arrivals: Counter[int] = Counter()
        for before, via, after in turns:
            if (via, after) == (node, peer):
                arrivals[fabric.ingress_pipeline(node, before)] += flows(before, node)
        if not arrivals:
            return 1
        return len(arrivals) if fabric.switch_by_name[node].ina else arrivals.total()

    return min(Fraction(fabric.capacities_bps[hop]) / flows(*hop) for hop in hops)


def routings(fabric: Fabric) -> Iterator[tuple[Path, ...]]:
    """Every choice of shortest up-down paths from the workers to the PS."""
    workers = [host.name for host in fabric.hosts if host.name != "ps"]
    return product(*(up_down_paths(fabric, worker, "ps") for worker in workers))


def best(fabric: Fabric) -> Fraction:
    return max(bottleneck(fabric, paths) for paths in routings(fabric))


def via(fabric: Fabric, spines: dict[str, str]) -> tuple[Path, ...]:
    """The routing that leaves each leaf by the given spine."""
    return next(paths for paths in routings(fabric) if all(spines[path[1]] in path for path in paths))


def test_aro_figure1_without_ina_gives_a_fifth() -> None:
    assert best(with_ina(aro_figure1(1.0), ())) == Fraction(1, 5)


def test_aro_figure1_gives_all() -> None:
    fabric = aro_figure1(1.0)
    assert bottleneck(fabric, via(fabric, {"l1": "s1", "l2": "s1", "l3": "s1"})) == best(fabric) == 1


def test_aro_figure3a_gives_a_half_and_nothing_is_better() -> None:
    fabric = aro_figure3a(1.0)
    assert bottleneck(fabric, via(fabric, {"l1": "s0", "l2": "s1", "l3": "s1"})) == best(fabric) == Fraction(1, 2)


def test_aro_figure3c_gives_a_third() -> None:
    fabric = aro_figure1(1.0)
    assert bottleneck(fabric, via(fabric, {"l1": "s0", "l2": "s1", "l3": "s0"})) == Fraction(1, 3)


def test_pipelines_deceive_who_ignores_them() -> None:
    fabric = pipelines_trap(1.0)
    naive = with_pipelines(fabric, 1)
    tempting = via(naive, dict.fromkeys(("leaf2", "leaf3", "leaf4"), "spine1"))
    assert bottleneck(naive, tempting) == best(naive) == 1
    assert bottleneck(fabric, tempting) == Fraction(1, 3)
    assert best(fabric) == pytest.approx(0.8)
    assert [paths for paths in routings(naive) if bottleneck(naive, paths) == 1] == [tempting]
