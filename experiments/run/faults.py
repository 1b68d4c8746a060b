"""Injected faults as interferences of a run: lossy links, failures, slow workers, and other traffic."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from math import inf
from typing import Self

from inakit.experiments.run.interference import Interference, Scene
from inakit.experiments.run.record import InterferenceRecord, Moment
from inakit.experiments.worlds.world import Beside, Feature, LiveNetwork
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import (
    Faults,
    Flow,
    background_routes,
    doubled_by_hosts,
    flow_links,
    with_background,
    with_faults,
)
from inakit.planner.prepared import Prepared
from inakit.switch.entries import Entries
from inakit.switch.running_switch import restart
from inakit.topo.fabric.fabric import DirectedLink
from inakit.topo.files.quantities import in_words
from inakit.traffic.closed_loop import ClosedLoop
from inakit.traffic.collectives.rank_data import lay_out_plan
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.faults.attacks import Attack, hostile_traffic
from inakit.traffic.faults.background import background_traffic
from inakit.traffic.faults.endpoint_faults import FaultyHosts, Stragglers, with_shares
from inakit.traffic.measure.counters import difference
from inakit.traffic.measure.fidelity import Excuses, dropped_by_queues
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.sockets.ports import RepeatedFrames
from inakit.traffic.wire.packet_format import Event as PacketEvent


def workers_of(problem: Problem) -> frozenset[str]:
    return frozenset(worker for job in problem.jobs for worker in job.workers)


@dataclass(frozen=True)
class When:
    """The time of an event: `seconds` after the start of the run or, if that is None, the beginning of an iteration.

    `job` is the position of the iteration's job in the problem. Iterations and positions count from 0.
    """

    seconds: float | None = None
    iteration: int = 0
    job: int = 0

    def has_come(self, loop: ClosedLoop, now: float) -> bool:
        """Whether the event is due at the time `now` of the run's clock, in seconds."""
        if self.seconds is None:
            return (self.job, self.iteration) in loop.begun
        return now >= loop.started_at + self.seconds

    def next_due(self, loop: ClosedLoop) -> float:
        """The time at which the event is due, unless an iteration begins earlier."""
        if self.seconds is None:
            return -inf if (self.job, self.iteration) in loop.begun else inf
        return loop.started_at + self.seconds

    def never_before(self, other: When) -> bool:
        """Whether it is certainly not before the other time: unknown of iterations and seconds, and of two jobs."""
        if self.seconds is not None and other.seconds is not None:
            return self.seconds >= other.seconds
        both = self.seconds is None and other.seconds is None and self.job == other.job
        return both and self.iteration >= other.iteration

    def __str__(self) -> str:
        return f"iteration {self.iteration}" if self.seconds is None else f"{self.seconds:g} s"


@dataclass(frozen=True)
class Span:
    """The time in which a background flow sends; None: from the beginning, or to the end."""

    begin: When | None = None
    end: When | None = None

    def __str__(self) -> str:
        bounds = (("from", self.begin), ("to", self.end))
        return "".join(f" {word} {bound}" for word, bound in bounds if bound is not None)


ALWAYS = Span()


@dataclass
class Timed:
    """A background flow that begins or ends during a run, beside it. `context` holds it until the run ends."""

    flow: Flow
    span: Span
    network: LiveNetwork
    context: ExitStack
    started: Future[None] | None = None
    stopped: Future[None] | None = None

    def act(self, loop: ClosedLoop, now: float, beside: Beside) -> None:
        """Begin or end if the time has come."""
        self.check()
        if self.started is None and (self.span.begin is None or self.span.begin.has_come(loop, now)):
            frames = tuple(background_traffic(self.network.hosts, (self.flow,)))
            self.started = beside.during(partial(self.start, frames), 0.0, lambda: None)
        elif self.started and not self.stopped and self.span.end and self.span.end.has_come(loop, now):
            self.stopped = beside.during(self.stop, 0.0, lambda: None)

    def start(self, frames: tuple[RepeatedFrames, ...]) -> None:
        self.halt = self.context.enter_context(self.network.repeating(frames))

    def stop(self) -> None:
        assert self.started is not None
        self.started.result()
        self.halt()

    def next_due(self, loop: ClosedLoop) -> float:
        due = self.span.begin if self.started is None else self.span.end if self.stopped is None else None
        return inf if due is None else due.next_due(loop)

    def check(self) -> None:
        """Raise the error of a beginning or an end that failed."""
        for work in (self.started, self.stopped):
            if work is not None and work.done():
                work.result()


@dataclass
class OtherTraffic(Interference):
    """Packets that belong to no job: `background` flows, and packets of `hostile` hosts, drawn from `seed`.

    `spans`: the time of each background flow; without them, all send during the whole run.
    """

    background: tuple[Flow, ...] = ()
    hostile: tuple[Attack, ...] = ()
    seed: int = 0
    spans: tuple[Span, ...] = ()
    timed: list[Timed] = field(default_factory=list, init=False)
    beside: Beside = field(init=False)
    needs = (Feature.TRAFFIC,)

    def slowed(self, scale: float) -> OtherTraffic:
        """The traffic at `scale` times its rates."""
        background = tuple(replace(each, rate_bps=each.rate_bps * scale) for each in self.background)
        hostile = tuple(replace(each, rate_bps=each.rate_bps * scale) for each in self.hostile)
        return OtherTraffic(background, hostile, self.seed, self.spans)

    def flows(self, problem: Problem) -> tuple[Flow, ...]:
        """The flows of IPv4 packets other than INA: background traffic, and hostile packets disguised as such."""
        servers = {job.number: job.servers for job in problem.jobs}
        disguised = (Flow(each.host, server, each.rate_bps) for each in self.hostile for server in servers[each.job])
        return (*self.background, *disguised)

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:
        """The entries, extended by those that forward the flows."""
        problem, plan = prepared.problem, prepared.plan
        return with_background(problem, installed, background_routes(problem, plan, self.flows(problem)))

    def excuses(self, scene: Scene) -> Excuses:
        """Excuse late workers, because links have less free capacity than planned, and queues that fill, as for losses.

        Interfaces on the flows' links can drop packets too.
        """
        problem, fabric = scene.prepared.problem, scene.prepared.problem.fabric
        flows = self.flows(problem)
        routes = background_routes(problem, scene.prepared.plan, flows)
        links = [link for flow in flows for link in flow_links(problem, routes, flow)]
        # The kernel also sees what arrives at a switch's port, and drops its copy of a frame of an unknown protocol.
        links += [(fabric.tor_of(attack.host), attack.host) for attack in self.hostile]
        interfaces = frozenset(scene.network.interface_name(*link) for link in links)
        hosts = workers_of(problem) if flows else frozenset[str]()
        return Excuses(interfaces, hosts, rates=True, congestion=True, hostile=bool(self.hostile))

    @contextmanager
    def acting(self, scene: Scene) -> Iterator[Self]:
        """Send the traffic until the block ends, each background flow in its time."""
        with super().acting(scene) as own, ExitStack() as stack:
            stack.enter_context(scene.network.repeating(tuple(own.frames())))
            own.timed = [
                Timed(flow, span, scene.network, stack.enter_context(ExitStack()))
                for flow, span in own.in_time()
                if span != ALWAYS
            ]
            if own.timed:
                own.beside = stack.enter_context(scene.network.beside())
            yield own
        for each in own.timed:
            each.check()

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Begin and end the background flows whose time has come."""
        for each in self.timed:
            each.act(loop, now, self.beside)

    def next_due(self, loop: ClosedLoop) -> float:
        """The earliest time at which a background flow begins or ends."""
        return min((each.next_due(loop) for each in self.timed), default=inf)

    def in_time(self) -> Iterator[tuple[Flow, Span]]:
        yield from zip(self.background, chain(self.spans, repeat(ALWAYS)), strict=False)

    def frames(self) -> Iterator[RepeatedFrames]:
        """Yield the frames of hostile hosts, and of the background flows that send during the whole run."""
        hosts, prepared = self.scene.network.hosts, self.scene.prepared
        yield from background_traffic(hosts, [flow for flow, span in self.in_time() if span == ALWAYS])
        layout = lay_out_plan(prepared.problem, prepared.plan, hosts)
        yield from hostile_traffic(hosts, layout, self.hostile, self.seed)

    def happened(self) -> Sequence[str]:
        """The attacks, which last for the whole run."""
        return [str(attack) for attack in self.hostile]

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The flows, the attacks, and the number of packets that queues dropped."""
        missed = [(each.flow, each.span) for each in self.timed if each.started is None]
        flows = [
            f"{'not reached: ' * (each in missed)}{each[0].source} sends {each[0].rate_bps / 1e6:g} Mbit/s to "
            f"{each[0].destination}{each[1]}"
            for each in self.in_time()
        ]
        attacks = [Moment(text=str(each), nodes=[each.host], at_s=None, lasting_s=None) for each in self.hostile]
        dropped = dropped_by_queues(monitor)
        return InterferenceRecord(
            kind="other traffic",
            said=[*flows, *self.happened(), f"queues of switches dropped {dropped:,} packets"],
            moments=attacks,
            counts={"dropped_by_queues": dropped},
        )


@dataclass
class SlowWorkers(Interference):
    """Workers that send below their planned rates."""

    stragglers: Stragglers

    def excuses(self, scene: Scene) -> Excuses:
        """Excuse late workers, because all workers wait for the slowest one."""
        return Excuses(hosts=workers_of(scene.prepared.problem), rates=True)

    def prepare(self, layout: StreamLayout) -> StreamLayout:
        return with_shares(layout, self.stragglers.shares(layout.problem))

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        _ = monitor
        shares = self.stragglers.shares(self.scene.prepared.problem)
        said = f"workers send at {min(shares.values()):.0%} to {max(shares.values()):.0%} of their planned rates"
        return InterferenceRecord(kind="slow workers", said=[said], details={"rate_shares": shares})


@dataclass
class LossyLinks(Interference):
    """Links that lose, delay or duplicate INA packets; `seed` decides which."""

    links: Faults
    seed: int = 0

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:
        """The entries, extended by those of the faults."""
        return with_faults(prepared.problem.fabric, installed, self.links, self.seed)

    def excuses(self, scene: Scene) -> Excuses:
        """Excuse unplanned rates, and queues that fill because packets are sent again."""
        _ = scene
        return Excuses(rates=True, congestion=True)

    def begin(self, loop: ClosedLoop) -> None:
        """Let hosts send some packets twice."""
        self.hosts = FaultyHosts(loop, doubled_by_hosts(loop.layout.problem.fabric, self.links), self.seed)

    def happened(self) -> Sequence[str]:
        """The greatest loss, which lasts for the whole run."""
        most = max((each.drop for each in self.links.values()), default=0.0)
        return [f"links lose up to {100 * most:g} % of their packets"] if most else []

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The number of packets that all switches received, and the number hit by each kind of fault."""
        changes = [(monitor.before.switches[name], after) for name, after in monitor.after.switches.items()]
        events = [difference(before.events, after.events) for before, after in changes]
        names = {"held": PacketEvent.HELD, "overtaken": PacketEvent.OVERTAKEN, "doubled": PacketEvent.DOUBLED}
        counts = {
            "received": sum(sum(difference(before.received, after.received).values()) for before, after in changes),
            "lost_on_arrival": sum(counted[PacketEvent.LOST] for counted in events),
            "lost_on_departure": sum(sum(difference(before.lost, after.lost).values()) for before, after in changes),
            **{name: sum(counted[event] for counted in events) for name, event in names.items()},
            "doubled_by_hosts": self.hosts.doubled,
            "dropped_by_queues": dropped_by_queues(monitor),
        }
        held, by_hosts = counts["held"] + counts["overtaken"], counts["doubled_by_hosts"]
        said = (
            f"of {counts['received']:,} packets that switches received {counts['lost_on_arrival']:,} were lost, "
            f"{held:,} held back, {counts['doubled']:,} doubled; "
            f"{counts['lost_on_departure']:,} were lost on the last hop, hosts sent {by_hosts:,} twice; "
            f"queues of switches dropped {counts['dropped_by_queues']:,}"
        )
        return InterferenceRecord(kind="lossy links", said=[said], counts=counts)


@dataclass(frozen=True)
class Event:
    """An event at `nodes`: one node, or the two ends of a link. `kind` is `down`, `restart`, `pause` or `kill`.

    `lasting_s` is its duration in seconds, None if the file gives none.
    """

    at: When
    kind: str
    nodes: tuple[str, ...]
    lasting_s: float | None = None

    @property
    def name(self) -> str:
        return f"{self.kind} {'-'.join(self.nodes)}"

    def __str__(self) -> str:
        return self.name + ("" if self.lasting_s is None else f" for {in_words(self.lasting_s, 's')}")


@dataclass
class Failures(Interference):
    """Links, switches and hosts that fail at given moments.

    `happened_at_s`: the events so far, with their times in seconds from the start of the run.
    """

    events: tuple[Event, ...]
    happened_at_s: list[tuple[Event, float]] = field(default_factory=list, init=False)

    def excuses(self, scene: Scene) -> Excuses:
        """Excuse drops at links that are down, and late hosts that are silent."""
        fabric, links = scene.prepared.problem.fabric, list[DirectedLink]()
        for event in self.events:
            if event.kind == "down":
                links += [event.nodes, event.nodes[::-1]]  # type: ignore[list-item]
            elif event.nodes[0] in fabric.switch_by_name:
                links += [link for link in fabric.capacities_bps if event.nodes[0] in link]
        interfaces = frozenset(scene.network.interface_name(*link) for link in links)
        silent = frozenset(node for nodes in (*links, *(event.nodes for event in self.events)) for node in nodes)
        return Excuses(interfaces, silent, rates=True, congestion=True)

    @contextmanager
    def acting(self, scene: Scene) -> Iterator[Self]:
        """Apply the events during the block. At its end, raise the error of an event that failed."""
        with super().acting(scene) as own:
            own.initialise(scene)
            with scene.network.beside() as own.beside:
                yield own
            own.check(all_work=True)

    def initialise(self, scene: Scene) -> None:
        self.scene, self.pending, self.happened_at_s = scene, list(self.events), []
        self.hosts: FaultyHosts
        self.beside: Beside
        self._work: list[Future[None]] = []
        # Events of one switch may overlap, but its control plane handles one at a time.
        self._turns = {name: threading.Lock() for name in scene.network.switches}
        self._keepers: Counter[DirectedLink] = Counter()
        self._changing = threading.Lock()

    def begin(self, loop: ClosedLoop) -> None:
        """Prepare to silence hosts."""
        self.hosts = FaultyHosts(loop)

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Apply every event whose time has come."""
        self.check()
        self.hosts.resume(now)
        for event in [event for event in self.pending if event.at.has_come(loop, now)]:
            self.pending.remove(event)
            self.happened_at_s.append((event, now - loop.started_at))
            self.apply(event, loop, now)

    def next_due(self, loop: ClosedLoop) -> float:
        """The earliest time of a pending event, or at which a host is heard again."""
        return min([self.hosts.next_due, *(event.at.next_due(loop) for event in self.pending)])

    def check(self, *, all_work: bool = False) -> None:
        """Raise the error of an event that failed. With `all_work`, first wait for all events."""
        for work in self._work:
            if all_work or work.done():
                work.result()

    def apply(self, event: Event, loop: ClosedLoop, now: float) -> None:
        """Take a link down at an end that is a switch; restart a switch or a server; silence a host.

        A switch that restarts loses its registers, a PS its sums. In virtual time switches without trees are lacking.
        """
        name, switches = event.nodes[0], self.scene.network.switches
        if not any(node in switches or node in self.hosts.index for node in event.nodes):
            return
        if event.kind == "down":
            near, far = event.nodes if name in switches else event.nodes[::-1]
            self.without_links(near, [far], event.lasting_s, lambda: None)
        elif event.kind == "restart" and name in switches:
            peers = self.scene.prepared.problem.fabric.neighbors[name]
            self.without_links(name, peers, event.lasting_s or 0.0, lambda: self.wipe(name))
        elif event.kind == "restart":
            self.hosts.silence(name, now + (event.lasting_s or 0.0))
            loop.endpoints.restart(self.hosts.index[name])
        else:
            self.hosts.silence(name, now + (inf if event.lasting_s is None else event.lasting_s))

    def without_links(self, node: str, peers: Sequence[str], lasting_s: float | None, act: Callable[[], None]) -> None:
        """Take links of a switch down, call `act`, and take the links up again, while the run continues.

        The links are up again after `lasting_s` seconds or, for None, after the run.
        """

        def begin() -> None:
            with self._turns[node]:
                self.keep_down(node, peers, 1)
                act()

        self._work.append(self.beside.during(begin, lasting_s, lambda: self.keep_down(node, peers, -1)))

    def keep_down(self, node: str, peers: Sequence[str], more: int) -> None:
        """Add `more` to the number of events that keep these links down. A link is up when this number is 0."""
        with self._changing:
            for peer in peers:
                link = min((node, peer), (peer, node))
                before = self._keepers[link]
                self._keepers[link] += more
                if 0 in (before, before + more):
                    self.set_link(link, up=before > 0)

    def set_link(self, link: DirectedLink, *, up: bool) -> None:
        """Take a link up or down. A host at a link that is down is silent: it neither sends nor receives.

        Otherwise the link would reject the host's packets, and the host would learn of the loss at once. The host
        becomes silent before the link goes down, and stays silent until the link is up.
        """
        hosts = set(link) & self.scene.prepared.problem.fabric.host_names
        for host in () if up else hosts:
            self.hosts.cut(host, off=True)
        self.scene.network.set_link(*link, up=up)
        for host in hosts if up else ():
            self.hosts.cut(host, off=False)

    def wipe(self, name: str) -> None:
        """Reset the registers of a switch whose links are down, after it has processed its last packet."""
        self.scene.network.settle(name)
        restart(self.scene.network.switches[name], self.scene.installed)

    def happened(self) -> Sequence[str]:
        """The events so far, with their times."""
        return [f"{event} at {in_words(at_s, 's', 3)}" for event, at_s in self.happened_at_s]

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The events that were applied, with their times, and the events that the run did not reach."""
        _ = monitor
        moments = [
            Moment(text=event.name, nodes=list(event.nodes), at_s=at_s, lasting_s=event.lasting_s)
            for event, at_s in self.happened_at_s
        ]
        missed = [str(event) for event in self.pending]
        return InterferenceRecord(
            kind="failures",
            said=[*self.happened(), *(f"not reached: {event}" for event in missed)],
            moments=moments,
            counts={"lost_at_silent_hosts": self.hosts.unheard},
            details={"not_reached": missed},
        )
