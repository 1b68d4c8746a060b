"""Measures how much exercises of others forward on BMv2 and on the kit's switches, and prints the ratios.

    python tests/third_party/throughput.py FOLDER LIST.yml [--only TEXT,...] [--python FOLDER]

Measured are the exercises of the list that say between which hosts traffic flows (`traffic: [h1, h2]`), first on BMv2
and then on the shim: TCP by iperf3, in bit/s, and the smallest UDP packets, in packets/s. TCP is also measured over a
cable between the same hosts, of the same MTU and offloads, while the switch stands still: no switch can carry more.
Small packets arrive at rates that double until no more leave, and the highest rate that leaves counts. A host sends
them; what one process cannot send the kernel makes at the switch's port (`small_packets.py`); and the host that
they leave to does not take them in. So neither host is what is measured. It needs what `exercises.py` needs, iperf3,
tcpdump, tcpreplay, clang, and a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exercise_list import Exercise, read_list
from exercise_trials import BMV2, CHECK_S, COLOURS, SHIM, START_S, prepared
from rich.console import Console as Screen
from rich.table import Table
from sandbox import Console, make_tools

SECONDS = 4
FIRST_INTERFACE = "$(ls /sys/class/net | grep eth0)"
"""The name of a host's first interface, as its shell finds it."""
OFFLOADS = {"rx": "rx-checksumming", "tx": "tx-checksumming", "sg": "scatter-gather"}
"""Those that networks switch off, by ethtool's names for commands and in answers."""
CABLE, CABLE_NETWORK = "cable", "192.168.250"
SOMEBODY_ELSE = "02:00:00:00:00:99"
ROOT = Path(__file__).resolve().parents[2]
FIRST_RATE_PPS = 8000
MOST_RATES = 10
MOST_SENT_PPS = 128_000
"""Higher rates are made by the kernel, which waits between packets and leaves a switch less time than a sender does."""
SHARE = 0.7
"""A rate is the last one that is tried if no more than this share of it arrives."""


@dataclass(frozen=True)
class Throughput:
    """What arrived: bit/s of TCP by the switch and by a cable, and packets/s of small ones."""

    tcp_bps: float
    cable_bps: float
    small_pps: float


@dataclass(frozen=True)
class Traffic:
    """Traffic from host `one` to host `other`, by lines of a network's command line."""

    console: Console
    one: str
    other: str

    def run(self, line: str) -> str:
        """What the network says to a line."""
        return COLOURS.sub("", self.console.run(line, CHECK_S))

    def measure(self) -> Throughput:
        """All measurements; a ping goes first, so that hosts know each other."""
        self.run(f"{self.one} ping -c 3 -i 0.2 {self.other}")
        tcp_bps = self.tcp_bps(self.run(f"py {self.other}.IP()").split()[-1])
        return Throughput(tcp_bps, self.cable_bps(), self.small_pps())

    def tcp_bps(self, address: str) -> float:
        """What arrives at an address of `other` by one TCP connection, in bit/s."""
        self.run(f"{self.other} iperf3 -s -D > /dev/null 2>&1")
        self.run("sh sleep 1")
        self.run(f"{self.one} iperf3 -c {address} -t {SECONDS} -J > tcp.json")
        said = self.run("sh cat tcp.json")
        report = json.loads(said[said.index("{") : said.rindex("}") + 1])
        return float(report["end"]["sum_received"]["bits_per_second"])

    def cable_bps(self) -> float:
        """What arrives by a cable between both hosts, in bit/s."""
        one, other = (self.run(f"{host} echo $$").split()[-1] for host in (self.one, self.other))
        self.run(f"sh ip link add {CABLE} netns {one} type veth peer name {CABLE} netns {other}")
        for number, host in enumerate((self.one, self.other), start=1):
            off = [name for name, said in OFFLOADS.items() if f"{said}: off" in self.offloads(host)]
            self.run(f"{host} ethtool --offload {CABLE} {' '.join(f'{name} off' for name in off)}")
            self.run(f"{host} ip link set {CABLE} mtu $(cat /sys/class/net/*eth0/mtu) up")
            self.run(f"{host} ip address add {CABLE_NETWORK}.{number}/24 dev {CABLE}")
        return self.tcp_bps(f"{CABLE_NETWORK}.2")

    def offloads(self, host: str) -> str:
        """What ethtool says of a host's first interface."""
        return self.run(f"{host} ethtool --show-offload {FIRST_INTERFACE}")

    def small_pps(self) -> float:
        """The most small packets that leave in a second."""
        self.keep_one()
        self.run(f"{self.other} ip link set {FIRST_INTERFACE} address {SOMEBODY_ELSE}")
        best = 0.0
        for doubled in range(MOST_RATES):
            rate = FIRST_RATE_PPS << doubled
            left = self.leaving(rate)
            best = max(best, left)
            if left < SHARE * rate:
                break
        return best

    def keep_one(self) -> None:
        """Keep a small packet to `other`, with the addresses that a packet of its first link has, in a pcap file."""
        keep = f"timeout 10 tcpdump -Z root -i {FIRST_INTERFACE} -c 1 -w one.pcap udp and dst port 9"
        self.run(f"{self.one} {keep} > /dev/null 2>&1 &")
        self.run("sh sleep 2")
        address = self.run(f"py {self.other}.IP()").split()[-1]
        self.run(f"{self.one} echo > /dev/udp/{address}/9")
        self.run("sh sleep 1")

    def leaving(self, rate_pps: int) -> float:
        """How many packets leave to `other` in a second when so many arrive from `one`."""
        before = self.received()
        took_s = self.sent(rate_pps) if rate_pps <= MOST_SENT_PPS else self.made(rate_pps)
        self.run("sh sleep 1")
        return (self.received() - before) / took_s

    def sent(self, rate_pps: int) -> float:
        """Let `one` send for `SECONDS` at this rate; returns how many seconds it took."""
        loops = f"--pps={rate_pps} --loop={rate_pps * SECONDS}"
        said = self.run(f"{self.one} tcpreplay -i {FIRST_INTERFACE} -K {loops} one.pcap 2>&1")
        return float(said.partition("sent in ")[2].split()[0])

    def made(self, rate_pps: int) -> float:
        """Let so many packets arrive from `one` in `SECONDS`; returns how many seconds it took."""
        script = f"env PYTHONPATH={ROOT} {sys.executable} {ROOT}/tests/third_party/small_packets.py"
        return float(self.run(f"sh {script} {self.port()} one.pcap {rate_pps} {SECONDS}").split()[-1])

    def port(self) -> str:
        """The switch's interface of the link to `one`."""
        link = f"{self.one}.intfList()[0].link"
        return self.run(f"py {link}.intf2.name if {link}.intf1.node is {self.one} else {link}.intf1.name").split()[-1]

    def received(self) -> int:
        """How many packets have come to `other`."""
        said = self.run(f"{self.other} cat /sys/class/net/*eth0/statistics/rx_packets")
        return int(said.split()[-1])


def measured(exercise: Exercise, folder: Path, switch: str, python: Path) -> Throughput:
    """Run an exercise's network, prepare it as its list says, and measure it."""
    assert exercise.traffic is not None
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        tools = [make_tools(Path(scratch, "tools")), python]
        work, path = prepared(exercise, folder, switch, Path(scratch, "copy"), tools)
        with Console(["sh", "-c", exercise.start], work, path, exercise.environment) as console:
            console.read(START_S)
            for line in exercise.before_traffic:
                console.run(line, CHECK_S)
            return Traffic(console, *exercise.traffic).measure()


def row(exercise: Exercise, found: dict[str, Throughput]) -> Iterator[str]:
    """The cells of one exercise."""
    bmv2, shim = found[BMV2], found[SHIM]
    yield exercise.name
    yield from (f"{bps / 1e6:,.0f}" for bps in (bmv2.tcp_bps, shim.tcp_bps, shim.cable_bps))
    yield from (f"{bps / bmv2.tcp_bps:.1f}" for bps in (shim.tcp_bps, shim.cable_bps))
    yield from (f"{bmv2.small_pps:,.0f}", f"{shim.small_pps:,.0f}", f"{shim.small_pps / bmv2.small_pps:.0f}")


COLUMNS = (
    *("exercise", "BMv2 Mbit/s", "shim Mbit/s", "cable Mbit/s", "shim times", "cable times"),
    *("BMv2 packets/s", "shim packets/s", "times"),
)


def main() -> None:
    """Measure all exercises of a list that have traffic, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", default="", help="texts, one of which must be in an exercise's name")
    parser.add_argument("--python", type=Path, default=Path(sys.executable).parent, help="the folder of their python3")
    given = parser.parse_args()
    wanted = [text for text in given.only.split(",") if text]
    table = Table(*COLUMNS)
    for exercise in read_list(given.list):
        if exercise.traffic and (not wanted or any(text in exercise.name for text in wanted)):
            folder, python = given.folder.resolve(), given.python.absolute()
            table.add_row(*row(exercise, {on: measured(exercise, folder, on, python) for on in (BMV2, SHIM)}))
    Screen(width=180).print(table)


if __name__ == "__main__":
    main()
