"""Sweeps over seeds go on where they were interrupted; and figures of ATRO, which are sweeps."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers import atro
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.sweep import Trial, name_of, sweep
from inakit.topo.errors import RunError

TRIALS: list[Trial] = [{"seed": seed, "scheme": "double"} for seed in range(4)]


def silent() -> Console:
    return Console(file=StringIO(), width=120)


class Doubling:
    """A measurement whose result is twice the seed. It records its seeds, and is interrupted at seed `breaks_at`."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.measured: list[int] = []
        self.breaks_at = breaks_at

    def __call__(self, trial: Trial) -> dict[str, float]:
        if trial["seed"] == self.breaks_at:
            raise KeyboardInterrupt
        self.measured.append(int(trial["seed"]))
        return {"value": 2.0 * int(trial["seed"])}


def test_what_was_measured_before_an_interruption_is_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "trials"
    with pytest.raises(KeyboardInterrupt):
        sweep(TRIALS, Doubling(breaks_at=2), file, silent())
    again = Doubling()
    found = sweep(TRIALS, again, file, silent())
    assert again.measured == [2, 3]
    assert [found[name_of(trial)]["value"] for trial in TRIALS] == [0, 2, 4, 6]


def test_a_result_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    sweep(TRIALS, Doubling(), tmp_path, silent())
    cut_off = sorted(tmp_path.rglob("*.json"))[0]
    cut_off.write_text(cut_off.read_text()[:-10])
    for expected in (1, 0):
        again = Doubling()
        found = sweep(TRIALS, again, tmp_path, silent())
        assert [found[name_of(trial)]["value"] for trial in TRIALS] == [0, 2, 4, 6]
        assert len(again.measured) == expected


def test_a_result_that_is_not_valid_is_measured_again(tmp_path: Path) -> None:
    measured = []

    def overloaded(trial: Trial) -> dict[str, str]:
        measured.append(trial["seed"])
        return {"verdict": "OVERLOADED" if trial["seed"] == 1 else "VALID"}

    for _ in range(2):
        sweep(TRIALS, overloaded, tmp_path, silent())
    assert measured == [0, 1, 2, 3, 1]


def test_a_trial_that_fails_ends_the_sweep_after_the_others_and_is_tried_again(tmp_path: Path) -> None:
    measured = []

    def failing(trial: Trial) -> dict[str, float]:
        measured.append(trial["seed"])
        return {"value": 1 / (int(trial["seed"]) - 1)}

    for _ in range(2):
        with pytest.raises(RunError, match=r'"seed": 1.: ZeroDivisionError'):
            sweep(TRIALS, failing, tmp_path, silent())
    assert measured == [0, 1, 2, 3, 1]


def test_figure_3_is_drawn_and_compared_with_the_paper(tmp_path: Path) -> None:
    console, figure = (
        Console(file=StringIO(), width=120),
        replace(atro.swept("fig3", [atro.DEFAULT], atro.fig3), seeds=(30, 2)),
    )
    request = Request(tmp_path, quick=True, paper="atro", figure="fig3")
    assert figure(console, request) in ("VALID", "CHANGED")  # two draws may find claims in other states than five
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "ATRO" in printed and "13.26" in printed
    assert {path.name for path in tmp_path.iterdir()} == {
        "atro-fig3.csv",
        "atro-fig3.png",
        "atro-fig3.svg",
        "atro-fig3-quick-claims.csv",
        "atro-trials",
    }


def test_atro_beats_all_schemes_at_the_default_setting() -> None:
    point: Trial = {"workers": 90, "aggregators": 4}
    rates = {name: atro.measure({**point, **line, "seed": 0})["rate_bps"] for name, line in atro.all_lines().items()}
    assert rates.pop(atro.ATRO) == 50e9
    assert all(float(rate) < 50e9 for rate in rates.values())
