"""Small inputs that failed once: files of fabrics, jobs, models and queues (`tests/experiments/cases`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Answer, inakit

CASES = Path(__file__).parents[1] / "cases"


def run(folder: str, *arguments: str, at: Path) -> Answer:
    """A command whose words with a point are files of a case's folder."""
    files = [str(CASES / folder / word) if "." in word else word for word in arguments]
    return inakit(*files, at=at)


def test_ids_that_differ_outside_ascii_are_two_switches(tmp_path: Path) -> None:
    answer = run("graphml-names-merge", "plan", "--topo", "map.graphml", "--planner", "aro", at=tmp_path)
    assert "sending rate 1.000 Mbit/s" in answer.output, answer
    assert "'北京' n1, '上海' n2" in answer.error


@pytest.mark.parametrize("name", ["jobs.json", "jobs.yml"])
def test_a_key_given_twice_is_refused(name: str, tmp_path: Path) -> None:
    answer = run("json-duplicate-keys", "plan", "--jobs", name, at=tmp_path)
    assert answer.code == 2, answer
    assert f"{name}: key 'gradient_bytes' is given twice" in answer.error.replace(" line 1", "")


@pytest.mark.parametrize(
    ("arguments", "all_done"),
    [
        (("--capacity", "400G", "--queue", "queue.yml", "--output", "a"), "100.100"),
        (("--capacity", "100G", "--queue", "epoch.yml"), "1506638472.380"),
    ],
)
def test_time_that_the_clock_does_not_resolve_passes(arguments: tuple[str, ...], all_done: str, tmp_path: Path) -> None:
    answer = run("place-hang", "place", *arguments, at=tmp_path)
    assert answer.code == 0, answer
    assert all_done in answer.output


@pytest.mark.parametrize("arguments", [("--model", "model.csv", "--planner", "goat"), ("--jobs", "jobs.json")])
def test_a_byte_order_mark_is_skipped(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer = run("bom", "plan", *arguments, at=tmp_path)
    assert answer.code == 0, answer
    assert "sending rate" in answer.output


def test_a_host_may_have_two_links(tmp_path: Path) -> None:
    """The PS has one in each rack, which are not joined otherwise: both carry their worker's whole rate."""
    answer = run("two-links-of-a-host", "plan", "--topo", "fabric.yml", at=tmp_path)
    assert "sending rate 10000.000 Mbit/s" in answer.output, answer
    assert "'h1' has several links: its network card is the switch 'h1-nic'" in answer.error


def test_a_host_with_two_links_takes_part_in_a_run(tmp_path: Path) -> None:
    small = ("--gradient-bytes", "8192", "--iterations", "1", "--planners", "atp", "--switch", "virtual")
    answer = run("two-links-of-a-host", "emulate", "--topo", "fabric.yml", *small, at=tmp_path)
    assert answer.code == 0, answer
    assert "verdict: VALID" in answer.output


def test_times_may_have_a_unit(tmp_path: Path) -> None:
    answer = run("times-with-unit", "plan", "--jobs", "jobs.yml", "--output", "plan", at=tmp_path)
    assert answer.code == 0, answer
    written = (tmp_path / "plan" / "jobs.yml").read_text()
    assert '"arrival_s": 0.5' in written
    assert '"compute_s": 0.001' in written
