"""Captures: tcpdump's counts, the ports that a user names, and reports of losses. `test_inside` tests the contents."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from command import children, inakit, nothing_left
from rich.console import Console
from scapy.utils import rdpcap

from inakit.experiments.inspect.capture import Capture, Counts, capture_places, counts, warn_of_losses
from inakit.topo.errors import InputError, RunError
from inakit.topo.fabric.generators import aro_figure1
from inakit.traffic.wire.scapy_layers import INA

FINAL = "3 packets captured\n7 packets received by filter\n4 packets dropped by kernel\n"
PROCESSORS = sorted(os.sched_getaffinity(0))


def test_counts_are_the_last_that_tcpdump_said() -> None:
    line = "tcpdump: 1 packet captured, 2 packets received by filter, 0 packets dropped by kernel\n"
    assert counts(line) == Counts(1, 2, 0)
    assert counts(line + FINAL) == Counts(3, 7, 4)
    assert counts(FINAL).offered == 3
    assert counts("tcpdump: no such device") == Counts()


def test_places_are_ports_that_have_a_link() -> None:
    fabric = aro_figure1()
    assert capture_places(fabric, "s1:2, s1,l1:1") == (("s1", 2), ("s1", 1), ("s1", 3), ("s1", 4), ("l1", 1))
    assert capture_places(fabric, "") == ()
    with pytest.raises(InputError, match="unknown switch 's7': "):
        capture_places(fabric, "s1,s7:1")
    for port in ("9", "x", ""):
        with pytest.raises(InputError, match=f"switch 's1' has no link at port '{port}': it has 1, 2, 3, 4"):
            capture_places(fabric, f"s1:{port}")


def test_losses_are_told_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_losses(Console(), "aro", {"s1-1": Counts(5, 5, 0), "s1-2": counts(FINAL)})
    assert capsys.readouterr().out == "aro/pcap/s1-2.pcap: 3 packets, 4 LOST: tcpdump was too slow for them\n"


@pytest.mark.root
@pytest.mark.beside
def test_an_interface_that_is_not_there_is_named(tmp_path: Path) -> None:
    before = children()
    with pytest.raises(RunError, match=r"interface 'no-such-one': .*No such device"):
        Capture("no-such-one", tmp_path / "x.pcap", PROCESSORS)
    assert children() == before


@pytest.mark.root
@pytest.mark.beside
def test_a_tcpdump_that_fails_is_an_error(tmp_path: Path) -> None:
    with Capture("lo", tmp_path / "x.pcap", PROCESSORS) as capture:
        capture.process.send_signal(signal.SIGKILL)
        capture.process.wait()
        with pytest.raises(RunError, match=r"tcpdump failed, and .*/x\.pcap is not complete"):
            capture.stop()


@pytest.mark.root
@pytest.mark.beside
def test_a_run_keeps_the_packets_that_it_was_asked_for(tmp_path: Path) -> None:
    arguments = ("--topo", "aro-figure1", "--planners", "aro", "--capacity", "2M", "--gradient-bytes", "25600")
    with nothing_left():
        answer = inakit(
            "emulate", *arguments, "--switch", "fast", "--iterations", "1", "--pcap", "s1:1,l1", at=tmp_path
        )
    assert answer.code in (0, 1), answer
    folder = tmp_path / "results" / "latest"
    captures = json.loads((folder / "run.json").read_text())["planners"]["aro"]["captures"]
    assert {f"{name}.pcap" for name in captures} == {path.name for path in (folder / "aro" / "pcap").iterdir()}
    assert set(captures) == {"s1-1", "l1-1", "l1-2", "l1-3", "l1-4"}
    for name, found in captures.items():
        packets = rdpcap(str(folder / "aro" / "pcap" / f"{name}.pcap"))
        assert found == {"captured": len(packets), "received": len(packets), "dropped": 0}
        assert len(packets) >= (200 if name == "s1-1" else 0)
        assert all(INA in packet for packet in packets)


@pytest.mark.root
@pytest.mark.beside
def test_a_run_that_is_asked_for_unknown_ports_leaves_nothing(tmp_path: Path) -> None:
    answer = inakit("emulate", "--topo", "aro-figure1", "--pcap", "s1:9", at=tmp_path)
    assert (answer.code, "no link at port '9'" in answer.error) == (2, True)
    assert list(tmp_path.iterdir()) == []
