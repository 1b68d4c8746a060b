"""Fixtures: the switches under test, each started once. With `--record`, simple_switch's answers are kept."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator

import pytest
from inkernel import running_in_kernel
from inprocess import InProcess
from recorded import Recorder
from sequences import PacketSwitch

from inakit.switch.program.bmv2_json import read_program
from inakit.traffic.wire.packet_format import PROGRAM, TERMINAL, Event

OUTCOMES = pytest.StashKey[Counter[Event]]()
"""Which of the terminal outcomes a packet had, exactly one; what happened on the way there besides."""


@pytest.fixture(scope="session")
def in_process() -> InProcess:
    """The embedded switch in this process."""
    if shutil.which("clang") is None and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    return InProcess(read_program(PROGRAM))


@pytest.fixture(scope="session")
def in_kernel() -> Iterator[PacketSwitch]:
    """The embedded switch in the kernel."""
    with running_in_kernel(read_program(PROGRAM)) as switch:
        yield switch


@pytest.fixture(scope="session")
def bmv2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PacketSwitch]:
    """The reference; with `--record`, its answers become the corpus if no test has failed."""
    from reference import running_reference  # noqa: PLC0415, needs p4-utils, as only this fixture does

    with running_reference(tmp_path_factory.mktemp("bmv2")) as reference:
        if not request.config.getoption("record"):
            yield reference
            return
        recorder = Recorder(reference, test_name)
        yield recorder
    if not request.session.testsfailed:
        recorder.write()


@pytest.fixture(
    params=[
        "in_process",
        pytest.param("in_kernel", marks=pytest.mark.root),
        pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
    ]
)
def switch(request: pytest.FixtureRequest) -> PacketSwitch:
    """Each of the switches in turn."""
    chosen: PacketSwitch = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture(scope="session")
def outcomes(pytestconfig: pytest.Config) -> Counter[Event]:
    """How often each outcome happened to the random packets on which switches were compared."""
    return pytestconfig.stash.setdefault(OUTCOMES, Counter())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print on how many random packets switches were compared."""
    counted = config.stash.get(OUTCOMES, Counter())
    packets = sum(counted[event] for event in TERMINAL)
    if packets:
        terminalreporter.write_line(f"switches compared on {packets:,} random packets")


def test_name() -> str:
    """The function of the test that runs."""
    return os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition("[")[0].split()[0]
