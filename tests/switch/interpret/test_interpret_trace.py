"""The interpreter: a trace tells each step of a packet."""

from __future__ import annotations

from model_programs import MATCHING_ENTRIES, switch_of
from small_programs import packet


def test_a_trace_tells_each_step() -> None:
    switch = switch_of("matching")
    switch.install(MATCHING_ENTRIES)
    sent = packet(switch.program, kind=5, address=0x0A0B0001)
    traced = switch.trace(1, sent)
    assert traced.sent == switch.inject(1, sent)
    expected = (
        "Processing packet received on port 1",
        "Parser 'parser' entering state 'start'",
        "Applying table 'TestIngress.by_prefix'",
        "* hdr.test.kind: 0x5",
        "Table 'TestIngress.by_prefix': hit",
        "Action TestIngress.prefix(value=0xb)",
        "Table 'TestIngress.if_given': miss",
        "Deparsing header 'test'",
        f"Transmitting packet of size {len(sent)} out of port 1",
    )
    rest = iter(traced.lines)
    assert [line for line in expected if line not in rest] == []


def test_log_messages_are_lines_of_the_trace() -> None:
    assert "index 2 of 7" in switch_of("externs").trace(1, packet(switch_of("externs").program, index=2, a=7)).lines
