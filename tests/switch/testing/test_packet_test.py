"""What a test can do to a switch beside sending packets: on every target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from model_programs import MODEL
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from single_targets import EVERYWHERE, PROGRAMS
from small_programs import packet

from inakit.switch.entries import Lpm
from inakit.switch.fast.load.shared_state import SwitchState
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.testing.devices import InProcessDevice, open_device
from inakit.switch.testing.either_switch import EitherSwitch
from inakit.switch.testing.packet_test import PacketTest
from inakit.topo.errors import InputError, UnsupportedError

FAR_PORT = 300
CPU_PORT = 510
Make = Callable[[Path], PacketTest]
NEAR, FAR, NEXT = "02:00:00:00:00:01", "02:00:00:00:00:09", "02:00:00:00:00:02"
SENT = Ether(dst=NEAR, src=FAR) / IP(dst="10.0.1.9", ttl=64)
ROUTED = "020000000002"


@pytest.fixture(params=[*EVERYWHERE, pytest.param("kernel", marks=pytest.mark.root)])
def made(request: pytest.FixtureRequest) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(program: Path, ports: Sequence[int] = (1, 2, 3, 4, FAR_PORT, CPU_PORT)) -> PacketTest:
            try:
                device = stack.enter_context(open_device(request.param, program, ports))
            except UnsupportedError as error:
                pytest.skip(str(error))
            return PacketTest(read_program(program), device)

        yield make


def test_entries_change_and_go(made: Make) -> None:
    switch = made(PROGRAMS / "router.json")
    routes = switch.table("ipv4_lpm")
    routes.add({"dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=2)
    routes.change({"dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=FAR_PORT)
    switch.send(1, SENT)
    switch.expect(FAR_PORT, ROUTED)
    assert [(entry.key, entry.params[1]) for entry in routes.entries()] == [((Lpm(0x0A000100, 24),), FAR_PORT)]
    routes.delete({"dst": "10.0.1.0/24"})
    switch.send(1, SENT)
    switch.expect_nothing_else()
    with pytest.raises(InputError, match="no entry for the key"):
        routes.delete({"dst": "10.0.1.0/24"})


def test_a_table_that_is_not_there_may_never_be_applied(made: Make) -> None:
    with pytest.raises(InputError, match=r"unknown table 'ipv5_lpm'.*p4c leaves out a table that the program never"):
        made(PROGRAMS / "router.json").table("ipv5_lpm")


def test_defaults_are_set_and_reset(made: Make) -> None:
    switch = made(PROGRAMS / "router.json")
    routes = switch.table("ipv4_lpm")
    routes.set_default("forward", mac=NEXT, port=CPU_PORT)
    switch.send(1, SENT)
    switch.expect(CPU_PORT, ROUTED)
    routes.reset_default()
    switch.send(1, SENT)
    switch.expect_nothing_else()


def test_registers_are_written_and_read(made: Make) -> None:
    switch = made(PROGRAMS / "router.json")
    switch.table("ipv4_lpm").add({"dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=2)
    switch.write_register("routed", 2, 41)
    switch.send(1, SENT)
    switch.expect(2, ROUTED)
    assert switch.register("routed")[1:4] == [0, 42, 0]


def test_commands_of_simple_switch_cli(made: Make, tmp_path: Path) -> None:
    switch = made(PROGRAMS / "router.json")
    (tmp_path / "s1-commands.txt").write_text("table_add ipv4_lpm forward 10.0.1.0/24 => 02:00:00:00:00:02 2\n")
    switch.commands(tmp_path / "s1-commands.txt")
    switch.command("table_modify ipv4_lpm forward 0 02:00:00:00:00:02 3")
    switch.send(1, SENT)
    switch.expect(3, ROUTED)
    switch.expect_nothing_else()
    with pytest.raises(AssertionError, match="only reads"):
        switch.command("table_dump ipv4_lpm")


def test_counters_of_cells_and_of_entries(made: Make) -> None:
    switch = made(MODEL / "matching.json")
    masked = switch.table("by_mask")
    masked.add({"address": "0x0a******", "port": 80}, "mask", priority=1, value=20)
    sent = packet(switch.program, address=0x0A000001, port=80)
    for _ in range(3):
        switch.send(1, sent)
    count, octets = masked.counter({"address": "0x0a******", "port": 80}, priority=1)
    assert (count, octets) in ((3, 3 * len(sent)), (0, 0))


def test_groups_and_mirror_sessions(made: Make) -> None:
    switch = made(MODEL / "copies.json")
    switch.multicast(4, [3], more=[(7, 4)])
    switch.send(1, packet(switch.program, todo=5))
    assert [len(switch.expect(port, "**")) for port in (3, 4)]
    switch.expect_nothing_else()
    switch.multicast(4, [FAR_PORT])
    switch.send(1, packet(switch.program, todo=5))
    switch.expect(FAR_PORT, "**")
    switch.mirror(7, port=CPU_PORT)
    switch.send(1, packet(switch.program, todo=1))
    assert [len(switch.expect(port, "**")) for port in (2, CPU_PORT)]
    switch.expect_nothing_else()


def test_meters_colour(made: Make) -> None:
    switch = made(MODEL / "externs.json")
    switch.meter("rate", [(1e-9, 1), (1e-9, 100000)], index=3)
    switch.send(1, packet(switch.program, index=3))
    switch.expect(1, "**")
    assert switch.counter("seen")[3][0] == 1


def test_what_packets_have_left_stays_when_the_interpreter_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(_self: SwitchState, table: str) -> None:
        raise UnsupportedError(f"the default of '{table}'")

    monkeypatch.setattr(SwitchState, "reset_default", unsupported)
    with open_device("fast", PROGRAMS / "router.json", ()) as device:
        switch = PacketTest(read_program(PROGRAMS / "router.json"), device)
        switch.table("ipv4_lpm").add({"dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=2)
        for expected in (1, 2):
            switch.send(1, SENT)
            switch.expect(2, ROUTED)
            assert switch.register("routed")[2] == expected
            switch.table("ipv4_lpm").reset_default()
        assert isinstance(device, InProcessDevice)
        assert isinstance(device.in_process, EitherSwitch)
        assert not device.in_process.compiled
