"""A pytest plugin for people who grade or test P4: a switch, its ports, its tables; no network and no root.

    def test_forwards(p4_switch):
        switch = p4_switch("build/router.json")
        switch.table("ipv4_lpm").add({"dstAddr": "10.0.1.0/24"}, "forward", port=2)
        switch.send(1, Ether() / IP(dst="10.0.1.9", ttl=64))
        switch.expect(2, Ether() / IP(dst="10.0.1.9", ttl=63))
        switch.expect_nothing_else()

Entries can be changed and deleted (`change`, `delete`); registers, counters, multicast groups and mirror sessions can
be set and read. `switch.command("mc_mgrp_create 1")` takes any command of simple_switch_CLI that changes a switch.

Any unambiguous ending of a name is a name; values are those of STF (`0x0a**`, `10.0.1.0/24`, `V&&&MASK`, `LOW..HIGH`).
`pytest --p4-target bmv2` runs the same tests on BMv2 (as root).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from inakit.switch.testing.packet_test import PacketTest

PORTS = range(8)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--p4-target`, which chooses the target for the programs under test."""
    group = parser.getgroup("p4", "switches under test")
    group.addoption("--p4-target", default="fast", help="what runs P4 programs: fast, kernel or bmv2")


class MakeSwitch(Protocol):
    """Makes switches that run until the test ends."""

    def __call__(self, program: str | PathLike[str], ports: Iterable[int] = PORTS) -> PacketTest:
        """A switch with the program of a file and these ports; a switch in this process has all port numbers."""


@pytest.fixture
def p4_switch(request: pytest.FixtureRequest) -> Iterator[MakeSwitch]:
    """Makes switches: `p4_switch("program.json")` runs the program with ports 0 to 7 until the test ends.

    Other ports are arguments: `p4_switch("program.json", ports=[1, 2, 300, 510])`. A CPU port is an ordinary port.
    """
    from inakit.switch.program.bmv2_json import read_program  # noqa: PLC0415
    from inakit.switch.program.p4_source import compiled  # noqa: PLC0415
    from inakit.switch.testing.devices import open_device  # noqa: PLC0415, every run of pytest loads this file
    from inakit.switch.testing.packet_test import PacketTest  # noqa: PLC0415

    with ExitStack() as stack:

        def make(program: str | PathLike[str], ports: Iterable[int] = PORTS) -> PacketTest:
            path = compiled(Path(program))
            device = stack.enter_context(open_device(request.config.getoption("p4_target"), path, ports))
            return PacketTest(read_program(path), device)

        yield make
