"""The examples of docs/files.md load, together, and its tables have every key."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from inakit.experiments.run.faults_file import load_faults
from inakit.planner.core.files import load_jobs
from inakit.planner.core.problem import Job, Problem
from inakit.planner.registry import METHODS
from inakit.topo.files.fabric_records import ChipRecord, LinkRecord, SwitchRecord, find_chip
from inakit.topo.files.fabrics import load_fabric
from inakit.traffic.wire.packet_format import FRAGMENT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "files.md"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A folder with the examples, under the names in their first lines."""
    blocks = re.findall(r"^```\w+\n(?:# |<!-- )(\S+?)(?: -->)?\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    expected = ["fabric.yml", "chip.yml", "map.graphml", "jobs.yml", "queue.yml", "faults.yml"]
    assert [name for name, _ in blocks] == expected
    return tmp_path


def test_fabric_jobs_and_faults_load_and_can_be_planned(examples: Path) -> None:
    problem = Problem(load_fabric(examples / "fabric.yml"), load_jobs(examples / "jobs.yml"), FRAGMENT)
    assert [job.number for job in problem.jobs] == [1, 7]
    METHODS["atp"].plan(problem)
    assert len(load_faults(examples / "faults.yml", problem).background) == 1


def test_the_chip_is_that_of_the_kit(examples: Path) -> None:
    assert replace(find_chip(str(examples / "chip.yml")), name="tofino1") == find_chip("tofino1")


def test_the_map_leaves_nothing_open(examples: Path) -> None:
    told: list[str] = []
    fabric = load_fabric(examples / "map.graphml", told.append)
    assert fabric.capacities_bps["Bern", "Basel"] == 1e10
    assert told == [f"{examples}/map.graphml: 2 hosts, the nodes with `tier` 0 or `type` host; 2 switches"]


def test_the_tables_have_every_key() -> None:
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]*)", PAGE.read_text(), re.MULTILINE))))
    keys = {
        *SwitchRecord.model_fields,
        *LinkRecord.model_fields,
        *ChipRecord.model_fields,
        *(field.name for field in fields(Job)),
    }
    assert keys <= documented
