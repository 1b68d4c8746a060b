"""`inakit bench --sweeps`: what the engine adds is the time beyond that of the trials themselves."""

from __future__ import annotations

import pytest

from inakit.experiments.bench.sweep_engine import Added, bench_sweep, sweep_table


def test_what_is_added_is_a_share_of_the_trials_own_time() -> None:
    assert Added(trials=1000, trial_s=0.010, took_s=6.0, processors=2).share == pytest.approx(0.2)


def test_a_sweep_of_short_trials_takes_longer_than_they_do_and_fills_its_row() -> None:
    added = bench_sweep(trials=8, trial_s=0.002)
    assert added.share > 0
    cells = [cell for column in sweep_table(added).columns for cell in column.cells]
    assert cells[:3] == ["8", "2", str(added.processors)]
