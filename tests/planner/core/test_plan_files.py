"""Files: what is saved is read back equal, and every mistake gets one message with its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planner_cases import first_is_server, quick_plan
from tiers import long_unless

from inakit.planner.core.files import FILE, EntriesFile, load_jobs, load_plan, save_entries, save_jobs, save_plan
from inakit.planner.core.plan import PlannedTree
from inakit.planner.core.problem import Job
from inakit.planner.install.plan_entries import entries
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import fat_tree
from inakit.topo.fabric.variations import with_pipelines
from inakit.topo.files.reader import read_file, validate

JOBS = """
version: 1
jobs:
  - {workers: [h2, h3], servers: [h1], gradient_bytes: 4000, iterations: 3}
  - {workers: [h4], servers: [h1], gradient_bytes: 256, weight: 2, number: 7}
"""


@pytest.mark.parametrize("method", [long_unless(not name.endswith("-best"), name) for name in sorted(METHODS)])
def test_plans_and_entries_come_back_equal(method: str, tmp_path: Path) -> None:
    problem = first_is_server(with_pipelines(fat_tree(4), 2))
    plan = quick_plan(method, problem)
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    installed = entries(problem, plan)
    save_entries(installed, tmp_path / "entries")
    written = read_file(tmp_path / "entries" / "entries.json", FILE)
    assert validate(written, EntriesFile).entries == installed
    for switch in installed.switches:
        assert (tmp_path / "entries" / f"{switch.switch}.txt").read_text() == switch.cli()


def test_a_plan_of_a_former_version_is_read(tmp_path: Path) -> None:
    """Before version 3, the trees of a shard divided its share and rate evenly, and shards had numbers."""
    path = tmp_path / "plan.json"
    (planned,) = METHODS["atp"].plan(first_is_server(fat_tree(2))).trees
    trees = [replace(planned.tree, number=number) for number in (3, 1, 2)]
    plan = replace(METHODS["atp"].plan(first_is_server(fat_tree(2))), trees=())
    flat = [(0.5, trees[0]), (0.25, trees[1]), (0.25, trees[2])]
    save_plan(replace(plan, trees=tuple(PlannedTree(1, share, 1e6 * share, tree) for share, tree in flat)), path)
    document = json.loads(path.read_text())
    first, *others = document["plan"].pop("trees")
    document["plan"]["shards"] = [
        {"job": 1, "number": 2, "share": 0.5, "rate_bps": 5e5, "trees": [each["tree"] for each in others]},
        {"job": 1, "number": 1, "share": 0.5, "rate_bps": 5e5, "trees": [first["tree"]]},
    ]
    expected = load_plan(path)
    path.write_text(json.dumps(document | {"version": 2}))
    assert load_plan(path) == expected
    del document["plan"]["shards"][0]["rate_bps"]
    path.write_text(json.dumps(document | {"version": 2}))
    with pytest.raises(InputError, match=r"not a complete plan of version 2: make the plan again with `inakit plan`"):
        load_plan(path)


def test_a_switch_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    problem = first_is_server(fat_tree(2))
    installed = entries(problem, METHODS["lbmm"].plan(problem))
    renamed = type(installed)((type(installed.switches[0])("../../x", installed.switches[0].tables),))
    save_entries(renamed, tmp_path / "a" / "b")
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["..%2F..%2Fx.txt"]


def test_jobs_are_numbered_by_position_and_come_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yml"
    path.write_text(JOBS)
    jobs = load_jobs(path)
    assert jobs == (Job(1, ("h2", "h3"), ("h1",), 4000, iterations=3), Job(7, ("h4",), ("h1",), 256, weight=2.0))
    save_jobs(jobs, path)
    assert load_jobs(path) == jobs


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "iterations: 3",
            "iteratoins: 3",
            r"jobs\[0\].iteratoins: unknown key, did you mean 'iterations'",
        ),
        ("version: 1", "version: 2", "key 'version' 2 is not a version that this kit reads: write `version: 1`"),
        ("version: 1", "", "key 'version' is missing"),
        (
            "4000",
            "'4 lots'",
            r"jobs\[0\].gradient_bytes: expected a number of bytes, or such as 64k or 1.5M, found '4 lots'",
        ),
        ("4000", "0.5", r"jobs\[0\].gradient_bytes: expected a number of bytes"),
        ("iterations: 3", "iterations: 1.5", r"jobs\[0\].iterations: expected a whole number, found 1.5"),
        ("iterations: 3", "compute_s: -5ms", r"jobs\[0\].compute_s: expected a time in seconds, or such as 50us"),
        ("iterations: 3", "compute_s: .nan", r"jobs\[0\].compute_s: expected a time in seconds, or such as 50us"),
        ("weight: 2", "weight: 2024-01-01", r"jobs\[1\].weight: Input should be a valid number"),
        ("workers: [h4], ", "", r"jobs\[1\]: key 'workers' is missing"),
        ("servers: [h1]", "servers: h1", r"jobs\[0\].servers: Input should be a valid (array|tuple), found 'h1'"),
        ("version: 1", "version: [1", "line 3"),
        ("version: 1", "version: 1\nversion: 1", "given twice"),
        (JOBS, "just text", "expected the keys version, jobs, found 'just text'"),
    ],
)
def test_a_mistake_in_a_jobs_file_is_located(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yml"
    path.write_text(JOBS.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        load_jobs(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_times_and_sizes_may_have_units_and_numbers_may_be_texts(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(
        '{"version": 1, "jobs": [{"workers": ["h2"], "servers": ["h1"], "gradient_bytes": "4 kB", "number": "7",'
        ' "iterations": 2.0, "arrival_s": "500ms", "compute_s": "1 min"}]}'
    )
    assert load_jobs(path) == (Job(7, ("h2",), ("h1",), 4000, arrival_s=0.5, iterations=2, compute_s=60),)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"{"])
def test_an_unreadable_file_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"plan\.json"):
        load_plan(path)


def mutate(document: Any, *keys: str | int, value: Any) -> None:
    for key in keys[:-1]:
        document = document[key]
    document[keys[-1]] = value


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("plan", "trees", 0, "rate_bps"), "fast", r"plan\.trees\[0\]\.rate_bps"),
        (("plan", "trees", 0, "tree", "rooot"), "h1", "did you mean 'root'"),
        (("plan", "trees", 0, "tree", "branches", 0, "path"), ["h2", 3], r"branches\[0\]\.path\[1\]"),
        (("plan", "trees", 0, "tree", "workers"), {"one": "h2"}, "workers"),
    ],
)
def test_a_mistake_in_a_plan_file_is_located(
    keys: tuple[str | int, ...], value: object, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    save_plan(METHODS["atp"].plan(first_is_server(fat_tree(2))), path)
    document = json.loads(path.read_text())
    mutate(document, *keys, value=value)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        load_plan(path)
