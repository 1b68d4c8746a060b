"""What plans the chip's program takes, what it refuses and how it says so; it shares its numbers with `ina.p4`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inakit.experiments.bench.exactness import case
from inakit.planner.install.ina_program import BUILD, INA, INA_HW, PROGRAMS, find_program
from inakit.planner.install.plan_entries import entries
from inakit.topo.errors import InputError, PlanError

P4 = Path(__file__).parents[3] / "p4"
CHIP_SOURCES = "\n".join(file.read_text() for file in sorted((P4 / "ina_hw").glob("*.p4")))


def compiled(program: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BUILD / f"{program}.json").read_text())
    return found


def interface(program: str) -> dict[str, Any]:
    """The tables with their keys' widths and their actions, and the actions' parameters."""
    found = compiled(program)
    types = {kind["name"]: {name: width for name, width, *_ in kind["fields"]} for kind in found["header_types"]}
    widths = {header["name"]: types[header["header_type"]] for header in found["headers"]}
    tables = [table for pipeline in found["pipelines"] for table in pipeline["tables"]]
    return {
        table["name"]: [widths[key["target"][0]][key["target"][1]] for key in table["key"]]
        for table in tables
        if table["name"].startswith("Ina")
    }


def test_an_unknown_program_is_named() -> None:
    with pytest.raises(InputError, match="unknown data-plane program 'ina_hv': did you mean 'ina_hw'"):
        find_program("ina_hv")


def test_the_full_program_takes_every_plan_as_it_is() -> None:
    _, plan = case("esa", 2, fragments=8, slots=8, rate_bps=2e6)
    assert INA.fitted(plan) is plan


def test_a_policy_that_a_chip_cannot_do_is_refused_by_name() -> None:
    _, plan = case("esa", 2, fragments=8, slots=8, rate_bps=2e6)
    with pytest.raises(PlanError, match=r"job 1, tree 1: program ina_hw has no slot policy 'esa': to evict .* ina$"):
        INA_HW.fitted(plan)


def test_too_many_children_are_refused() -> None:
    _, plan = case("goat", 1, fragments=8, slots=8, rate_bps=2e6)
    with pytest.raises(PlanError, match=r"aggregator \d+ on switch 's1' sums 2 children, and a slot .* has 1 bits"):
        replace(INA_HW, bitmap_bits=1).fitted(plan)


def test_where_slots_are_shared_only_whole_children_are_summed() -> None:
    problem, plan = case("atp", 2, fragments=8, slots=8, rate_bps=2e6)
    tree = INA_HW.fitted(plan).trees[0].tree
    rows = [row for each in entries(problem, INA_HW.fitted(plan)).switches for row in each.tables]
    bits = [row.params[0] for row in rows if row.table.endswith("aggregation")]
    assert tree.whole_children
    assert all(bit & (bit - 1) == 0 for bit in bits)
    assert {tree.summands(each) for each in tree.aggregators} == {each.children for each in tree.aggregators}


def test_both_programs_take_the_same_entries() -> None:
    assert interface("ina") == interface("ina_hw")


def test_both_programs_have_the_same_numbers_and_headers() -> None:
    numbers = re.compile(r"const bit<\d+> (\w+) = (\w+);")
    full, chip = dict(numbers.findall((P4 / "ina.p4").read_text())), dict(numbers.findall(CHIP_SOURCES))
    common = {name for name in full if name.startswith(("KIND_", "FLAG_", "WAY_"))}
    assert set(chip) >= common - {"KIND_QUESTION"}, "of repairs, which a chip leaves to timeouts"
    assert {name: chip[name] for name in chip if name in full} == {name: full[name] for name in full if name in chip}
    headers = {
        program: {kind["name"]: kind["fields"] for kind in compiled(program)["header_types"]} for program in PROGRAMS
    }
    for name in ("ethernet_t", "ipv4_t", "udp_t", "ina_t"):
        assert headers["ina"][name] == headers["ina_hw"][name]
    assert INA_HW.passes * len(headers["ina_hw"]["values_t"]) == len(headers["ina"]["values_t"])
    assert len(headers["ina_hw"]["values_t"]) == INA_HW.values_per_pass


def test_an_action_reads_and_writes_one_register_once() -> None:
    """A chip's stateful ALU does one read-modify-write of one cell; no action on a slot does anything else."""
    touched = [slot_registers(action) for action in compiled("ina_hw")["actions"]]
    done = [(read, written) for read, written in touched if read or written]
    registers = {each["name"] for each in compiled("ina_hw")["register_arrays"] if is_of_slots(each["name"])}
    assert {written[0] for _, written in done} == registers
    assert all(len(written) == 1 and read in ([], written) for read, written in done)


def slot_registers(action: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The slots' registers that an action reads, and those that it writes."""
    read = [step["parameters"][1]["value"] for step in action["primitives"] if step["op"] == "register_read"]
    written = [step["parameters"][0]["value"] for step in action["primitives"] if step["op"] == "register_write"]
    return [name for name in read if is_of_slots(name)], [name for name in written if is_of_slots(name)]


def is_of_slots(register: str) -> bool:
    return register.startswith(("InaIngress.slot_", "InaIngress.sum"))
