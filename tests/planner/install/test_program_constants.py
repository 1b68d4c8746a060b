"""`inakit.planner.install.ina_program` says what the P4 program says: its constants, and the names of its parts."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from entries_model import GRADIENT, NOTICE, RESULT
from planner_cases import first_is_server

from inakit.planner.core.plan import MOST_BITS
from inakit.planner.install import ina_program
from inakit.planner.install.fault_entries import LinkFaults, with_faults
from inakit.planner.install.plan_entries import entries
from inakit.planner.registry import METHODS
from inakit.switch.entries import Entries
from inakit.topo.fabric.fabric import MAX_PIPELINES
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_pipelines

P4 = Path(__file__).parents[3] / "p4"
SOURCE = (P4 / "ina.p4").read_text()
NUMBERS = {name: value for name, value in vars(ina_program).items() if isinstance(value, int)}
NAMES = {
    name: value
    for key, found in vars(ina_program).items()
    if key.isupper() and isinstance(found, str | tuple)
    for name, value in ([(key, found)] if isinstance(found, str) else [(f"{key}[{i}]", x) for i, x in enumerate(found)])
}


@cache
def compiled() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((P4 / "build" / "ina.json").read_text())
    return found


def tables() -> dict[str, dict[str, Any]]:
    return {table["name"]: table for pipeline in compiled()["pipelines"] for table in pipeline["tables"]}


def names(kind: str) -> set[str]:
    return {each["name"] for each in compiled()[kind]}


def defined(pattern: str) -> int:
    found = re.search(pattern, SOURCE)
    assert found, pattern
    return int(found[1], 0)


@pytest.mark.parametrize("name", [name for name in NUMBERS if name.startswith(("KIND_", "POLICY_"))])
def test_a_constant_is_the_programs(name: str) -> None:
    assert defined(rf"const bit<8> {name} = (\w+);") == NUMBERS[name]


def test_no_constant_of_the_program_is_missing() -> None:
    assert set(re.findall(r"const bit<8> ((?:KIND|POLICY)_\w+)", SOURCE)) <= set(NUMBERS)


def test_sizes_are_the_programs() -> None:
    assert 1 << defined(r"#define SLOTS_PER_PIPELINE_LOG2 (\d+)") == ina_program.SLOTS_PER_PIPELINE
    assert defined(r"#define PORTS (\d+)") == ina_program.PORTS
    assert defined(r"#define PIPELINES (\d+)") == ina_program.PIPELINES == MAX_PIPELINES
    assert defined(r"register<bit<(\d+)>>\(SLOTS\) slot_bitmap;") == ina_program.BITMAP_BITS == MOST_BITS


def test_the_model_of_the_program_has_its_kinds() -> None:
    assert (GRADIENT, RESULT, NOTICE) == (ina_program.KIND_GRADIENT, ina_program.KIND_RESULT, ina_program.KIND_NOTICE)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_of_the_compiled_programs(name: str) -> None:
    known = {*tables(), *names("actions"), *names("register_arrays"), *names("counter_arrays")}
    assert NAMES[name] in known or (name == "SUM" and f"{NAMES[name]}0" in known)


def test_every_table_of_the_compiled_program_has_a_name() -> None:
    assert {name for name in tables() if name.startswith("Ina")} <= set(NAMES.values())


@pytest.mark.parametrize(
    ("table", "action"),
    [
        (ina_program.PIPELINE, ina_program.SET_PIPELINE),
        (ina_program.ADMISSION, ina_program.ADMIT),
        (ina_program.AGGREGATION, ina_program.AGGREGATE),
        (ina_program.FORWARD, ina_program.SEND),
        (ina_program.IPV4_ROUTE, ina_program.SEND),
        (ina_program.RESULTS, ina_program.REPLICATE),
        (ina_program.ARRIVING, ina_program.ARRIVAL_FAULTY),
        (ina_program.WAYS, ina_program.DOUBLED),
        (ina_program.LEAVING, ina_program.DEPARTURE_FAULTY),
        (ina_program.QUEUES, ina_program.PHANTOM),
    ],
)
def test_an_action_is_one_of_its_table(table: str, action: str) -> None:
    assert action in tables()[table]["actions"]


def installed(method: str) -> Entries:
    """All entries of a plan, with faults on a link between switches and on one to a host."""
    problem = first_is_server(with_pipelines(fat_tree(4), 4) if method == "aro" else leaf_spine(4, 2, 4))
    fabric = problem.fabric
    tor = fabric.tor_of("h2")
    spine = next(peer for peer in fabric.neighbors[tor] if peer in fabric.switch_by_name)
    faults = {(tor, spine): LinkFaults(0.1, 0.1, 0.1), (tor, "h2"): LinkFaults(drop=1, duplicate=0.5)}
    return with_faults(fabric, entries(problem, METHODS[method].plan(problem)), faults)


@pytest.mark.parametrize("method", ["aro", "atp", "panama"])
def test_keys_and_parameters_are_as_wide_as_the_compiled_program_has_them(method: str) -> None:
    types = {kind["name"]: {name: width for name, width, *_ in kind["fields"]} for kind in compiled()["header_types"]}
    widths = {header["name"]: types[header["header_type"]] for header in compiled()["headers"]}
    actions = {action["name"]: action["runtime_data"] for action in compiled()["actions"]}
    used = set()
    for switch in installed(method).switches:
        for entry in switch.tables:
            used.add(entry.table)
            keys = [widths[key["target"][0]][key["target"][1]] for key in tables()[entry.table]["key"]]
            assert all(0 <= part < 1 << bits for part, bits in zip(entry.exact_key, keys, strict=True)), entry
            parameters = [parameter["bitwidth"] for parameter in actions[entry.action]]
            assert all(0 <= part < 1 << bits for part, bits in zip(entry.params, parameters, strict=True)), entry
    marking = {ina_program.QUEUES} if method == "panama" else set()
    assert used - marking == {name for name in tables() if name.startswith("Ina")} - {ina_program.QUEUES}
    assert used >= marking


def test_planners_name_the_programs_parts_in_one_place() -> None:
    files = [file for file in (P4.parent / "planner").rglob("*.py") if re.search(r'"Ina[IE]', file.read_text())]
    assert [file.name for file in files] == ["ina_program.py"]
