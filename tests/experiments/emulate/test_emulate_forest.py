"""A plan of two trees on the network: what a second tree gains is measured, not only planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from tolerance import assert_within
from valid_runs import valid_run


@pytest.mark.compiler
@pytest.mark.parametrize("switch", ["virtual", pytest.param("fast", marks=(pytest.mark.root, pytest.mark.long))])
def test_two_trees_reach_half_as_much_again_as_the_best_one(switch: str, tmp_path: Path) -> None:
    """One tree has 2/3 of a host's link on this leaf-spine. Two trees, for 1/3 and 2/3 of the gradient, have all."""
    run = valid_run(
        tmp_path, "--topo", "leafspine", "--leaves", "4", "--spines", "4", "--hosts-per-leaf", "4", "--ina", "0.6",
        "--pipelines", "4", "--workers", "12", "--seed", "3", "--switch", switch, "--planners", "aro,forest",
        "--capacity", "10M", "--scale", "1/5", "--gradient-bytes", "51200", "--iterations", "1",
    )  # fmt: skip
    rates = {name: entry["measured"]["sending_rate_bps"] for name, entry in run["planners"].items()}
    assert_within(rates["aro"], 2e6 / 3, 0.05, "one tree", "bit/s")
    assert_within(rates["forest"], 1e6, 0.05, "two trees", "bit/s")
    assert all(entry["measured"]["exact"] for entry in run["planners"].values())
