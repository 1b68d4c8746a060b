"""GOAT's example, the schedules of KRGS under a memory limit, and readings of the text."""

from __future__ import annotations

from io import StringIO
from math import inf
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import FIGURES, Request
from inakit.experiments.papers.goat.algorithm import by_atp, by_goat, measure
from inakit.experiments.papers.goat.simulation import READINGS, Drawn, Reading, draw, of_schedule
from inakit.planner.methods.goat.krgs import Gina, GradientSchedule


def test_the_example_is_the_papers(tmp_path: Path) -> None:
    """To the PS and sent by switches; workers' own links are not counted in the paper's figure."""
    assert (by_atp(), by_goat()) == ((7, 17), (3, 13))
    verdict = FIGURES["goat"]["fig2"].run(Console(file=StringIO(), width=160), Request(tmp_path))
    assert verdict == "VALID"


def drawn() -> tuple[Drawn, Gina, Reading]:
    """35 workers on the leaf-spine, and a model of two sub-models, each as large as a switch's memory."""
    found = draw("leaf-spine", 35, 0, 0.2)
    reading = Reading(model_bytes=2e9, memory_bytes=1e9)
    return found, found.gina(np.array([1e9, 1e9]), 1e9), reading


def test_gradients_that_no_switch_sums_travel_on_to_the_ps() -> None:
    """Both sub-models are sent to one switch, which has memory for the first alone."""
    found, gina, reading = drawn()
    x = np.zeros((2, len(gina.memory)), bool)
    x[0, 0] = True
    schedule = GradientSchedule(x, np.zeros((35, 2), np.int64))
    result = of_schedule(found, gina, schedule, reading)
    to_switch, onward = gina.workers @ gina.distance[:, 0], gina.onward[0]
    assert result["overhead"] == pytest.approx(2 * to_switch + onward + 35 * onward)
    assert result["ingress"] == 36
    assert result["aggregated"] == pytest.approx(35 * 2 - 36)
    assert gina.memory[gina.server] == inf


def test_rounding_stays_within_the_theorems() -> None:
    """Fourteen sub-models make nu 8.1, which is more than 3 log 4: the bound is 4."""
    found = measure({"sub_models": 14, "seed": 0})
    assert found["nu"] == pytest.approx(2 * 64 / (221 / 14))
    assert found["Theorem 6"] == 4
    assert 1 <= float(found["fullest switch's memory"]) <= 4
    assert float(found["sack"]) >= 0.5


def test_each_reading_changes_one_thing() -> None:
    default = vars(Reading())
    for name, reading in list(READINGS.items())[1:]:
        changed = {key for key, value in vars(reading).items() if value != default[key]}
        assert len(changed) == (2 if name in ("240 MB a worker", "memory for a model, every switch") else 1), name
