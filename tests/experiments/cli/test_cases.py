"""Small inputs that failed once: files of fabrics, jobs, models and queues (`tests/experiments/cases`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Answer, inakit

CASES = Path(__file__).parents[1] / "cases"


def run(folder: str, *arguments: str, at: Path) -> Answer:
    """A command whose words with a point are files of a case's folder."""
    files = [str(CASES / folder / word) if "." in word else word for word in arguments]
    return inakit(*files, at=at)


def test_ids_that_differ_outside_ascii_are_two_switches(tmp_path: Path) -> None:
    answer = run("graphml-names-merge", "plan", "--topo", "map.graphml", "--planners", "aro", at=tmp_path)
    assert "sending rate 1 Mbit/s" in answer.output, answer
    assert "'北京' n1, '上海' n2" in answer.error


@pytest.mark.parametrize("name", ["jobs.json", "jobs.yml"])
def test_a_key_given_twice_is_refused(name: str, tmp_path: Path) -> None:
    answer = run("json-duplicate-keys", "plan", "--jobs", name, at=tmp_path)
    assert answer.code == 2, answer
    assert f"{name}: key 'gradient_bytes' is given twice" in answer.error.replace(" line 1", "")


@pytest.mark.parametrize(
    ("arguments", "all_done"),
    [
        (("--capacity", "400G", "--queue", "queue.yml", "--output", "a"), "100.1 "),
        (("--capacity", "100G", "--queue", "epoch.yml"), "1,506,638,472 "),
    ],
)
def test_time_that_the_clock_does_not_resolve_passes(arguments: tuple[str, ...], all_done: str, tmp_path: Path) -> None:
    answer = run("place-hang", "place", *arguments, at=tmp_path)
    assert answer.code == 0, answer
    assert all_done in answer.output


@pytest.mark.parametrize("arguments", [("--model", "model.csv", "--planners", "goat"), ("--jobs", "jobs.json")])
def test_a_byte_order_mark_is_skipped(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer = run("bom", "plan", *arguments, at=tmp_path)
    assert answer.code == 0, answer
    assert "sending rate" in answer.output


def test_a_host_may_have_two_links(tmp_path: Path) -> None:
    """The PS has one in each rack, which are not joined otherwise: both carry their worker's whole rate."""
    answer = run("two-links-of-a-host", "plan", "--topo", "fabric.yml", at=tmp_path)
    assert "sending rate 10 Gbit/s" in answer.output, answer
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


@pytest.mark.parametrize("mode", ["reliable", "replay"])
def test_virtual_time_jumps_to_a_job_that_arrives_years_later(mode: str, tmp_path: Path) -> None:
    """50 million seconds are more picoseconds than 64 bits have, and a computation of a million is one jump, too."""
    soon = {"workers": ["h2"], "servers": ["h1"], "gradient_bytes": 4096}
    late = {"workers": ["h4"], "servers": ["h6"], "gradient_bytes": 4096, "arrival_s": 5e7}
    jobs = [soon, late | {"compute_s": "1e6 s", "iterations": 2}]
    (tmp_path / "jobs.json").write_text(json.dumps({"version": 1, "jobs": jobs}))
    arguments = ("--jobs", "jobs.json", "--switch", "virtual", "--planners", "atp", "--mode", mode)
    answer = inakit("emulate", *arguments, at=tmp_path)
    assert answer.code == 0, answer
    assert "verdict: VALID" in answer.output
    *_, last = (tmp_path / "results/latest/atp/iterations.csv").read_text().splitlines()
    assert last.startswith("2,1,51000000.0")


def star(hosts: int, folder: Path) -> None:
    """Write `star.yml`: hosts at one switch."""
    names = [f"h{number}" for number in range(hosts)]
    links = [{"a": name, "b": "s1", "capacity": "20M"} for name in names]
    (folder / "star.yml").write_text(
        json.dumps({"name": "star", "hosts": names, "switches": {"s1": {}}, "links": links})
    )


def test_a_tree_of_more_ports_than_some_targets_copy_to_is_told_when_it_is_planned(tmp_path: Path) -> None:
    star(140, tmp_path)
    arguments = ("--topo", "star.yml", "--workers", "139", "--gradient-bytes", "4096")
    says = "results leave switch 's1' by 139 ports, and targets fast and virtual allow 128: choose --switch bmv2"
    planned = inakit("plan", *arguments, "--planners", "atp", at=tmp_path)
    assert planned.code == 0, planned
    assert says in planned.output
    run = inakit("emulate", *arguments, "--planners", "atp", "--switch", "virtual", at=tmp_path)
    assert run.code == 2, run
    assert says in run.error


def test_a_switch_of_more_ports_than_the_program_has_is_refused_when_it_is_planned(tmp_path: Path) -> None:
    star(520, tmp_path)
    answer = inakit("plan", "--topo", "star.yml", "--planners", "atp", at=tmp_path)
    assert answer.code == 2, answer
    assert "switch 's1' has port 520: the P4 program takes ports 0 to 511" in answer.error
