"""Compiled programs of all years: what p4c and its predecessors have written since 2016 is read as what it means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_programs import ETHERNET, PARSED, PROGRAMS, packet

from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of
from inakit.switch.program.program import Program
from inakit.switch.testing.stf_play import StfVerdict, play
from inakit.switch.testing.stf_script import read_script
from inakit.topo.errors import InputError, UnsupportedError

CASES = Path(__file__).parents[2] / "experiments" / "cases"
EMBEDDED = ("interpreted", "fast", pytest.param("kernel", marks=pytest.mark.root))
UNLIKE_NAMES = [PROGRAMS / f"{name}.json" for name in ("arithmetic", "headers", "lengths", "parser", "model/externs")]
"""Programs in which no two actions have one name: only of those did compilers write names instead of numbers."""

Json = Any
PATH = 20
"""The byte of a packet of control.p4 that says which actions ran."""
LISTS = ("field_lists", "learn_lists", "parse_vsets", "extern_instances", "meter_arrays", "counter_arrays")
TABLE_DEFAULTS = ("with_counters", "support_timeout", "direct_meters")


@pytest.mark.compiler
@pytest.mark.parametrize("target", EMBEDDED)
@pytest.mark.parametrize("case", ["p4c-if-in-action/branch.json", "p4c-json-2.18/old.json"])
def test_a_program_of_another_year_passes_its_test(case: str, target: str) -> None:
    path = CASES / case
    result = play(path, read_script(path.with_name("router.stf")), target)
    assert result.verdict is StfVerdict.PASS, result.reasons


def aged(document: Json) -> Json:
    """A document as it was before transitions had types and actions numbers, without what need not be written."""
    for table in (each for pipeline in document["pipelines"] for each in pipeline["tables"]):
        del table["action_ids"]
        for part in table["key"]:
            assert part.pop("mask") is None
        for name in TABLE_DEFAULTS:
            assert not table.pop(name)
        if not table["default_entry"]["action_const"]:
            del table["default_entry"]["action_const"], table["default_entry"]["action_entry_const"]
    for state in document["parsers"][0]["parse_states"]:
        for transition in state["transitions"]:
            if transition.pop("type") == "default":
                transition["value"] = "default"
    for name in LISTS:
        if not document[name]:
            del document[name]
    del document["errors"][2:]
    return document


@pytest.mark.parametrize("path", UNLIKE_NAMES, ids=lambda path: path.stem)
def test_a_document_of_older_form_is_the_same_program(path: Path) -> None:
    document = json.loads(path.read_text())
    older = aged(json.loads(path.read_text()))
    assert older != document
    assert program_of(older) == program_of(document)


def primitive(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


A, B, C = ({"type": "field", "value": ["test", name]} for name in "abc")


def computed(operator: str) -> Json:
    return {"type": "expression", "value": {"op": operator, "left": B, "right": C}}


OLDER_PRIMITIVES = {
    "modify_field": (primitive("modify_field", A, B), primitive("assign", A, B)),
    "add_to_field": (
        primitive("add_to_field", B, C), primitive("assign", B, computed("+")),
    ),
    "subtract": (primitive("subtract", A, B, C), primitive("assign", A, computed("-"))),
    "shift_left": (primitive("shift_left", A, B, C), primitive("assign", A, computed("<<"))),
    "drop": (primitive("drop"), primitive("mark_to_drop", {"type": "header", "value": "standard_metadata"})),
    "copy_header": (
        primitive("copy_header", {"type": "header", "value": "test"}, {"type": "header", "value": "test"}),
        primitive("assign_header", {"type": "header", "value": "test"}, {"type": "header", "value": "test"}),
    ),
}  # fmt: skip


def with_statement(*statements: Json) -> Program:
    document = json.loads((PROGRAMS / "arithmetic.json").read_text())
    document["actions"][0]["primitives"] = list(statements)
    return program_of(document)


@pytest.mark.parametrize("name", OLDER_PRIMITIVES)
def test_an_older_primitive_is_what_is_written_for_it_now(name: str) -> None:
    older, now = OLDER_PRIMITIVES[name]
    assert with_statement(older, primitive("no_op")).actions == with_statement(now).actions


@pytest.mark.compiler
@pytest.mark.parametrize("kind", [InterpretedSwitch, InProcessSwitch])
@pytest.mark.parametrize("name", PARSED)
def test_errors_have_the_numbers_of_the_programs_own_list(
    name: str, kind: type[InterpretedSwitch | InProcessSwitch]
) -> None:
    """The program takes every number but 0 for an error; here that is the error of the packets that are too short."""
    document = json.loads((PROGRAMS / "parser.json").read_text())
    document["errors"][:2] = [["NoError", 1], ["PacketTooShort", 0]]
    sent, port, back = PARSED[name]
    expected = port - 100 if port > 100 else port + 100
    out = kind(program_of(document)).inject(1, ETHERNET + bytes.fromhex(sent))
    assert out == [(expected, ETHERNET + bytes.fromhex(back or sent))]


def test_errors_that_a_document_lacks_come_behind_its_own() -> None:
    document = json.loads((PROGRAMS / "parser.json").read_text())
    document["errors"] = [["Mine", 4], ["NoError", 2]]
    errors = program_of(document).errors
    assert (errors["Mine"], errors["NoError"], errors["PacketTooShort"], errors["NoMatch"]) == (4, 2, 5, 6)


@pytest.mark.parametrize("kind", [InterpretedSwitch, InProcessSwitch])
def test_what_only_some_compilers_wrote_is_refused_by_name(kind: type[InterpretedSwitch | InProcessSwitch]) -> None:
    document = json.loads((PROGRAMS / "bits.json").read_text())
    document["header_types"][-1]["fields"][0][2:] = [False, True]
    with pytest.raises(UnsupportedError, match="saturating field"):
        kind(program_of(document))


def of_another_architecture(document: Json) -> None:
    document["pipelines"][0]["name"] = "main_control"


def without_standard_metadata(document: Json) -> None:
    (standard,) = [each for each in document["header_types"] if each["name"] == "standard_metadata"]
    standard["fields"] = [each for each in standard["fields"] if each[0] != "egress_spec"]


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        (of_another_architecture, "no pipeline 'ingress'"),
        (without_standard_metadata, r"no field 'standard_metadata\.egress_spec'"),
    ],
)
def test_a_program_for_another_architecture_is_refused(change: Callable[[Json], None], lacks: str) -> None:
    document = json.loads((PROGRAMS / "bits.json").read_text())
    change(document)
    with pytest.raises(InputError, match=f"{lacks}: it is not for v1model"):
        program_of(document)


@pytest.mark.compiler
@pytest.mark.parametrize("kind", [InterpretedSwitch, InProcessSwitch])
def test_entries_of_a_masked_key_match_as_far_as_the_mask_goes(
    kind: type[InterpretedSwitch | InProcessSwitch],
) -> None:
    """BMv2 cuts the keys of entries too: those of two that differ only beside the mask are one."""
    document = json.loads((PROGRAMS / "control.json").read_text())
    (table,) = [each for each in document["pipelines"][0]["tables"] if each["name"] == "TestIngress.by_port"]
    table["key"][0]["mask"] = "0x0001"
    program = program_of(document)
    switch = kind(program)

    def add_for_port(port: int) -> None:
        switch.install(SwitchEntries("s", (TableEntry("TestIngress.by_port", (port,), "TestIngress.add", (1,)),)))

    add_for_port(3)
    with pytest.raises(InputError, match="already has an entry"):
        add_for_port(5)
    paths = [switch.inject(port, packet(program, key=7))[0][1][PATH] for port in (1, 2, 7)]
    assert paths[0] == paths[2] != paths[1]
