"""Looking into a running network from outside: dumps, captures; the same on every target."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ENTRY, TIMEOUT_S, inakit
from numpy.typing import NDArray
from orphans import TIED

pytest.importorskip("mininet", reason="needs Mininet")

from scapy.utils import rdpcap
from typer.testing import CliRunner, Result

from inakit.experiments.cli.app import app
from inakit.experiments.inspect.capture import capturing, file_of
from inakit.experiments.inspect.top import Sampler, rates
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import entries
from inakit.switch.entries import Entries
from inakit.switch.targets import choose_target
from inakit.topo.errors import InputError
from inakit.topo.live.network import Network
from inakit.traffic.closed_loop import ReliableOptions, run_reliable
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.sockets.ports import host_ports
from inakit.traffic.wire.packet_format import FRAGMENT, Kind
from inakit.traffic.wire.scapy_layers import INA, Values

pytestmark = [pytest.mark.root, pytest.mark.beside]

REPOSITORY = Path(__file__).resolve().parents[3]
TARGETS = ("fast", pytest.param("bmv2", marks=pytest.mark.bmv2))
SWITCH = "s1"
"""The switch that sums what three of its ports receive, and sends the sums towards the PS (ARO, Fig. 1)."""
FRAGMENTS = 100


@dataclass(frozen=True)
class Lively:
    """A network that is up, with a plan installed."""

    target: str
    network: Network
    problem: Problem
    plan: Plan
    installed: Entries
    sent: Counter[str] = field(default_factory=Counter)

    @property
    def id(self) -> str:
        return self.network.ledger.id

    def send(self) -> None:
        """Run one iteration: all gradients and results. Its sequence numbers follow those of the last one."""
        options = ReliableOptions(WorkerOptions(first_seq=self.sent.total()))
        self.sent.update(fragments=FRAGMENTS)
        measured = run_reliable(host_ports(self.network.hosts.values()), self.problem, self.plan, options=options)
        assert measured.exact

    def counter(self, name: str) -> NDArray[np.int64]:
        packets: NDArray[np.int64] = self.network.switches[SWITCH].read_counter(name)[0].astype(np.int64)
        return packets

    def invoke(self, *arguments: str) -> Result:
        """Run a command in this process, which takes less time than a process of its own."""
        return CliRunner().invoke(app, [*arguments, "--run", self.id], env={"COLUMNS": None})


@pytest.fixture(scope="module", params=TARGETS)
def lively(request: pytest.FixtureRequest) -> Iterator[Lively]:
    with a_network(request.param) as network:
        problem, plan, installed = planned()
        for name, switch in network.switches.items():
            switch.install(installed.of(name))
        yield Lively(request.param, network, problem, plan, installed)


def planned() -> tuple[Problem, Plan, Entries]:
    """ARO's plan for ARO's first figure, and its entries."""
    problem = build_problem(
        FabricChoice("aro-figure1", capacity="2M"), JobChoice(gradient_bytes=256 * FRAGMENTS, iterations=1)
    )
    plan = make_plan(problem, "aro", seed=0)
    return problem, plan, entries(problem, plan)


def a_network(target: str) -> Network:
    return Network(planned()[0].fabric, choose_target(target).node_class())


def test_a_dump_is_what_was_installed_and_counted(lively: Lively, tmp_path: Path) -> None:
    lively.send()
    answer = inakit("dump", SWITCH, "--format", "json", "--run", lively.id, at=tmp_path)
    assert answer.code == 0, answer
    found, installed = json.loads(answer.output), lively.installed.of(SWITCH)
    tables = [
        (name, tuple(e["key"]), e["action"], tuple(e["params"])) for name, es in found["tables"].items() for e in es
    ]
    assert sorted(tables) == sorted((e.table, e.key, e.action, e.params) for e in installed.tables)
    assert found["groups"] == {str(group.group): sorted(group.ports) for group in installed.groups}
    for name in ("InaIngress.events", "InaIngress.received", "InaEgress.sent"):
        counted = {str(index): count for index, count in enumerate(lively.counter(name)) if count}
        assert {index: element["packets"] for index, element in found["counters"][name].items()} == counted
    sums = lively.network.switches[SWITCH].read_register("InaIngress.sum63")
    shown = {int(index): value for index, value in found["registers"]["InaIngress.sum63"].items()}
    assert shown == {int(index): int(sums[index]) for index in np.flatnonzero(sums)}
    assert shown


def test_a_dump_is_short_enough_to_read(lively: Lively) -> None:
    lively.send()
    answer = lively.invoke("dump", SWITCH)
    lines = answer.output.splitlines()
    assert len(lines) < 120
    assert [line for line in lines if len(line) >= 165] == []
    for shown in (
        "table InaIngress.aggregation: 8 entries",
        "aggregate(child=1, full=7, first_slot=0, ",
        "75 registers: ",
        " slots hold a fragment",
        "sum0..63",
        "completed",
        "port 1 (l0)",
    ):
        assert shown in answer.output


def test_one_part_of_a_dump_goes_by_its_short_name(lively: Lively) -> None:
    answer = lively.invoke(
        "dump", SWITCH, "--format", "json", "--table", "forward", "--register", "InaIngress.slot_seq"
    )
    found = json.loads(answer.output)
    assert list(found["tables"]) == ["InaIngress.forward"]
    assert list(found["registers"]) == ["InaIngress.slot_seq"]
    assert found["counters"] == found["groups"] == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dump", "s11"), "unknown switch of network '{id}' (aro-figure1) 's11': did you mean 's1'"),
        (("dump", "s1", "--table", "agregation"), "unknown table 'agregation': did you mean 'aggregation'"),
        (("dump", "s1", "--counter", "InaIngress.event"), "did you mean 'InaIngress.events'"),
        (("capture", "s1", "9", "--output", "x.pcap"), "has no link at port 9: it has 1 (to l0), 2 (to l1)"),
        (("capture", "s1", "1"), "give --output a .pcap file, or --print, or both"),
        (("capture", "s1", "1", "--output", "x.txt"), "output 'x.txt': a name that ends in .pcap is expected"),
        (("capture", "s1", "1", "--output", "x.pcap", "--packets", "0"), "packets 0: a number greater than 0"),
        (("top", "--interval", "0"), "interval 0: at least 0.1 s is expected"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(
    lively: Lively, arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = lively.invoke(*arguments)
    assert isinstance(answer.exception, InputError)
    assert message.format(id=lively.id) in str(answer.exception)
    assert list(tmp_path.iterdir()) == []


def test_captures_have_every_packet_once_as_it_was_on_the_wire(lively: Lively, tmp_path: Path) -> None:
    ports = [port for switch, port in places(lively) if switch == SWITCH]
    before = {name: lively.counter(name) for name in ("InaIngress.received", "InaEgress.sent")}
    with capturing(lively.network, [(SWITCH, port) for port in ports], tmp_path) as captured:
        lively.send()
    passed = {name: lively.counter(name) - count for name, count in before.items()}
    arriving: dict[int, Any] = defaultdict(lambda: np.zeros(64, np.int64))
    leaving: dict[int, Any] = {}
    for port in ports:
        packets = rdpcap(str(file_of((SWITCH, port), tmp_path)))
        counts = captured[f"{SWITCH}-{port}"]
        assert (counts.captured, counts.dropped) == (len(packets), 0)
        assert len(packets) == sum(count[port] for count in passed.values())
        kinds = Counter(packet[INA].kind for packet in packets)
        assert kinds == {Kind.GRADIENT: FRAGMENTS, Kind.RESULT: FRAGMENTS}
        for packet in packets:
            if packet[INA].kind == Kind.GRADIENT:
                values = np.array([packet[Values].getfieldval(f"v{i}") for i in range(64)], np.int64)
                if port == 1:
                    leaving[packet[INA].seq] = values
                else:
                    arriving[packet[INA].seq] += values
    assert leaving.keys() == arriving.keys()
    assert all((leaving[seq] == arriving[seq]).all() for seq in leaving)


def places(lively: Lively) -> list[tuple[str, int]]:
    return sorted((node, port) for (node, _), port in lively.problem.fabric.port_numbers.items())


def start_capture(network: Network, file: Path | None, *arguments: str) -> subprocess.Popen[str]:
    """Start `inakit capture` at port 1, and return when it captures."""
    output = () if file is None else ("--output", str(file))
    command = ["capture", SWITCH, "1", *output, "--run", network.ledger.id, *arguments]
    process = subprocess.Popen(
        [*TIED, sys.executable, "-u", "-c", ENTRY, *command], env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert "capturing at port 1 of s1, which leads to l0" in process.stdout.readline()
    return process


def test_a_capture_of_another_process_ends_after_its_packets(lively: Lively, tmp_path: Path) -> None:
    process = start_capture(lively.network, tmp_path / "new" / "x.pcap", "--packets", "30")
    lively.send()
    output, error = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, error
    assert output == f"{tmp_path}/new/x.pcap: 30 packets, none lost\n"
    assert len(rdpcap(str(tmp_path / "new" / "x.pcap"))) == 30


def test_a_capture_prints_packets_while_they_come_as_scapy_reads_them(lively: Lively) -> None:
    process = start_capture(lively.network, None, "--print")
    lively.send()
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(30)]
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()  # `communicate` would lose what `readline` has read ahead
    _, error = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, error
    form = re.compile(  # where the machine lets a worker wait, it asks
        r"[\d:]{8}\.\d{6} Ether / [\d.]+ > [\d.]+ udp / UDP / INA ((gradient|result)|question) job 1 tree \d+ "
        r"label \d+ seq \d+ workers \d+( [A-Z+]+)?(?(2) / 64 values( -?\d+){4} \.\.\.)\n"
    )
    *others, last = rest.splitlines(keepends=True)
    assert [line for line in (*lines, *others) if not form.fullmatch(line)] == []
    assert last == f"port 1: {len(lines) + len(others)} packets, none lost\n"


def test_a_capture_ends_after_its_time(lively: Lively, tmp_path: Path) -> None:
    process = start_capture(lively.network, tmp_path / "x.pcap", "--duration", "0.2")
    output, error = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, "packets, none lost" in output) == (0, True), error


def test_a_capture_ends_with_its_network(tmp_path: Path) -> None:
    with a_network("fast") as network:
        process = start_capture(network, tmp_path / "x.pcap")
    output, error = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, "packets, none lost" in output) == (0, True), error


def test_top_prints_one_interval_where_there_is_no_terminal(lively: Lively, tmp_path: Path) -> None:
    answer = inakit("top", "--run", lively.id, "--interval", "0.2", at=tmp_path)
    assert answer.code == 0, answer
    for (node, peer), _ in lively.problem.fabric.port_numbers.items():
        assert f"{node} → {peer} " in answer.output
    assert f"aro-figure1: 6 switches, 6 hosts; network {lively.id}" in answer.output
    assert re.search(r"^CPU 0 +endpoints.* idle +\d+%  softirq +\d+%  drops \d+$", answer.output, re.MULTILINE)


def test_top_sees_what_is_sent(lively: Lively) -> None:
    facts = lively.network.facts()
    with Sampler(facts) as sampler:
        before = sampler.sample()
        lively.send()
        after = sampler.sample()
    found = rates(facts, before, after)
    seconds = after.at_s - before.at_s
    links = {(link.sender, link.receiver): link for link in found.links}
    for pair in (("w0", "l1"), ("l1", "s1"), ("s1", "l0"), ("l0", "ps"), ("ps", "l0"), ("s1", "l1"), ("l1", "w0")):
        link = links[pair]
        assert link.rate_bps * seconds / 8 == pytest.approx(FRAGMENTS * FRAGMENT.wire_bytes)
        assert (link.load, link.drops) == (link.rate_bps / 2e6, 0)
    switch = next(switch for switch in found.switches if switch.name == SWITCH)
    assert (switch.in_pps * seconds, switch.out_pps * seconds) == pytest.approx((4 * FRAGMENTS, 4 * FRAGMENTS))


def test_top_in_a_terminal_ends_with_its_network() -> None:
    """`inakit top` updates a terminal of 80 by 24 characters until the network is gone."""
    with a_network("fast") as network:
        arguments = [sys.executable, "-c", ENTRY, "top", "--run", network.ledger.id, "--interval", "0.1"]
        process, terminal = in_a_terminal(arguments)
        shown = read_until(terminal, b"idle")
    shown += read_until(terminal, None)
    assert process.wait(timeout=TIMEOUT_S) == 0
    assert f"network {network.ledger.id}" in shown.decode()
    assert "Traceback" not in shown.decode()


def in_a_terminal(arguments: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """A process on a terminal of its own, and the terminal's other end."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "TERM": "xterm"}
    process = subprocess.Popen([*TIED, *arguments], env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    return process, ours


def read_until(terminal: int, word: bytes | None) -> bytes:
    """What a terminal shows until `word`, or, for None, until nobody writes to it any more."""
    shown = b""
    while word is None or word not in shown:
        assert select.select([terminal], [], [], TIMEOUT_S)[0], shown
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # nobody has the other end any more
            assert word is None, shown
            break
    return shown
