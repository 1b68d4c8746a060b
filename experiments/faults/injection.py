"""Carries out a fault plan on a running network, and records what has happened."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Any, Self

from inakit.experiments.faults.fault_plan import Event, FaultPlan, Link
from inakit.experiments.worlds.world import Beside, LiveNetwork
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.background_entries import Flow, background_routes, flow_links, with_background
from inakit.planner.install.fault_entries import doubled_by_hosts, with_faults
from inakit.switch.entries import Entries, SwitchEntries
from inakit.topo.errors import RunError
from inakit.traffic.collectives.layout import lay_out_plan
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.faults.background import background_traffic
from inakit.traffic.faults.endpoint_faults import FaultyPorts, with_shares
from inakit.traffic.faults.hostile import hostile_traffic
from inakit.traffic.measure.counters import difference
from inakit.traffic.measure.fidelity import Excuses, dropped_by_queues
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.runs.closed_loop import ClosedLoop
from inakit.traffic.sockets.ports import Ports, RepeatedFrames
from inakit.traffic.wire.packet_format import Event as PacketEvent


def faulty_entries(problem: Problem, plan: Plan, installed: Entries, faults: FaultPlan) -> Entries:
    """The `installed` entries of a plan, and those that the faults and the background traffic need."""
    routed = with_background(problem, installed, background_routes(problem, plan, flows_of(problem, faults)))
    return with_faults(problem.fabric, routed, faults.links, faults.seed)


def flows_of(problem: Problem, faults: FaultPlan) -> tuple[Flow, ...]:
    """The flows of IPv4 packets that are not INA: background traffic, and hostile packets disguised as such."""
    servers = {job.number: job.servers for job in problem.jobs}
    disguised = (Flow(each.host, server, each.rate_bps) for each in faults.hostile for server in servers[each.job])
    return (*faults.background, *disguised)


@dataclass(frozen=True)
class Scene:
    """The run to interfere with. `installed` are the entries in the network's switches, made by `faulty_entries`."""

    network: LiveNetwork
    problem: Problem
    plan: Plan
    installed: Entries


class Injection:
    """The faults of one run, as `Interference` of the closed loop. A context manager: leaving it ends its traffic."""

    def __init__(self, scene: Scene, faults: FaultPlan) -> None:
        self.scene, self.faults = scene, faults
        self.pending = list(faults.events)
        self.happened = [str(attack) for attack in faults.hostile]
        self.moments: list[dict[str, Any]] = []
        self.ports: FaultyPorts
        self.beside: Beside
        self._work: list[Future[None]] = []
        # Events of one switch may overlap, but its control plane handles one at a time.
        self._turns = {name: threading.Lock() for name in scene.network.switches}
        self._keepers: Counter[Link] = Counter()
        self._changing = threading.Lock()
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.scene.network.repeating(tuple(self.traffic())))
            self.beside = stack.enter_context(self.scene.network.beside())
            self._resources = stack.pop_all()
        return self

    def traffic(self) -> Iterator[RepeatedFrames]:
        """What background flows and hostile hosts send."""
        hosts = self.scene.network.hosts
        yield from background_traffic(hosts, self.faults.background)
        layout = lay_out_plan(self.scene.problem, self.scene.plan, hosts)
        yield from hostile_traffic(hosts, layout, self.faults.hostile, self.faults.seed)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()
        if isinstance(error, RunError) and self.happened:
            raise RunError(f"{error}. The faults file had this happen before: {'; '.join(self.happened)}") from error
        if error is None:
            self.check(all_work=True)

    # -- as `Interference`

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """The layout with the stragglers' rates, and ports at which hosts can fall silent and send packets twice."""
        if self.faults.stragglers is not None:
            layout = with_shares(layout, self.faults.stragglers.shares(layout.problem))
        doubled = doubled_by_hosts(self.scene.problem.fabric, self.faults.links)
        self.ports = FaultyPorts(ports, [host.name for host in layout.hosts], doubled, self.faults.seed)
        return layout, self.ports

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Apply every fault event whose time has come."""
        self.check()
        for event in [event for event in self.pending if event.at.has_come(loop, now)]:
            self.pending.remove(event)
            self.happened.append(f"{event} at {now - loop.started_at:.2f} s")
            self.moments.append(
                {
                    "kind": event.kind,
                    "nodes": list(event.nodes),
                    "at_s": now - loop.started_at,
                    "lasting_s": event.lasting_s,
                }
            )
            ACTIONS[event.kind](self, event, loop, now)

    def next_due(self, loop: ClosedLoop) -> float:
        """The earliest time of an event, to within roundings."""
        return min((event.at.next_due(loop) for event in self.pending), default=inf)

    def check(self, *, all_work: bool = False) -> None:
        """Raise the error of an event that failed. With `all_work`, wait until all events are done."""
        for work in self._work:
            if all_work or work.done():
                work.result()

    # -- what the events do

    def take_down(self, event: Event, _loop: ClosedLoop, _now: float) -> None:
        """Take a link down, at an end that is a switch."""
        near, far = event.nodes if event.nodes[0] in self.scene.network.switches else event.nodes[::-1]
        self.without_links(near, [far], event.lasting_s, lambda: None)

    def restart(self, event: Event, loop: ClosedLoop, now: float) -> None:
        """Restart a switch, which loses its registers, or a parameter server, which loses its sums."""
        name, lasting_s = event.nodes[0], event.lasting_s or 0.0
        if name in self.scene.network.switches:
            peers = self.scene.problem.fabric.neighbors[name]
            self.without_links(name, peers, lasting_s, lambda: self.wipe(name))
        else:
            self.ports.silence(name, now + lasting_s)
            loop.servers.restart(self.ports.index[name])

    def pause(self, event: Event, _loop: ClosedLoop, now: float) -> None:
        """Let a host neither send nor hear anything, for a time or for good."""
        self.ports.silence(event.nodes[0], now + (inf if event.lasting_s is None else event.lasting_s))

    def without_links(self, node: str, peers: Sequence[str], lasting_s: float | None, act: Callable[[], None]) -> None:
        """Take links of a switch down, call `act`, and take the links up again, while the run goes on.

        They are up again after `lasting_s` seconds; for None, after the run.
        """

        def begin() -> None:
            with self._turns[node]:
                self.keep_down(node, peers, 1)
                act()

        self._work.append(self.beside.during(begin, lasting_s, lambda: self.keep_down(node, peers, -1)))

    def keep_down(self, node: str, peers: Sequence[str], more: int) -> None:
        """Add `more` to the number of events that keep these links down. A link is up when no event keeps it down."""
        with self._changing:
            for peer in peers:
                link = min((node, peer), (peer, node))
                before = self._keepers[link]
                self._keepers[link] += more
                if 0 in (before, before + more):
                    self.set_link(link, up=before > 0)

    def set_link(self, link: Link, *, up: bool) -> None:
        """Take a link up or down. A host at a link that is down is silent: it neither sends nor receives.

        Otherwise the link would refuse what the host sends, and the host would learn of the loss at once. The host
        falls silent before the link goes down, and stays so until the link is up.
        """
        hosts = set(link) & self.scene.problem.fabric.host_names
        for host in () if up else hosts:
            self.ports.cut(host, off=True)
        self.scene.network.set_link(*link, up=up)
        for host in hosts if up else ():
            self.ports.cut(host, off=False)

    def wipe(self, name: str) -> None:
        """Reset the registers of a switch whose links are down, once it has processed its last packet."""
        self.scene.network.settle(name)
        switch = self.scene.network.switches[name]
        switch.wipe()
        switch.install(SwitchEntries(name, registers=self.scene.installed.of(name).registers))

    # -- what the faults mean for the verdict and the record

    def excuses(self) -> Excuses:
        """What these faults explain, so that it does not count against the run's verdict."""
        fabric = self.scene.problem.fabric
        flows = flows_of(self.scene.problem, self.faults)
        routes = background_routes(self.scene.problem, self.scene.plan, flows)
        links: list[Link] = [link for flow in flows for link in flow_links(self.scene.problem, routes, flow)]
        # The kernel also sees what arrives at a switch's port, and drops its copy of a frame of an unknown protocol.
        links += [(fabric.tor_of(attack.host), attack.host) for attack in self.faults.hostile]
        for event in self.faults.events:
            if event.kind == "down":
                links += [event.nodes, event.nodes[::-1]]  # type: ignore[list-item]
            elif event.nodes[0] in fabric.switch_by_name:
                links += [link for link in fabric.capacities_bps if event.nodes[0] in link]
        hosts = {event.nodes[0] for event in self.faults.events if event.kind in ("pause", "kill")}
        if flows or self.faults.stragglers:  # a link has less room than planned, or all wait for the slowest
            hosts |= {worker for job in self.scene.problem.jobs for worker in job.workers}
        return Excuses(
            frozenset(self.scene.network.interface_name(*link) for link in links),
            frozenset(hosts),
            rates=True,
            congestion=bool(self.faults.links or self.faults.events),
            hostile=bool(self.faults.hostile),
        )

    def as_json(self, monitor: Monitor) -> dict[str, Any]:
        """The injected faults for `run.json`: counts of packets, the events that happened, and those that did not.

        `moments` has the events that happened with their time, in seconds from the start of the run.
        """
        counts = dict(injected(monitor))
        counts["doubled_by_hosts"] = int(self.ports.doubled.sum())
        counts["lost_at_silent_hosts"] = int(self.ports.unheard.sum())
        counts["dropped_by_queues"] = dropped_by_queues(monitor)
        stragglers = self.faults.stragglers
        return {
            "counts": counts,
            "events": self.happened,
            "moments": self.moments,
            "not_reached": [str(event) for event in self.pending],
            "rate_shares": {} if stragglers is None else stragglers.shares(self.scene.problem),
        }


ACTIONS: Mapping[str, Callable[[Injection, Event, ClosedLoop, float], None]] = {
    "down": Injection.take_down,
    "restart": Injection.restart,
    "pause": Injection.pause,
    "kill": Injection.pause,
}


def injected(monitor: Monitor) -> Iterator[tuple[str, int]]:
    """How many packets all switches received, and how many of them each kind of fault happened to."""
    changes = [(monitor.before.switches[name], after) for name, after in monitor.after.switches.items()]
    events = [difference(before.events, after.events) for before, after in changes]
    yield "received", sum(sum(difference(before.received, after.received).values()) for before, after in changes)
    yield "lost_on_arrival", sum(counted[PacketEvent.LOST] for counted in events)
    yield "lost_on_departure", sum(sum(difference(before.lost, after.lost).values()) for before, after in changes)
    yield "held", sum(counted[PacketEvent.HELD] for counted in events)
    yield "overtaken", sum(counted[PacketEvent.OVERTAKEN] for counted in events)
    yield "doubled", sum(counted[PacketEvent.DOUBLED] for counted in events)
