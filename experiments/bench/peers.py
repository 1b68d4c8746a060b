"""`inakit bench --peers`: packet-hops per second of one processor, beside other simulators, in one run.

All simulate the same fat-tree and the same flows: pairs of hosts drawn at random, of which one sends packets to the
other and gets as many back, on one path, at a planned rate. virtual runs them as jobs of one worker and one PS. A
packet-hop is a packet that has crossed a link. Simulators take turns, and the table has the medians of their rounds, so
that a machine with other work changes their ratios little.

What each leaves out is in `Peer.model`: ratios are those of packets moved, not of equal models.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from inakit.experiments.bench.switch_rates import WORKLOADS, Case, measure_case
from inakit.experiments.bench.virtual_time import CAPACITY, Speed, bench_virtual, datacentre, most_hops
from inakit.experiments.run.console import NARROW, figures, names, working
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.scenario import FabricChoice
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.switch.targets import TARGETS
from inakit.topo.errors import InakitError, RunError
from inakit.topo.fabric.fabric import QUEUE_PACKETS
from inakit.traffic.wire.packet_format import FRAGMENT

ROUTES = "geryon"
"""The planner of the flows: a path for each by ECMP's hash, and no sums in switches."""
HOPS, ROUNDS, TIMEOUT_S = 3_000_000, 3, 1200
ACKNOWLEDGED = 2
"""The packets of htsim's NDP for each data packet: itself, and its acknowledgement. htsim does not count its pulls."""
NDP_HEADER_BYTES = 64
NEW_PACKETS = re.compile(r"^New: (\d+) Rtx: (\d+)", re.MULTILINE)


def pairs(k: int, hops: int | None = None, seed: int = 0) -> Problem:
    """The flows: jobs of one worker and one PS that together use all hosts of a fat-tree, of at most `hops` hops."""
    fabric = FabricChoice("fattree", k, capacity=CAPACITY).build()
    hosts = [host.name for host in fabric.hosts]
    random.Random(seed).shuffle(hosts)
    count = len(hosts) // 2
    size = 4 * FRAGMENT.values * max(1, (hops or HOPS) // (2 * 6 * count))
    jobs = (Job(1 + n, (hosts[2 * n],), (hosts[2 * n + 1],), size) for n in range(count))
    return Problem(fabric, tuple(jobs), FRAGMENT)


@dataclass(frozen=True)
class Flow:
    """`packets` from the first node of a path to its last one, `interval_s` from one to the next."""

    path: tuple[str, ...]
    packets: int
    interval_s: float


def flows_of(prepared: Prepared) -> list[Flow]:
    """The flows of a plan whose jobs have one worker: gradients, and results on the same path."""
    problem, found = prepared.problem, []
    for job, each in zip(problem.jobs, prepared.plan.trees, strict=True):
        (branch,) = each.tree.branches
        packets, interval_s = problem.fragment.count(job.gradient_bytes), 8 * FRAGMENT.wire_bytes / each.rate_bps
        found += [Flow(path, packets, interval_s) for path in (branch.path, branch.path[::-1])]
    return found


@dataclass(frozen=True)
class Moved:
    """Packet-hops, and the seconds of one processor that they took."""

    hops: int
    seconds: float

    @property
    def rate(self) -> float:
        """Packet-hops per second."""
        return self.hops / self.seconds


@dataclass
class Peer:
    """A simulator: what its model is, how one round is measured, and the rounds so far, or why it is skipped."""

    name: str
    model: str
    measure: Callable[[], Moved]
    rounds: list[Moved] = field(default_factory=list)
    skipped: str | None = None

    def take_round(self) -> None:
        """Measure one round; an error ends all rounds of this simulator."""
        if self.skipped is None:
            try:
                self.rounds.append(self.measure())
            except InakitError as error:
                self.skipped = str(error)


def answer_of(command: Sequence[str], given: str = "", folder: Path | None = None) -> tuple[str, float]:
    """The standard output of a program, and its processor seconds. Raises `RunError` with its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=folder
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{command[0]}: {error}") from error
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise RunError(f"{Path(command[0]).name} ended with code {done.returncode}: {last}")
    return done.stdout, sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))


# -- The simulators.


def ns3(python: str, prepared: Prepared) -> Moved:
    """One round of ns-3 in the interpreter `python`; setting up its network does not count. Raises `RunError`."""
    fabric = prepared.problem.fabric
    rows = [
        [link.a, link.b, fabric.capacities_bps[link.a, link.b], link.delay_s, QUEUE_PACKETS] for link in fabric.links
    ]
    flows = [[flow.path, flow.packets, FRAGMENT.wire_bytes, flow.interval_s] for flow in flows_of(prepared)]
    script = Path(__file__).with_name("ns3_flows.py")
    output, _ = answer_of([python, str(script)], json.dumps({"links": rows, "flows": flows}))
    found = json.loads(output.splitlines()[-1])
    if found["lost"]:
        raise RunError(f"ns-3 lost {found['lost']} packets of flows that keep to their links' rates")
    return Moved(found["hops"], found["run_s"])


def htsim(binary: str, prepared: Prepared) -> Moved:
    """One round of htsim's NDP; the time of a run with one packet a flow, its set-up, does not count."""
    flows = flows_of(prepared)
    seconds = {}
    for packets in (1, flows[0].packets):
        with tempfile.TemporaryDirectory() as folder:
            output, seconds[packets] = answer_of(
                htsim_command(binary, prepared, packets, Path(folder)), folder=Path(folder)
            )
    sent = ndp_packets(output)
    if sent != sum(flow.packets for flow in flows):
        raise RunError(f"htsim sent {sent} packets: the flows have {sum(flow.packets for flow in flows)}")
    hops = ACKNOWLEDGED * sum(flow.packets * (len(flow.path) - 1) for flow in flows)
    return Moved(hops, seconds[flows[0].packets] - seconds[1])


def htsim_command(binary: str, prepared: Prepared, packets: int, folder: Path) -> list[str]:
    """Write the matrix of the flows, each of `packets`, to a folder, and return the command that simulates it there."""
    fabric, flows = prepared.problem.fabric, flows_of(prepared)
    number = {host.name: place for place, host in enumerate(fabric.hosts)}
    payload = FRAGMENT.wire_bytes - NDP_HEADER_BYTES
    lines = [f"Nodes {len(number)}", f"Connections {len(flows)}"]
    for place, flow in enumerate(flows, start=1):
        ends = f"{number[flow.path[0]]}->{number[flow.path[-1]]}"
        lines.append(f"{ends} id {place} start 0 size {packets * payload}")
    matrix = folder / "flows.cm"
    matrix.write_text("\n".join(lines) + "\n")
    rate_bps = min(fabric.capacities_bps.values())
    longest_s = max(packets * flow.interval_s for flow in flows) + 1e-3
    options = {
        "-o": folder / "log", "-strat": "ecmp_host", "-paths": 128, "-nodes": len(number), "-tm": matrix,
        "-linkspeed": f"{rate_bps / 1e6:.0f}", "-mtu": payload, "-q": QUEUE_PACKETS, "-cwnd": 50, "-hop_latency": 0,
        "-end": f"{2e6 * longest_s:.0f}",
    }  # fmt: skip
    return [binary, *(str(word) for option in options.items() for word in option)]


def ndp_packets(output: str) -> int:
    """The data packets of a run of htsim. Raises `RunError` if it printed none, or sent some again."""
    found = NEW_PACKETS.search(output)
    if found is None:
        raise RunError("htsim printed no line 'New: ... Rtx: ...': give --htsim the file of htsim_ndp")
    new, again = map(int, found.groups())
    if again:
        raise RunError(f"htsim sent {again} packets again, whose hops it does not count")
    return new


def bmv2() -> Moved:
    """One round of BMv2: forwarding by one switch between hosts, on all processors for one second."""
    rates = measure_case(Case(TARGETS["bmv2"], 1, WORKLOADS[0])).rates
    return Moved(round(most_hops(rates)["bmv2"]), 1.0)


def moved(speed: Speed) -> Moved:
    """The whole run of a network in virtual time, its endpoints included."""
    return Moved(speed.hops, speed.run_s)


def peers(k: int, python: str, binary: str | None) -> list[Peer]:
    """All simulators, this kit's own first; those that are not on this machine are skipped."""
    prepared = plan_to_run(pairs(k), ROUTES, 0)
    found = [
        Peer(
            "virtual",
            "P4 switches, sums of real integers at PSs checked, windows, recovery; no TCP",
            lambda: moved(bench_virtual(prepared.problem, ROUTES)),
        ),
        Peer(
            "virtual, INA",
            "the same with sums in switches: one job of all hosts",
            lambda: moved(bench_virtual(datacentre(k))),
        ),
        Peer(
            "ns-3",
            "UDP over IPv4 without contents, sums, switches' programs or recovery",
            lambda: ns3(python, prepared),
        ),
        Peer(
            "htsim",
            "NDP: data and acknowledgements without contents; no P4 switch, no sums; own rates and paths",
            lambda: htsim(binary or "", prepared),
        ),
        Peer("bmv2", "one P4 switch in real time, on all processors; another network", bmv2),
    ]
    by_name = {peer.name: peer for peer in found}
    if binary is None:
        by_name[
            "htsim"
        ].skipped = "there is no htsim_ndp in PATH: build github.com/Broadcom/csg-htsim, and give --htsim FILE"
    by_name["bmv2"].skipped = TARGETS["bmv2"].missing() or (None if os.geteuid() == 0 else "it needs root")
    return found


def bench_peers(console: Console, k: int, python: str | None, binary: str | None, rounds: int = ROUNDS) -> Table:
    """Measure all simulators in turn, `rounds` times, and return their table."""
    found = peers(k, python or sys.executable, binary or shutil.which("htsim_ndp"))
    for number in range(1, rounds + 1):
        for peer in found:
            with working(console, f"round {number} of {rounds}: {peer.name}"):
                peer.take_round()
    return peers_table(k, found)


def peers_table(k: int, found: Sequence[Peer]) -> Table:
    """A row for each simulator: the median of its packet-hops per second, and the first one's ratio to it."""
    table = Table(
        *names("simulator"),
        *figures("packet-hops", "packet-hops/s", "the first : it"),
        "model",
        title=f"Packet-hops per second of one processor, fat-tree of k={k}, links of {CAPACITY}",
        caption="medians of rounds in turn; htsim's pulls, at most one for each data packet, are not in its hops",
        caption_justify="left",
        **NARROW,
    )
    first = found[0].rounds and median(each.rate for each in found[0].rounds)
    for peer in found:
        if peer.skipped is not None or not peer.rounds:
            table.add_row(peer.name, "-", "-", "-", f"skipped: {peer.skipped}")
            continue
        rate = median(each.rate for each in peer.rounds)
        ratio = f"{first / rate:.2f}" if first else "-"
        table.add_row(peer.name, f"{peer.rounds[0].hops:,}", f"{rate:,.0f}", ratio, peer.model)
    return table
