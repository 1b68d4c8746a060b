"""What a run is to suffer: the format of a faults file, its reader, and how the plan is carried out and recorded.

    version: 1
    seed: 7                                          # decides which packets are hit; default 0
    links:                                           # shares of the INA packets: 0.01 or 1%
      - {link: all, drop: 1%}
      - {link: [leaf1, h3], drop: 10%, duplicate: 5%}  # both directions; a later line overrides an earlier one
      - {link: [leaf1, spine1], one_way: true, reorder: 0.1}
      - {link: [leaf1, 4], drop: 2%}                   # the link at port 4 of leaf1
    events:
      - {at: 2s, down: [leaf1, spine1], for: 500ms}  # without `for` it stays down
      - {at: 3, restart: spine1, for: 1s}            # a switch: it loses its registers, and all packets for 1 s
      - {at: {iteration: 1}, pause: h3, for: 5s}     # a worker; iterations count from 0
      - {at: {iteration: 2, job: 1}, restart: h1}    # a parameter server: it loses its sums
      - {at: 9s, kill: h4}                           # a worker or a parameter server, for good
    stragglers: {mean: 1.0, spread: 0.2, seed: 1}    # shares of planned rates, normally distributed (GOAT)
    background:
      - {from: h3, to: h7, rate: 5M, frame_bytes: 1000}
    hostile:                                         # during the whole run, against the job of this number
      - {host: h7, job: 1, rate: 2M, attacks: [spoof, replay]}  # without `attacks` all of `traffic/faults/attacks.py`

A multicast packet is duplicated on all its links at once, with the largest of their shares. Only switches reorder
packets: a link to a host does not, and `reorder` with `link: all` leaves these directions out.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from inakit.experiments.worlds.world import Beside, LiveNetwork
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import (
    Faults,
    Flow,
    LinkFaults,
    background_routes,
    doubled_by_hosts,
    flow_links,
    with_background,
    with_faults,
)
from inakit.switch.entries import Entries, SwitchEntries
from inakit.topo.errors import InputError, RunError, unknown_name
from inakit.topo.files import quantities
from inakit.topo.files.quantities import RATE, lasting, rate
from inakit.topo.files.reader import FileKind, ParsedFile, Section, of_type, read_file
from inakit.traffic.closed_loop import ClosedLoop
from inakit.traffic.collectives.rank_data import lay_out_plan
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.faults.attacks import ATTACKS, Attack, hostile_traffic, possible_attacks
from inakit.traffic.faults.background import background_traffic
from inakit.traffic.faults.endpoint_faults import FaultyPorts, Stragglers, with_shares
from inakit.traffic.measure.counters import difference
from inakit.traffic.measure.fidelity import Excuses, dropped_by_queues
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.sockets.ports import Ports, RepeatedFrames
from inakit.traffic.wire.packet_format import Event as PacketEvent

Link = tuple[str, str]
"""One direction of a link: from a node to a neighbour."""


@dataclass(frozen=True)
class Moment:
    """When an event happens: `seconds` after the start of the run or, if that is None, when an iteration begins.

    `job` is the position of the iteration's job in the problem. Iterations and positions count from 0.
    """

    seconds: float | None = None
    iteration: int = 0
    job: int = 0

    def has_come(self, loop: ClosedLoop, now: float) -> bool:
        """Whether the moment has come at the time `now` of a run's clock, in seconds."""
        if self.seconds is None:
            return (self.job, self.iteration) in loop.begun
        return now - loop.started_at >= self.seconds

    def next_due(self, loop: ClosedLoop) -> float:
        """When the moment comes, to within roundings, unless an iteration begins before that."""
        if self.seconds is None:
            return -inf if (self.job, self.iteration) in loop.begun else inf
        return loop.started_at + self.seconds


@dataclass(frozen=True)
class Event:
    """An event of a kind of `KINDS` at `nodes`: one node, or the two ends of a link.

    `lasting_s` is how many seconds it lasts, None if the file does not say.
    """

    at: Moment
    kind: str
    nodes: tuple[str, ...]
    lasting_s: float | None = None

    def __str__(self) -> str:
        ends = "" if self.lasting_s is None else f" for {self.lasting_s:g} s"
        return f"{self.kind} {'-'.join(self.nodes)}{ends}"


@dataclass(frozen=True)
class FaultPlan:
    """Everything that a faults file asks for. `document` is the content of the file as it was parsed."""

    document: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    links: Faults = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    stragglers: Stragglers | None = None
    background: tuple[Flow, ...] = ()
    hostile: tuple[Attack, ...] = ()


def check_mode(mode: str) -> None:
    """Raise `InputError` unless a run in this mode can have faults."""
    if mode != "reliable":
        raise InputError(f"faults in mode '{mode}': nothing would be sent again; choose --mode reliable")


SHARE = "a share from 0 to 1, or such as 5%"
TIME = "a time in seconds that is not negative, or such as 500ms"
LINK = "two neighbours such as [leaf1, h3], or a switch and a port number such as [leaf1, 4]"
WHOLE = "a whole number that is not negative"
FRAME = range(64, 1515)


def version(value: object) -> int:
    """The version of the format, which is 1. Raises `ValueError`."""
    if value != 1 or isinstance(value, bool):
        raise ValueError
    return 1


def whole(value: object) -> int:
    """A whole number that is not negative. Raises `ValueError`."""
    number = quantities.whole(value)
    if number < 0:
        raise ValueError
    return number


def share(value: object) -> float:
    """A share from 0 to 1, written as a number or, such as '5%', in percent. Raises `ValueError`."""
    percent = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", value) if isinstance(value, str) else None
    found = float(percent[1]) / 100 if percent else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise ValueError
    return float(found)


def names(value: object) -> list[str]:
    """A list of texts. Raises `ValueError`."""
    return [of_type(str)(name) for name in of_type(list)(value)]


def mean(value: object) -> float:
    """A share greater than 0 and at most 1. Raises `ValueError`."""
    found = share(value)
    if not found:
        raise ValueError
    return found


def spread(value: object) -> float:
    """A finite number that is not negative. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise ValueError
    return float(value)


def frame_bytes(value: object) -> int:
    """A size of frames in bytes that the network can carry. Raises `ValueError`."""
    if whole(value) not in FRAME:
        raise ValueError
    return whole(value)


def choice(what: str, known: Iterable[str]) -> Callable[[object], str]:
    """A converter that accepts the `known` names. For another name it raises `InputError` with the nearest one."""
    names = list(known)

    def convert(value: object) -> str:
        name = of_type(str)(value)
        if name not in names:
            raise unknown_name(what, name, names)
        return name

    return convert


def link_of(problem: Problem) -> Callable[[object], Link]:
    """A converter to a link, which a file names by two nodes, or by a switch and one of its ports."""
    fabric = problem.fabric
    peers: dict[tuple[str, Any], str] = {(node, port): peer for (node, peer), port in fabric.port_numbers.items()}

    def convert(value: object) -> Link:
        node, other = of_type(list)(value)
        peer = peers[node, other] if (node, other) in peers else of_type(str)(other)
        if (node, peer) not in fabric.capacities_bps:
            raise InputError(f"{node}-{other} is no link of fabric '{fabric.name}': expected {LINK}")
        return node, peer

    return convert


HOST = "the name of a host"

FILE = FileKind("faults file", max_bytes=64 << 20)

KEYS = ("version", "seed", "links", "events", "stragglers", "background", "hostile")
LINK_KEYS = ("link", "one_way", "drop", "reorder", "duplicate")
STRAGGLER_KEYS = ("mean", "spread", "seed")
FLOW_KEYS = ("from", "to", "rate", "frame_bytes")
HOSTILE_KEYS = ("host", "job", "rate", "attacks")


def load_faults(path: Path, problem: Problem) -> FaultPlan:
    """The faults of a YAML file, for a problem. Raises `InputError` that names file, key, value and way out."""
    return faults_of(read_file(path, FILE), problem)


def faults_from(document: Mapping[str, Any], problem: Problem) -> FaultPlan:
    """The faults that a dictionary describes in the words of the file. Raises `InputError`."""
    return faults_of(ParsedFile(Path("faults"), FILE, {"version": 1, **document}), problem)


def faults_of(file: ParsedFile, problem: Problem) -> FaultPlan:
    """The faults that a parsed file describes. Raises `InputError`."""
    reader = Section(file, KEYS)
    reader.take("version", version, "1")
    return FaultPlan(
        document=reader.document,
        seed=reader.get("seed", whole, WHOLE, 0),
        links=link_faults(reader, problem),
        events=tuple(event_of(each, problem) for each in reader.each("events", ("at", "for", *KINDS))),
        stragglers=stragglers_of(reader.part("stragglers", STRAGGLER_KEYS)) if "stragglers" in reader else None,
        background=tuple(flow_of(each, problem) for each in reader.each("background", FLOW_KEYS)),
        hostile=tuple(attack_of(each, problem) for each in reader.each("hostile", HOSTILE_KEYS)),
    )


def link_faults(reader: Section, problem: Problem) -> Faults:
    """The faults of each direction of each link. A later line overrides the shares that it names of an earlier one."""
    found: dict[Link, LinkFaults] = {}
    for line in reader.each("links", LINK_KEYS):
        shares = {name: line.take(name, share, SHARE) for name in ("drop", "reorder", "duplicate") if name in line}
        for link in directions(line, problem):
            applicable = shares | possible(line, link, problem)
            try:
                found[link] = replace(found.get(link, LinkFaults()), **applicable)
            except InputError as error:
                raise line.error("", str(error)) from None
    return {link: faults for link, faults in found.items() if faults}


def directions(line: Section, problem: Problem) -> tuple[Link, ...]:
    """The directions that a line is about: all of the fabric, or one or both of a link."""
    one_way = line.get("one_way", of_type(bool), "true or false", default=False)
    if line.document.get("link") == "all":
        return tuple(problem.fabric.capacities_bps)
    link = line.take("link", link_of(problem), f"all, or {LINK}")
    return (link,) if one_way else (link, link[::-1])


def possible(line: Section, link: Link, problem: Problem) -> dict[str, float]:
    """A share `reorder` of 0 if a line asks for reordering on the way to a host, where none is possible; else nothing.

    So a line of all links, or of both directions, leaves such a direction out. Raises `InputError` if it is `one_way`.
    """
    if "reorder" not in line or link[1] not in problem.fabric.host_names:
        return {}
    if line.get("one_way", of_type(bool), "", default=False):
        raise line.error("reorder", f"on the way to host '{link[1]}' no packet overtakes: name a link to a switch")
    return {"reorder": 0.0}


@dataclass(frozen=True)
class Kind:
    """A kind of event. `whom` makes the check of its target for a problem; `expected` says in words what that may be.

    `ends`: whether the event `must`, `may` or `never` can have an end (key `for`).
    """

    whom: Callable[[Problem], Callable[[object], str | Link]]
    expected: str
    ends: str


def workers(problem: Problem) -> set[str]:
    return {host for job in problem.jobs for host in job.workers}


def servers(problem: Problem) -> set[str]:
    """The parameter servers of all jobs."""
    return {host for job in problem.jobs for host in job.servers}


KINDS: dict[str, Kind] = {
    "down": Kind(link_of, LINK, "may"),
    "restart": Kind(
        lambda problem: choice("switch or parameter server", servers(problem) | set(problem.fabric.switch_by_name)),
        "the name of a switch or of a parameter server", "may",
    ),
    "pause": Kind(lambda problem: choice("worker", workers(problem)), "the name of a worker", "must"),
    "kill": Kind(
        lambda problem: choice("worker or parameter server", workers(problem) | servers(problem)),
        "the name of a worker or of a parameter server", "never",
    ),
}  # fmt: skip


def event_of(line: Section, problem: Problem) -> Event:
    """One item of `events`. Raises `InputError` with file, line and key."""
    named = [name for name in KINDS if name in line]
    if len(named) != 1:
        raise line.error("", f"{len(named)} kinds of event: expected exactly one of {', '.join(KINDS)}")
    name, kind = named[0], KINDS[named[0]]
    event_counts = line.take(name, kind.whom(problem), kind.expected)
    if "for" in line and kind.ends == "never":
        raise line.error("for", f"'{name}' has no end: leave the key out")
    lasting_s = line.take("for", lasting, TIME) if "for" in line or kind.ends == "must" else None
    nodes = (event_counts,) if isinstance(event_counts, str) else event_counts
    return Event(moment_of(line, problem), name, nodes, lasting_s)


def moment_of(line: Section, problem: Problem) -> Moment:
    """When an event happens: after some seconds, or when a job begins an iteration."""
    if not isinstance(line.document.get("at"), dict):
        return Moment(line.take("at", lasting, f"{TIME}; or {{iteration: 1}}"))
    place = line.part("at", ("iteration", "job"))
    numbers = [job.number for job in problem.jobs]
    job = place.get("job", whole, WHOLE, numbers[0])
    if job not in numbers:
        raise place.error("job", f"{job}: expected one of {', '.join(map(str, numbers))}")
    return Moment(None, place.take("iteration", whole, WHOLE), numbers.index(job))


def stragglers_of(part: Section) -> Stragglers:
    """The distribution of workers' shares of their planned rate."""
    return Stragglers(
        spread=part.take("spread", spread, "a standard deviation such as 0.2"),
        mean=part.get("mean", mean, "a share of the planned rate, greater than 0 and at most 1", 1.0),
        seed=part.get("seed", whole, WHOLE, 0),
    )


def flow_of(line: Section, problem: Problem) -> Flow:
    """One item of `background`. Raises `InputError` for a flow from a host to itself."""
    host = choice("host", problem.fabric.host_names)
    flow = Flow(
        source=line.take("from", host, HOST),
        destination=line.take("to", host, HOST),
        rate_bps=line.take("rate", rate, RATE),
        frame_bytes=line.get("frame_bytes", frame_bytes, f"a whole number from {FRAME[0]} to {FRAME[-1]}", 1000),
    )
    if flow.source == flow.destination:
        raise line.error("to", f"'{flow.source}' is where the traffic comes from: name another host")
    return flow


def attack_of(line: Section, problem: Problem) -> Attack:
    """One item of `hostile`. Raises `InputError` for an attack that is not possible from that host."""
    numbers = [job.number for job in problem.jobs]
    host = line.take("host", choice("host", problem.fabric.host_names), HOST)
    job = line.take("job", whole, WHOLE)
    if job not in numbers:
        raise line.error("job", f"{job}: expected one of {', '.join(map(str, numbers))}")
    everything: list[str] = []
    wanted = line.get("attacks", names, f"a list of {', '.join(ATTACKS)}", everything)
    try:
        kinds = possible_attacks(problem, host, job, wanted)
    except InputError as error:
        raise line.error("", str(error)) from None
    return Attack(host, job, kinds, line.take("rate", rate, RATE))


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
