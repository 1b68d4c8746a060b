"""A pytest plugin for whoever grades or tests P4: a switch, its ports, its tables; no network and no root.

    def test_forwards(p4_switch):
        switch = p4_switch("build/router.json")
        switch.table("ipv4_lpm").add({"dstAddr": "10.0.1.0/24"}, "forward", port=2)
        switch.send(1, Ether() / IP(dst="10.0.1.9", ttl=64))
        switch.expect(2, Ether() / IP(dst="10.0.1.9", ttl=63))
        switch.expect_nothing_else()

Names may be as short as is clear, values are those of STF (`0x0a**`, `10.0.1.0/24`, `V&&&MASK`, `LOW..HIGH`).
`pytest --p4-target bmv2` plays the same tests on BMv2 (as root).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from switch.testing.packet_test import PacketTest

PORTS = range(8)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--p4-target`, which chooses what runs the programs under test."""
    group = parser.getgroup("p4", "switches under test")
    group.addoption("--p4-target", default="fast", help="what runs P4 programs: fast, kernel or bmv2")


@pytest.fixture
def p4_switch(request: pytest.FixtureRequest) -> Iterator[Callable[[str | PathLike[str]], PacketTest]]:
    """Makes switches: `p4_switch("program.json")` runs the program with ports 0 to 7 until the test ends."""
    from switch.program.read import read_program  # noqa: PLC0415
    from switch.standalone.devices import open_device  # noqa: PLC0415, every run of pytest loads this file
    from switch.testing.packet_test import PacketTest  # noqa: PLC0415

    with ExitStack() as stack:

        def make(program: str | PathLike[str]) -> PacketTest:
            path = Path(program)
            device = stack.enter_context(open_device(request.config.getoption("p4_target"), path, PORTS))
            return PacketTest(read_program(path), device)

        yield make
