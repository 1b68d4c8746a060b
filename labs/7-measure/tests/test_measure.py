"""The visible tests: run them in this folder with `pytest tests`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import measure


def test_an_interval_is_around_the_mean():
    mean, low, high = measure.interval([4.0, 5.0, 6.0, 5.0, 4.5, 5.5, 5.0, 4.8, 5.2, 5.0])
    assert mean == pytest.approx(5.0)
    assert 4.5 < low < 4.75
    assert 5.25 < high < 5.5


def test_more_values_make_it_narrower():
    _, low, high = measure.interval([4.0, 6.0] * 5)
    _, nearer, lower = measure.interval([4.0, 6.0] * 50)
    assert lower - nearer < (high - low) / 2


def test_the_summary_has_a_line_for_each_size(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{planner},{size},{seed},{time + seed}" for planner, time in (("aro", 1), ("ring", 4))
            for size in (1024, 2048) for seed in range(10)]  # fmt: skip
    Path("results.csv").write_text("\n".join(["planner,gradient_bytes,seed,communication_time_s", *rows]))
    measure.write_summary(measure.read_table())
    heading, *lines = Path("summary.csv").read_text().split()
    assert heading.split(",")[0] == "gradient_bytes"
    assert [line.split(",")[0] for line in lines] == ["1024", "2048"]
    columns = dict(zip(heading.split(","), lines[0].split(","), strict=True))
    assert float(columns["aro_mean_s"]) == pytest.approx(5.5)
    assert [float(columns[f"difference_{end}_s"]) for end in ("mean", "low", "high")] == pytest.approx([3, 3, 3])
