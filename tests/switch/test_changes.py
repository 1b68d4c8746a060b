"""Entries that change while a switch runs: on every target, and all of them or none."""

from __future__ import annotations

import pytest
from ina_by_hand import entry, ina_program, ipv4_packet

from inakit.switch.circuit_switch import CIRCUIT_PROGRAM, TABLE
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.targets import choose_target
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.live.network import Network

MANY = 5000
"""More than stand in front of a hash table: some are behind others."""


def cross_connect(port: int, to: int | None = None) -> TableEntry:
    action, params = ("darken", ()) if to is None else ("connect", (to,))
    return TableEntry(TABLE, (port,), f"CircuitIngress.{action}", params)


def test_a_changed_array_is_followed_at_once() -> None:
    switch = InProcessSwitch(read_program(CIRCUIT_PROGRAM))
    switch.install(SwitchEntries("aoi", (cross_connect(1, 2), cross_connect(2))))
    assert [switch.inject(port, b"light" * 20) for port in (1, 2, 3)] == [[(2, b"light" * 20)], [], []]
    switch.change([cross_connect(1), cross_connect(2, 7)])
    assert [switch.inject(port, b"light" * 20) for port in (1, 2)] == [[], [(7, b"light" * 20)]]
    passed, lost = (switch.read_counter(f"CircuitIngress.{name}")[0][:4].tolist() for name in ("passed", "lost"))
    assert (passed, lost) == ([0, 1, 1, 0], [0, 1, 1, 1])


def test_a_changed_hash_table_is_followed_at_once() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(SwitchEntries("s", tuple(entry("ipv4_route", (n,), "send", 1) for n in range(MANY))))
    switch.change([entry("ipv4_route", (n,), "send", 2) for n in range(0, MANY, 2)])
    packets = [(5, ipv4_packet(b"x" * 20, destination)) for destination in range(MANY)]
    assert [port for port, _ in switch.inject_all(packets)] == [2, 1] * (MANY // 2)


def test_what_cannot_be_changed_is_refused_and_nothing_is() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(SwitchEntries("s", (entry("ipv4_route", (1,), "send", 1),)))
    for wrong in (entry("ipv4_route", (2,), "send", 3), entry("forward", (1, 1, 1), "send", 3)):
        with pytest.raises(InputError, match=r"has no entry for the key \(.*\): install it first"):
            switch.change([entry("ipv4_route", (1,), "send", 3), wrong])
    with pytest.raises(InputError, match="512 does not fit"):
        switch.change([entry("ipv4_route", (1,), "send", 512)])
    assert [row.params for row in switch.read_table("InaIngress.ipv4_route")] == [(1,)]


@pytest.mark.root
@pytest.mark.parametrize("target", ["fast", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_a_running_switch_has_what_was_changed(target: str) -> None:
    rows = [entry("forward", (1, 1, label), "send", 1) for label in range(1, 9)]
    with Network(named_fabric("inart-testbed"), choose_target(target).node_class()) as network:
        switch = network.switches["v1"]
        switch.install(SwitchEntries("v1", tuple(rows)))
        changed = [entry("forward", (1, 1, label), "send", 2) for label in range(1, 9, 2)]
        switch.change(changed)
        assert switch.read_table("InaIngress.forward") == [
            each for pair in zip(changed, rows[1::2], strict=True) for each in pair
        ]
        with pytest.raises(InputError, match="install it first"):
            switch.change([entry("forward", (1, 1, 99), "send", 2)])
