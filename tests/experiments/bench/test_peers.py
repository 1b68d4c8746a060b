"""`inakit bench --peers`: the flows that all simulators move, what is read from them, and why one is skipped."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.table import Table

from inakit.experiments.bench.peers import (
    ROUTES,
    Moved,
    Peer,
    bench_peers,
    flows_of,
    htsim,
    htsim_command,
    ndp_packets,
    ns3,
    pairs,
    peers,
    peers_table,
)
from inakit.experiments.bench.virtual_time import bench_virtual
from inakit.experiments.run.console import Screen
from inakit.experiments.run.planning import plan_to_run
from inakit.topo.errors import RunError

PROBLEM = pairs(4, hops=9_600)
PREPARED = plan_to_run(PROBLEM, ROUTES, 0)
HOPS = sum(flow.packets * (len(flow.path) - 1) for flow in flows_of(PREPARED))

RECORDED = """\
Starting simulation
Flow ndp_108_72 flow_id 2 finished at 88.9115 total bytes 524000
.Done
New: {} Rtx: 0 Bounced: 0
"""


def test_every_host_sends_to_one_other_and_gets_as_much_back() -> None:
    flows = flows_of(PREPARED)
    assert sorted(flow.path[0] for flow in flows) == sorted(host.name for host in PROBLEM.fabric.hosts)
    assert {flow.packets for flow in flows} == {100}  # 9,600 hops, 8 pairs, 2 ways, up to 6 links
    ends = {(flow.path[0], flow.path[-1]) for flow in flows}
    assert ends == {(last, first) for first, last in ends}


@pytest.mark.compiler
def test_virtual_time_moves_these_flows() -> None:
    assert bench_virtual(PROBLEM, ROUTES).hops == HOPS


def cells_of(table: Table) -> list[list[str]]:
    """The cells of each row."""
    return [list(map(str, row)) for row in zip(*(column.cells for column in table.columns), strict=True)]


def program(folder: Path, text: str) -> str:
    """A Python program that prints `text`."""
    file = folder / "htsim_ndp"
    file.write_text(f"#!{sys.executable}\nprint({text!r})\n")
    file.chmod(0o755)
    return str(file)


def test_htsim_gets_a_matrix_of_the_flows(tmp_path: Path) -> None:
    command = htsim_command("htsim_ndp", PREPARED, 100, tmp_path)
    assert command[command.index("-nodes") + 1] == "16"
    first, second, *rows = (tmp_path / "flows.cm").read_text().splitlines()
    assert (first, second, len(rows)) == ("Nodes 16", "Connections 16", 16)
    assert all(row.endswith(f"start 0 size {100 * 262}") for row in rows)  # 64 bytes of a packet's 326 are a header


def test_each_packet_of_htsim_counts_with_its_acknowledgement(tmp_path: Path) -> None:
    assert ndp_packets(RECORDED.format(256_000)) == 256_000
    assert htsim(program(tmp_path, RECORDED.format(1600)), PREPARED).hops == 2 * HOPS
    with pytest.raises(RunError, match=r"htsim sent 1599 packets: the flows have 1600"):
        htsim(program(tmp_path, RECORDED.format(1599)), PREPARED)
    with pytest.raises(RunError, match="7 packets again"):
        ndp_packets("New: 1600 Rtx: 7 Bounced: 0\n")
    with pytest.raises(RunError, match=r"give --htsim the file of htsim_ndp"):
        htsim(program(tmp_path, "help"), PREPARED)


@pytest.mark.skipif(find_spec("ns") is not None, reason="ns-3 is installed")
def test_a_python_without_ns3_says_so() -> None:
    with pytest.raises(RunError, match=r"has no ns-3: No module named 'ns'"):
        ns3(sys.executable, PREPARED)


@pytest.mark.skipif(find_spec("ns") is None, reason="ns-3 is not installed: pip install 'inakit[peers]'")
def test_ns3_moves_the_same_flows() -> None:
    assert ns3(sys.executable, PREPARED).hops == HOPS


def test_a_missing_simulator_is_skipped_with_its_reason() -> None:
    skipped = {peer.name: peer.skipped for peer in peers(4, sys.executable, None)}
    assert skipped["virtual"] is None
    assert skipped["htsim"] is not None
    assert "give --htsim FILE" in skipped["htsim"]


def test_ratios_are_those_of_medians() -> None:
    def none() -> Moved:
        raise RunError("it is broken")

    first = Peer("virtual", "ours", none, [Moved(300, 1.0), Moved(300, 0.1), Moved(300, 1.5)])
    other = Peer("htsim", "NDP", none, [Moved(100, 1.0), Moved(100, 2.0), Moved(100, 0.5)])
    broken = Peer("ns-3", "UDP", none)
    broken.take_round()
    assert cells_of(peers_table(4, [first, other, broken])) == [
        ["virtual", "300", "300", "1.00", "ours"],
        ["htsim", "100", "100", "3.00", "NDP"],
        ["ns-3", "-", "-", "-", "skipped: it is broken"],
    ]


@pytest.mark.compiler
def test_simulators_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that prints no figures is skipped after its first round; the others go on."""
    monkeypatch.setattr("inakit.experiments.bench.peers.HOPS", 960)
    monkeypatch.setattr("inakit.experiments.bench.peers.datacentre", lambda _: PROBLEM)
    monkeypatch.setattr("inakit.experiments.bench.peers.bmv2", lambda: Moved(1, 1.0))
    rows = cells_of(bench_peers(Screen(quiet=True), 4, sys.executable, program(tmp_path, "help"), rounds=2))
    assert [row[0] for row in rows] == ["virtual", "virtual, INA", "ns-3", "htsim", "bmv2"]
    assert float(rows[0][3]) == 1
    assert rows[3][4].startswith("skipped: htsim printed no line")
