"""The interpreter: what the parser makes of packets, whole and cut short."""

from __future__ import annotations

import json

import pytest
from model_programs import MODEL, PARSING, switch_of
from small_programs import ETHERNET

from inakit.switch.entries import SwitchEntries, ValueSetMember
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of
from inakit.topo.errors import RunError


@pytest.mark.parametrize("name", PARSING)
def test_the_parser(name: str) -> None:
    sent, headers, rest = (bytes.fromhex(part) for part in PARSING[name])
    switch = switch_of("parsing")
    switch.install(SwitchEntries("s", value_sets=(ValueSetMember("TestParser.numbers", 0x777),)))
    expected = ETHERNET + headers + rest if len(sent) > 1 else rest[:7] + ETHERNET + sent
    assert switch.inject(3, ETHERNET + sent) == [(3, expected)]


def test_a_parser_that_loops_ends() -> None:
    document = json.loads((MODEL / "parsing.json").read_text())
    states = {state["name"]: state for state in document["parsers"][0]["parse_states"]}
    states["start"]["parser_ops"] = []
    states["start"]["transition_key"] = []
    states["start"]["transitions"] = [{"type": "default", "value": None, "mask": None, "next_state": "start"}]
    with pytest.raises(RunError, match="loops"):
        InterpretedSwitch(program_of(document)).inject(1, ETHERNET)
