"""SOAR's setting: loads, rates and rules of thumb; and its figure in the cheaper variant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from inakit.experiments.papers import soar as utilisation
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.soar import (
    LOADS,
    MEAN_LOAD,
    MOST_LOAD,
    STRATEGIES,
    binary_tree,
    level,
    most_loaded,
    normalised,
    top,
)


@pytest.mark.parametrize("name", LOADS)
def test_loads_have_the_mean_that_the_setting_states(name: str) -> None:
    drawn = LOADS[name](20_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(MEAN_LOAD, rel=0.05)
    assert 1 <= drawn.min() <= drawn.max() <= MOST_LOAD


def test_links_are_faster_towards_the_root() -> None:
    tree = binary_tree("uniform", "exponential", seed=0, switches=7)
    assert (1 / tree.cost).tolist() == [4, 2, 2, 1, 1, 1, 1]
    assert (1 / binary_tree("uniform", "linear", seed=0, switches=7).cost).tolist() == [3, 2, 2, 1, 1, 1, 1]


def test_rules_of_thumb_take_what_their_names_say() -> None:
    tree = binary_tree("uniform", "constant", seed=0, switches=15)
    assert top(tree, 3) == (0, 1, 2)
    assert level(tree, 5) == (3, 4, 5, 6)
    assert sorted(tree.load[list(most_loaded(tree, 2))].tolist()) == sorted(tree.load.tolist())[-2:]


def test_nothing_is_below_soar_in_the_figure(tmp_path: Path) -> None:
    tree = binary_tree("power law", "linear", seed=3)
    assert min(STRATEGIES, key=lambda name: normalised(tree, name, 8)) == "SOAR"
    assert utilisation.EXAMPLE.utilisation_s(STRATEGIES["SOAR"](utilisation.EXAMPLE, 2)) == 20
    assert utilisation.run(Console(quiet=True), Request(tmp_path, quick=True)) == "VALID"
    assert len((tmp_path / "soar-utilisation.csv").read_text().splitlines()) == 1 + 6 * 5 * 6
