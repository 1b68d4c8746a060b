"""The programs that `inakit shim` gives BMv2's names, as processes: how they start, and what their end leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_programs import PROGRAMS, packet
from tiers import long_unless
from veth_wires import Wires

from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.server.engines import VARIABLE
from inakit.switch.server.serve import make_shim

pytest.importorskip("thriftpy2")

CONTROL = PROGRAMS / "control.json"


def start(folder: Path, *arguments: str) -> SimpleSwitchProcess:
    """A process of `simple_switch`, when it takes requests."""
    port = free_port()
    program = str(make_shim() / "simple_switch")
    process = SimpleSwitchProcess("s1", [program, "--thrift-port", str(port), *arguments], port, folder / "log")
    process.wait_until_ready()
    return process


@contextmanager
def on_wires(folder: Path, wires: Wires, engine: str) -> Iterator[SimpleSwitchProcess]:
    """A process that runs control.p4 on all wires."""
    os.environ[VARIABLE] = engine
    try:
        process = start(folder, *(f"-i{port}@{name}" for port, name in wires.names.items()), str(CONTROL))
    finally:
        del os.environ[VARIABLE]
    try:
        yield process
    finally:
        process.stop()


def disciplines(interface: str) -> list[str]:
    """The queueing disciplines of an interface: a filter that stayed behind would need one."""
    shown = subprocess.run(["tc", "-j", "qdisc", "show", "dev", interface], check=True, capture_output=True).stdout
    return [each["kind"] for each in json.loads(shown)]


def passes(wires: Wires) -> bool:
    """Whether a packet from port 1 leaves by port 9, as control.p4 does without entries."""
    wires.send(1, packet(read_program(CONTROL), key=7))
    return len(wires.receive(9, 1, patience_s=0.5)) == 1


ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
"""How a switch ends; it takes SIGINT as SIGTERM."""


@pytest.mark.root
@pytest.mark.parametrize("how", [long_unless(how != signal.SIGINT, how) for how in ENDS])
@pytest.mark.parametrize("engine", ["kernel", long_unless(False, "interpreted")])
def test_nothing_of_a_switch_stays_however_it_ends(tmp_path: Path, engine: str, how: signal.Signals) -> None:
    with Wires((1, 9)) as wires:
        with on_wires(tmp_path, wires, engine) as process:
            assert passes(wires)
            os.kill(process.pid, how)
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not passes(wires)
        assert disciplines(wires.names[1]) == ["noqueue"]
        with on_wires(tmp_path, wires, engine):
            assert passes(wires)


def test_a_switch_without_ports_and_program_waits_for_one(tmp_path: Path) -> None:
    process = start(tmp_path, "--no-p4")
    try:
        os.kill(process.pid, signal.SIGTERM)
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None and (ended.si_code, ended.si_status) == (os.CLD_EXITED, 0)
    finally:
        process.stop()


def test_a_switch_that_cannot_start_says_why(tmp_path: Path) -> None:
    done = subprocess.run(
        [make_shim() / "simple_switch", "-i", "1@nowhere", str(tmp_path / "none.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "none.json cannot be opened" in done.stderr
