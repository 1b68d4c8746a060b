"""The interpreter: clones, replicas, packets that return to the parser, truncation and digests."""

from __future__ import annotations

import json

import pytest
from model_programs import MODEL, fields_of, switch_of
from small_programs import packet

from inakit.switch.entries import MirrorSession, MulticastGroup, SwitchEntries
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of
from inakit.topo.errors import RunError


def copies(todo: int, mirror: MirrorSession | None = None) -> list[tuple[int, dict[str, int], int]]:
    """Port, header and length of what leaves for one packet with a payload of 10 bytes."""
    switch = switch_of("copies")
    group = MulticastGroup(4, (5, 6), ((7, 6),))
    switch.install(SwitchEntries("s", groups=(group,), mirrors=(mirror,) if mirror else ()))
    sent = switch.inject(9, packet(switch.program, todo=todo) + bytes(10))
    return [(port, fields_of(switch.program, data), len(data)) for port, data in sent]


def test_a_packet_can_be_dropped_in_both_pipelines() -> None:
    assert copies(0) == copies(8) == []


def test_a_packet_is_dropped_in_a_copy_of_metadata_once_that_is_copied_back() -> None:
    switch = switch_of("dropping")
    left = [[port for port, _ in switch.inject(1, packet(switch.program, todo=todo))] for todo in range(4)]
    assert left == [[2], [], [2], [3]]


def test_a_clone_of_ingress_is_the_packet_that_came() -> None:
    (port, clone, _), (other, packet, _) = copies(1, MirrorSession(7, 8))
    assert (port, other) == (8, 2)
    assert (clone["instance"], clone["kept"], clone["lost"]) == (1, 11, 0)
    assert (packet["instance"], packet["kept"], packet["lost"]) == (0, 11, 22)


def test_a_clone_without_a_session_is_none() -> None:
    assert [port for port, _, _ in copies(1)] == [2]


def test_a_packet_is_resubmitted_with_the_fields_it_keeps() -> None:
    ((port, packet, _),) = copies(2)
    assert (port, packet["kept"], packet["lost"], packet["instance"]) == (2, 66, 0, 0)


def test_a_clone_of_egress_is_the_packet_that_leaves() -> None:
    (_, packet, _), (port, clone, _) = copies(3, MirrorSession(7, 8))
    assert (port, clone["instance"], clone["kept"], clone["lost"]) == (8, 2, 33, 0)
    assert (packet["kept"], packet["lost"], packet["port"]) == (33, 44, 2)


def test_a_clone_can_go_to_a_group() -> None:
    found = copies(1, MirrorSession(7, 8, 4))
    assert [(port, fields["instance"], fields["replica"]) for port, fields, _ in found] == [
        (5, 1, 1), (6, 1, 1), (6, 1, 7), (8, 1, 7), (2, 0, 0)]  # fmt: skip


def test_a_packet_is_recirculated_with_the_fields_it_keeps() -> None:
    ((port, packet, _),) = copies(4)
    assert (port, packet["kept"], packet["lost"], packet["instance"]) == (3, 55, 0, 0)


def test_replicas_leave_by_each_port_of_a_group() -> None:
    found = copies(5)
    assert [(port, fields["replica"], fields["instance"]) for port, fields, _ in found] == [
        (5, 1, 5), (6, 1, 5), (6, 7, 5)]  # fmt: skip


def test_an_added_header_makes_the_packet_longer() -> None:
    ((_, plain, length),) = copies(10)
    ((_, longer, more),) = copies(7)
    assert (longer["length"] - plain["length"], more - length) == (4, 4)


def test_a_packet_is_truncated() -> None:
    assert [length for _, _, length in copies(9)] == [20]


def test_digests_are_kept_until_they_are_read() -> None:
    switch = switch_of("copies")
    switch.inject(9, packet(switch.program, todo=6))
    assert switch.state.read_digests() == [("note_t", (6, 9))]
    assert switch.state.read_digests() == []


def test_a_packet_that_goes_round_for_ever_ends() -> None:
    document = json.loads((MODEL / "copies.json").read_text())
    document["pipelines"][0]["conditionals"][0]["expression"] = {
        "type": "expression",
        "value": {"type": "bool", "value": False},
    }
    for conditional in document["pipelines"][0]["conditionals"][1:]:
        conditional["expression"] = {"type": "expression", "value": {"type": "bool", "value": True}}
    for conditional in document["pipelines"][1]["conditionals"]:
        conditional["expression"] = {"type": "expression", "value": {"type": "bool", "value": True}}
    switch = InterpretedSwitch(program_of(document))
    switch.install(SwitchEntries("s", mirrors=(MirrorSession(7, 1),)))
    with pytest.raises(RunError, match="in a loop"):
        switch.inject(1, packet(switch.program, todo=9))
