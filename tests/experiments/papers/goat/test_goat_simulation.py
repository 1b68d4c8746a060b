"""GOAT's simulated figures: the fabrics, and what must hold whatever workers and rates are drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.goat import simulation as goat_simulation
from inakit.experiments.papers.goat.simulation import NETWORKS, ROUTINGS, Reading, draw, measure
from inakit.experiments.papers.goat.testbed import GOAT, OURS

MODEL_BYTES = Reading().model_bytes


def result(scheme: str, spread: float = 0.2, seed: int = 1) -> dict[str, float]:
    trial: dict[str, str | int | float] = {
        "scheme": scheme,
        "network": "leaf-spine",
        "workers": 35,
        "spread": spread,
        "seed": seed,
    }
    return {name: float(value) for name, value in measure(trial).items()}


def test_the_fabrics_are_the_papers() -> None:
    sizes = {name: (len(build().switches), len(build().hosts)) for name, build in NETWORKS.items()}
    assert sizes == {"leaf-spine": (20, 50), "fat-tree": (80, 192)}
    drawn = {name: len(draw(name, 40, 1, 0.2).switches) for name in NETWORKS}
    assert drawn == {"leaf-spine": 4, "fat-tree": 16}


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("network", NETWORKS)
def test_every_worker_comes_to_the_ps(network: str, routing: str) -> None:
    drawn = draw(network, 40, 2, 0.2)
    tree = drawn.slot_tree(routing)
    links = tree.entry_links.sum() + sum(tree.onward_links[switch] * count for switch, count in enumerate(tree.below))
    assert len(tree.entry) == 40
    assert links >= drawn.links
    assert links == drawn.links or routing == "nearest"


def test_equal_rates_are_better_summed_near_by_and_spread_ones_by_goat() -> None:
    """GOAT says so in Section IV-C, on Figure 13; here of the means over four draws."""

    def mean(scheme: str, spread: float) -> float:
        return fmean(result(scheme, spread, seed)["overhead"] for seed in range(4))

    goat = mean(GOAT, 0.0)
    for scheme in ("ESA, by the nearest", "ATP, by the nearest"):
        assert mean(scheme, 0.0) < goat < mean(scheme, 0.4)


def test_geryon_brings_every_gradient_to_the_ps() -> None:
    found = result("Geryon")
    assert found["ingress"] == pytest.approx(35 * MODEL_BYTES / 1e9)
    assert found["aggregated"] == pytest.approx(0)


@pytest.mark.parametrize("scheme", [GOAT, OURS, "ESA, on the path", "ATP, on the path"])
def test_what_is_summed_does_not_come_to_the_ps(scheme: str) -> None:
    found = result(scheme)
    assert found["ingress"] + found["aggregated"] == pytest.approx(35 * MODEL_BYTES / 1e9)
    assert MODEL_BYTES / 1e9 <= found["ingress"] < 35 * MODEL_BYTES / 1e9


def test_a_figure_is_printed_with_the_papers_values_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow: Callable[[], object] = NETWORKS["leaf-spine"]
    monkeypatch.setattr(goat_simulation, "NETWORKS", {"leaf-spine": slow, "fat-tree": slow})
    monkeypatch.setattr(goat_simulation, "WORKERS", (35,))
    console, fig12 = Console(record=True, width=160), goat_simulation.FIGURES["fig12"]
    made_up = replace(fig12, seeds=(1, 1), processes=1, measure=lambda _trial: {"overhead": 2 * 13.7})
    made_up(console, Request(tmp_path, quick=True))
    assert f"{GOAT}, leaf-spine, 35 workers" in (text := console.export_text())
    assert "2.00" in text
    assert {file.name for file in tmp_path.iterdir()} >= {"goat-fig12.png", "goat-fig12.svg", "goat-simulation-trials"}
