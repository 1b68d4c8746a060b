"""Measures how much exercises of others forward on BMv2 and on the kit's switches, and prints the ratio.

    python tests/third_party/throughput.py FOLDER LIST.yml [--only TEXT,...] [--python FOLDER]

Measured are the exercises of the list that say between which hosts traffic flows (`traffic: [h1, h2]`), first on BMv2
and then on the shim: TCP by iperf3, in bit/s, and the smallest UDP packets, in packets/s. These are sent at rates that
double until no more arrive; the highest rate that arrives counts, so that a sender does not starve the switch. It needs
what `exercises.py` needs, iperf3, tcpdump and tcpreplay, and a machine that does nothing else.
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
FIRST_RATE_PPS = 8000
MOST_RATES = 10
SHARE = 0.7
"""A rate is the last one that is tried if no more than this share of it arrives."""


@dataclass(frozen=True)
class Throughput:
    """What arrived: bit/s of TCP, and packets/s of small ones."""

    tcp_bps: float
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
        """Both measurements; a ping goes first, so that hosts know each other."""
        self.run(f"{self.one} ping -c 3 -i 0.2 {self.other}")
        return Throughput(self.tcp_bps(), self.small_pps())

    def tcp_bps(self) -> float:
        """What arrives of one TCP connection, in bit/s."""
        self.run(f"{self.other} iperf3 -s -D > /dev/null 2>&1")
        self.run("sh sleep 1")
        self.run(f"{self.one} iperf3 -c {self.other} -t {SECONDS} -J > tcp.json")
        said = self.run("sh cat tcp.json")
        report = json.loads(said[said.index("{") : said.rindex("}") + 1])
        return float(report["end"]["sum_received"]["bits_per_second"])

    def small_pps(self) -> float:
        """The most small packets that arrive in a second."""
        self.keep_one()
        best = 0.0
        for doubled in range(MOST_RATES):
            rate = FIRST_RATE_PPS << doubled
            arrived = self.arriving(rate)
            best = max(best, arrived)
            if arrived < SHARE * rate:
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

    def arriving(self, rate_pps: int) -> float:
        """How many packets a second arrive when so many are sent."""
        before = self.received()
        replay = f"timeout {2 * SECONDS} tcpreplay -q -i {FIRST_INTERFACE} -K --pps={rate_pps}"
        self.run(f"{self.one} {replay} --loop={rate_pps * SECONDS} one.pcap > /dev/null 2>&1")
        self.run("sh sleep 1")
        return (self.received() - before) / SECONDS

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
    yield from (f"{bmv2.tcp_bps / 1e6:,.1f}", f"{shim.tcp_bps / 1e6:,.1f}", f"{shim.tcp_bps / bmv2.tcp_bps:.0f}")
    yield from (f"{bmv2.small_pps:,.0f}", f"{shim.small_pps:,.0f}", f"{shim.small_pps / bmv2.small_pps:.0f}")


def main() -> None:
    """Measure all exercises of a list that have traffic, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", default="", help="texts, one of which must be in an exercise's name")
    parser.add_argument("--python", type=Path, default=Path(sys.executable).parent, help="the folder of their python3")
    given = parser.parse_args()
    wanted = [text for text in given.only.split(",") if text]
    table = Table("exercise", "BMv2 Mbit/s", "shim Mbit/s", "times", "BMv2 packets/s", "shim packets/s", "times")
    for exercise in read_list(given.list):
        if exercise.traffic and (not wanted or any(text in exercise.name for text in wanted)):
            folder, python = given.folder.resolve(), given.python.absolute()
            table.add_row(*row(exercise, {on: measured(exercise, folder, on, python) for on in (BMV2, SHIM)}))
    Screen(width=160).print(table)


if __name__ == "__main__":
    main()
