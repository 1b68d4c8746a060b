"""Lab 2's tests in PTF's form, on a `simple_switch` at veths, as those who teach PTF run them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from inakit.experiments.labs.grading.p4c import read_archive
from inakit.experiments.labs.grading.teacher import program_in
from inakit.experiments.labs.registry import COURSE, TEACHER
from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_files import fill_switch
from inakit.switch.control.simple_switch_cli import CommandedSwitch
from inakit.switch.testing.ptf_platform import ptf_script

PORTS = (3, 4, 5)
TESTS = COURSE / "2-sum" / "ptf"


@contextmanager
def veths() -> Iterator[dict[int, tuple[str, str]]]:
    """For each port a veth pair: the switch's end and the test's."""
    pairs = {port: (f"labptf{port}a", f"labptf{port}b") for port in PORTS}
    with ExitStack() as stack:
        for one, other in pairs.values():
            run("ip", "link", "add", one, "type", "veth", "peer", "name", other)
            stack.callback(run, "ip", "link", "del", one)
            for end in (one, other):
                run("sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
                run("ip", "link", "set", end, "up")
        yield pairs


def run(*command: str) -> None:
    subprocess.run(command, check=True)


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.long
def test_lab_2_in_the_form_of_ptf_on_simple_switch(tmp_path: Path) -> None:
    from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port  # noqa: PLC0415
    from inakit.switch.bmv2.thrift_client import Runtime  # noqa: PLC0415

    program = tmp_path / "sum.json"
    source = TEACHER / "2-sum" / "solutions" / "sum.p4"
    program.write_text(program_in(read_archive(TEACHER / "2-sum"), source.read_text(), "sum.p4"))
    with veths() as pairs:
        thrift = free_port()
        attached = [part for port, (own, _) in pairs.items() for part in ("-i", f"{port}@{own}")]
        command = ["simple_switch", *attached, "--thrift-port", str(thrift), str(program)]
        process = SimpleSwitchProcess("switch", command, thrift, tmp_path / "log")
        try:
            process.wait_until_ready()
            fill_switch(TESTS / "commands.txt", CommandedSwitch(ControlPlane(Runtime(thrift, program))))
            tested = [part for port, (_, far) in pairs.items() for part in ("-i", f"{port}@{far}")]
            ptf = [sys.executable, ptf_script(), "--test-dir", str(TESTS), *tested]
            done = subprocess.run(ptf, check=False, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            process.stop()
