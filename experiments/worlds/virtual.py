"""The world of virtual time: switches that run the P4 program, links that serialise packets, and the usual endpoints.

A virtual clock counts picoseconds, so that rates and times are those of the plan's links and independent of the
machine's speed. No root is needed, and repeated runs are identical. Captures, recirculation, senders of pcaps, actions
beside a run and the monitor use the network's clock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import ceil, inf
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from inakit.experiments.inspect.capture import Counts, Place, file_of
from inakit.experiments.worlds.world import Endpoints, Feature, Noted, Observation, Wiring
from inakit.planner.install.ina_program import AGGREGATION, INA, DataPlaneProgram
from inakit.switch.circuit_switch import CIRCUIT_PROGRAM, CircuitSwitch
from inakit.switch.entries import Entries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import check_sources, read_program
from inakit.topo.c_library import LIBRARY, check_compiler
from inakit.topo.errors import RunError
from inakit.topo.fabric.circuits import INTERCONNECT
from inakit.topo.fabric.fabric import QUEUE_PACKETS, Fabric, addresses
from inakit.topo.virtual.engine import PS_PER_NS, PS_PER_S, Engine, Following, Hops, Recirculation, Series
from inakit.topo.virtual.virtual_network import Source, Tap, VirtualNetwork, as_rows
from inakit.traffic.endpoints.records import NEVER
from inakit.traffic.measure.counters import InterfaceCounters, Snapshot, Watched, switch_counters
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.measure.processors import Second
from inakit.traffic.measure.verdict import Limits
from inakit.traffic.replay import Recording, Replayer, Senders, frames_of_pcap
from inakit.traffic.sockets.packet_sockets import INA_FILTER, RETURN, SEND_BUFFER_FRAMES
from inakit.traffic.sockets.ports import Driven, HostPort, Ports, RepeatedFrames
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, Flag, Kind, offset_of


@contextmanager
def capturing(
    network: VirtualNetwork, fabric: Fabric, places: Sequence[Place], folder: Path
) -> Iterator[dict[str, Counts]]:
    """Capture at `places` during the block, each to its `file_of`. The yielded dict gets the counts at the end."""
    found: dict[str, Counts] = {}
    peer_of = {(node, port): peer for (node, peer), port in fabric.port_numbers.items()}
    with ExitStack() as stack:
        taps = [
            stack.enter_context(Tap(network, node, peer_of[node, port], file_of((node, port), folder)))
            for node, port in dict.fromkeys(places)
        ]
        yield found
    found |= {tap.file.stem: Counts(captured=tap.packets, received=tap.packets) for tap in taps}


NOT_SUMMED = Flag.DIRECT | Flag.PARTIAL | Flag.OVERFLOW
"""Packets with one of these flags pass an aggregator unchanged."""
CHOSEN = ("kind", "flags", "job", "tree", "label")
"""The fields at the beginning of an INA header that determine whether a switch sums the packet."""


def recirculations(fabric: Fabric, installed: Entries) -> dict[tuple[str, int], Recirculation]:
    """The gradients that have to pass a pipeline several times, because it sums them, by switch and pipeline.

    Pipelines whose chip needs a single pass, or that sum no gradients, are omitted.
    """
    found: dict[tuple[str, int], set[int]] = {}
    for switch in installed.switches:
        chip = fabric.switch_by_name[switch.switch].chip
        if chip is not None and chip.passes > 1:
            for pipeline, number in summed(switch.tables):
                found.setdefault((switch.switch, pipeline), set()).add(number)
    times = {name: chip.passes - 1 for name, s in fabric.switch_by_name.items() if (chip := s.chip)}
    mask = number_of(0xFF, NOT_SUMMED, 0xFFFF, 0xFFFF, 0xFFFF)
    at = offset_of("ina")
    return {inp: Recirculation(INA_FILTER, at, mask, numbers, times[inp[0]]) for inp, numbers in found.items()}


def summed(entries: tuple[object, ...]) -> Iterator[tuple[int, int]]:
    """Yield, for each entry of the aggregation table, the pipeline and the number of the gradients that it sums."""
    for entry in entries:
        if isinstance(entry, TableEntry) and entry.table == AGGREGATION:
            pipeline, job, tree, label = entry.exact_key
            yield pipeline, number_of(Kind.GRADIENT, 0, job, tree, label)


def number_of(*fields: int) -> int:
    """The first eight bytes of an INA header with these `CHOSEN` fields, as an integer."""
    head = np.zeros(1, BARE_FRAME["ina"])
    for name, value in zip(CHOSEN, fields, strict=True):
        head[name] = value
    return int.from_bytes(head.tobytes()[:8])


DRAIN_S = 2.0
"""The maximum time for packets to arrive after traffic ends, in seconds."""


@contextmanager
def repeating(network: VirtualNetwork, traffic: Sequence[RepeatedFrames]) -> Iterator[Callable[[], None]]:
    """Send the traffic until the end of the block, then let the packets in flight arrive. Its value ends it earlier."""
    sources = []
    for each in traffic:
        link, frames = network.uplink(each.source.name), as_rows(each.frames)
        sources.append(Source(network.engine, link, *frames, rate_fps=each.rate_fps, room=SEND_BUFFER_FRAMES))

    def stop() -> None:
        while sources:
            sources.pop().stop()

    try:
        yield stop
    finally:
        stop()
        if traffic:
            drain(network.engine)


def drain(engine: Engine) -> None:
    """Let time pass until no packet is in flight, for at most `DRAIN_S`."""
    until = engine.now_ps + round(DRAIN_S * PS_PER_S)
    while (at := engine.next_ps()) is not None and at <= until:
        engine.run(at)


@dataclass(frozen=True)
class VirtualReplayer:
    """The `Replayer` of hosts in virtual time: a source for each pcap."""

    ports: Ports
    network: VirtualNetwork

    def prepare(self, recordings: Sequence[Recording]) -> Senders:
        """Return senders whose sources are made when they begin to send."""
        return SourcesOfPcaps(self.network, recordings)

    def sent_bytes(self, host: HostPort) -> int:
        return int(self.network.engine.links["sent_bytes"][self.network.uplink(host.name)])


class SourcesOfPcaps:
    """The `Senders` of hosts in virtual time. They read frames from the pcaps themselves, without a program."""

    commands: Mapping[str, str] = MappingProxyType({})

    def __init__(self, network: VirtualNetwork, recordings: Sequence[Recording]) -> None:
        self.network, self.recordings = network, recordings
        self.sources: list[Source] = []

    def go(self) -> None:
        for host, pcap, rate_fps in self.recordings:
            frames, lengths = frames_of_pcap(pcap)
            link, limits = self.network.uplink(host.name), {"room": SEND_BUFFER_FRAMES, "count": len(frames)}
            self.sources.append(Source(self.network.engine, link, frames, lengths, rate_fps=rate_fps, **limits))

    def over(self) -> bool:
        return not any(source.left for source in self.sources)

    def end(self) -> None:
        for source in self.sources:
            source.stop()


class Ends:
    """Actions in progress: the moment of the end, the function that ends the action, and the future to resolve."""

    def __init__(self) -> None:
        self.lasting: list[tuple[float, Callable[[], None], Future[None]]] = []

    @property
    def soonest(self) -> float | None:
        """The moment at which the next action ends; None if no action is in progress."""
        return min((until for until, *_ in self.lasting), default=None)

    def add(self, until: float, end: Callable[[], None]) -> Future[None]:
        """Add an action that ends at a moment. The future is resolved when it has ended."""
        future: Future[None] = Future()
        self.lasting.append((until, end, future))
        return future

    def end_due(self, now: float) -> None:
        """End all actions that are due at the moment `now`."""
        for each in [each for each in self.lasting if each[0] <= now]:
            self.lasting.remove(each)
            _, end, over = each
            end()
            over.set_result(None)


class Inline(Executor):
    """Executes submitted work immediately, so that repeated runs are identical."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Do the work now, and return a future with its result."""
        future: Future[Any] = Future()
        future.set_result(work(*args, **named))
        return future


@dataclass(frozen=True)
class CountedNetwork(Watched):
    """The counters of a network, named by node and port."""

    network: LiveVirtualNetwork = field(kw_only=True)

    @classmethod
    def of(cls, network: LiveVirtualNetwork) -> CountedNetwork:
        """The counters of all hosts and switches of a network."""
        ports: dict[str, dict[int, str]] = {name: {} for name in network.switches}
        peers: dict[str, dict[int, str]] = {name: {} for name in network.switches}
        for link in network.cables:
            for node, port, _ in link.ends:
                if node in ports:
                    ports[node][port], peers[node][port] = port_name(node, port), link.peer_of(node)
        return cls(network.hosts, network.switches, ports, peers, network=network)

    def links(self) -> dict[str, InterfaceCounters]:
        return self.network.interfaces()

    def snapshot(self) -> Snapshot:
        """All current counters of the network, with virtual time."""
        return Snapshot(
            at_s=self.network.now(),
            backlog=(),
            interfaces=self.links(),
            queues=self.network.queue_drops(),
            switches={name: switch_counters(switch, self.ports[name]) for name, switch in self.switches.items()},
        )


class CountingMonitor(Monitor):
    """Takes the counters before and after a run. It does not watch processors: they do not affect virtual time."""

    def __enter__(self) -> Self:
        self.before = self.watched.snapshot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.after = self.watched.snapshot()

    @property
    def seconds(self) -> Sequence[Second]:
        """Empty: the processors of this machine are not watched."""
        return ()

    def overloaded_so_far(self, planned_s: float | None = None, limits: Limits | None = None) -> tuple[str, ...]:
        """Empty: a network in virtual time is never overloaded."""
        _ = planned_s, limits
        return ()


def port_name(node: str, port: int) -> str:
    """The monitor's name for a port, such as "s1-2"."""
    return f"{node}-{port}"


LONGEST_WAIT_S, LAST_PS = 3600, (1 << 63) - 1
AT_ONCE = 1 << 19
"""The packets that arrive before a run looks whether it was interrupted, and tells of its progress."""


@dataclass(frozen=True)
class VirtualWorld:
    """Networks in virtual time, in this process, whose switches run the compiled P4 program."""

    name: str = "virtual"
    features: frozenset[Feature] = frozenset(Feature) - {Feature.MANY_COPIES}
    real_time: bool = False
    program: DataPlaneProgram = INA

    def check(self) -> None:
        """Raise `InputError` for a P4 program that is older than its sources, `MachineError` without a C compiler."""
        check_sources(self.program.path)
        check_compiler(LIBRARY)

    def check_fabric(self, fabric: Fabric) -> None:
        """Do nothing: a network of any size is only memory of this process."""

    def check_tools(self, needed: Collection[Feature]) -> None:
        """Do nothing: the world needs no tools."""

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        """Yield the network, which exists during the block."""
        network = LiveVirtualNetwork(fabric, installed, wiring, progress, self.program)
        with network.engine:
            yield network


class LiveVirtualNetwork:
    """A network in virtual time, whose clock counts picoseconds. It is its hosts' `Ports` and the `Beside` of a run.

    `uplinks`: the number of each listening host's uplink. `place`: the index of each node among the listening hosts,
    or -1, by the node's number. `skipped_ps`: the time that has passed while the engine's clock stood still.
    """

    circuits: CircuitSwitch | None = None

    def __init__(
        self,
        fabric: Fabric,
        installed: Entries,
        wiring: Wiring,
        progress: Callable[[float], None],
        program: DataPlaneProgram = INA,
    ) -> None:
        self.fabric = fabric
        self.clock, self.skipped_ps = EngineClock(), 0
        self.switches = running(program.path, installed, progress, self.clock)
        self.hosts = host_ports_of(fabric)
        self.listening: Sequence[HostPort] = self.hosts
        self.ends = Ends()
        panel, queue_packets = wiring.interconnect, wiring.queue_packets or QUEUE_PACKETS
        switches = dict(self.switches)
        if panel is not None:
            switches[INTERCONNECT] = InProcessSwitch(read_program(CIRCUIT_PROGRAM), INTERCONNECT, self.clock)
            self.circuits = CircuitSwitch(panel, switches[INTERCONNECT])
        loops = recirculations(fabric, installed)
        self.network = VirtualNetwork(fabric, switches, FRAME, queue_packets, panel, loops)
        self.engine, self.cables = self.network.engine, self.network.cables
        self.clock.engine = self.engine
        self.engine.set_filter(range(len(fabric.hosts)), INA_FILTER)
        self.attached: Driven | None = None

    # -- as `LiveNetwork`

    def endpoints(self, hosts: Sequence[HostPort]) -> Endpoints:
        """The network itself as the hosts' ports, and an executor that does all work immediately."""
        self.listening = hosts
        return nullcontext((self, Inline()))

    def replaying(self, hosts: Sequence[HostPort]) -> AbstractContextManager[Replayer]:
        """Sources on the hosts' links, and the network itself as their ports."""
        self.endpoints(hosts)
        return nullcontext(VirtualReplayer(self, self.network))

    def repeating(self, traffic: Sequence[RepeatedFrames]) -> AbstractContextManager[Callable[[], None]]:
        """Sources on the hosts' links."""
        return repeating(self.network, traffic)

    def capturing(self, places: Sequence[Place], folder: Path | None) -> AbstractContextManager[Mapping[str, Counts]]:
        """Write the packets of ports to files during the run."""
        return nullcontext({}) if folder is None else capturing(self.network, self.fabric, places, folder)

    def observing(self, asked: Observation | None) -> AbstractContextManager[Noted | None]:
        """Record the series of links, and the hops of the followed fragments' packets."""
        if asked is None:
            return nullcontext()
        links, noted = self.engine.links, BARE_FRAME["ina"]
        series = Series(len(links), round(asked.interval_s * PS_PER_S), asked.points)
        hops = Hops(Following(noted, offset_of("ina"), offset_of("ina", "seq"), asked.every, asked.hops))
        self.engine.observe(series, hops)
        return nullcontext(Noted(self.network.ends, links["rate_bps"].tolist(), series, hops))

    def monitor(self) -> Monitor:
        """A monitor of the counters of links and switches only."""
        return CountingMonitor(self.watched())

    def watched(self) -> Watched:
        """The counters of links and switches."""
        return CountedNetwork.of(self)

    def interface_name(self, node: str, peer: str) -> str:
        """The monitor's name for the port by which `node` sends to `peer`, such as "s1-2"."""
        return port_name(node, self.fabric.port_numbers[node, peer])

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take a link down or up; packets on a link that goes down are lost."""
        self.network.set_link(a, b, up=up)

    def interfaces(self) -> dict[str, InterfaceCounters]:
        return {name: counters(self.engine.links, number) for name, number in self.own_links()}

    def queue_drops(self) -> dict[str, int]:
        """The packets that the queue of every port dropped, including those of recirculation ports."""
        dropped = self.engine.links["dropped"]
        loops = self.network.loop_drops().items()
        of_loops = {f"{switch}-recirculation{pipeline}": count for (switch, pipeline), count in loops}
        return {name: int(dropped[number]) for name, number in self.own_links()} | of_loops

    def own_links(self) -> Iterator[tuple[str, int]]:
        """Yield the monitor's name and the outgoing link of every port of the fabric's hosts and switches."""
        for (node, port), number in self.network.link_at.items():
            if node in self.fabric.tiers:
                yield port_name(node, port), number

    # -- as `Beside`

    @contextmanager
    def beside(self) -> Iterator[Self]:
        """Yield the network itself. Leaving the block ends all actions in progress."""
        try:
            yield self
        finally:
            self.ends.end_due(inf)

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin` now, and `end` `lasting_s` seconds later: immediately for 0, after the run for None."""
        begin()
        over = self.ends.add(inf if lasting_s is None else self.moment + self.moments(lasting_s), end)
        self.ends.end_due(self.moment)
        return over

    def settle(self, switch: str) -> None:
        """Do nothing: a switch processes packets in no time."""

    # -- as `Ports`

    def problems(self) -> Mapping[str, int]:
        """Empty: ports in memory do not fail."""
        return {}

    @property
    def moment(self) -> int:
        """Picoseconds since the network came up."""
        return self.skipped_ps + self.engine.now_ps

    def moments(self, seconds: float) -> int:
        """Convert seconds to picoseconds."""
        return round(seconds * PS_PER_S)

    def now(self) -> float:
        """Seconds since the network came up."""
        return self.moment / PS_PER_S

    def now_ps(self) -> int:
        """The time of the engine."""
        return self.engine.now_ps

    def seconds(self, at_ps: int) -> float:
        """A time of the engine, since the last time that its clock stood still, in seconds."""
        return (self.skipped_ps + at_ps) / PS_PER_S

    def attach(self, endpoints: Driven, *, mute: bool = False) -> None:
        """Let the engine give packets and time to endpoints. With `mute` they send nothing."""
        self.attached, record = endpoints, endpoints.all
        self.engine.kept.append(endpoints)
        address = {name: record[name].ctypes.data for name in ("due", "halted")}
        function = {
            name: c_address(getattr(endpoints.library, name)) for name in ("endpoints_wake", "endpoints_arrive")
        }
        send = endpoints.library.endpoints_mute if mute else self.engine.library.engine_give
        record["send"], record["context"] = c_address(send), self.engine.handle
        for number, host in enumerate(self.listening):
            endpoints.hosts["way"][number] = self.network.uplink(host.name)
            machine = endpoints.hosts.ctypes.data + number * endpoints.hosts.itemsize
            self.engine.run_on(self.network.number_of[host.name], function["endpoints_arrive"], machine)
        others = {host.name for host in self.hosts} - {host.name for host in self.listening}
        self.engine.set_filter([self.network.number_of[name] for name in others], [(RETURN, 0, 0, 0)])
        self.engine.attach(address["due"], address["halted"], function["endpoints_wake"], endpoints.address)

    def run(self, until: float) -> None:
        """Let time pass until `until`, an action's end, the end of an iteration, or `AT_ONCE` packets have arrived."""
        assert self.attached is not None
        last = self.skipped_ps + LAST_PS
        soonest = min(until * PS_PER_S, last if self.ends.soonest is None else self.ends.soonest)
        self.attached.all["halted"] = 0
        if until > self.now():  # a time in seconds can lie between two picoseconds
            self.advance(max(ceil(soonest), self.moment + 1), AT_ONCE)
        self.ends.end_due(self.moment)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass; actions that are due in the meantime end at their time."""
        self.run_to(self.moment + max(1, self.moments(seconds)))

    def run_to(self, until: int) -> None:
        """Let time pass to a moment; actions that are due in the meantime end at their time."""
        while (soonest := self.ends.soonest) is not None and soonest <= until:
            self.advance(int(soonest))
            self.ends.end_due(soonest)
        self.advance(until)

    def advance(self, until: int, most: int = 1 << 62) -> None:
        """Simulate all events up to a moment.

        If no packet is in flight for longer than `LONGEST_WAIT_S`, the engine's clock, which counts picoseconds in 64
        bits, stands still in the meantime: observations of links and packets omit this time. Raises `RunError` if the
        clock overflows.
        """
        waits_ps = until - self.moment
        idle = self.engine.next_ps() is None and (self.attached is None or self.attached.all["due"][0] == NEVER)
        if waits_ps > LONGEST_WAIT_S * PS_PER_S and idle:
            self.skipped_ps += waits_ps
        elif until - self.skipped_ps > LAST_PS:
            raise RunError(f"virtual time ends after {LAST_PS // PS_PER_S} s: let jobs arrive sooner, or compute less")
        else:
            self.engine.run(until - self.skipped_ps, most)


def c_address(function: Any) -> int:
    """The address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class EngineClock:
    """The time of an engine in nanoseconds, for switches; 0 until the engine is set."""

    def __init__(self) -> None:
        self.engine: Engine | None = None

    def __call__(self) -> int:
        return 0 if self.engine is None else self.engine.now_ps // PS_PER_NS


def running(
    path: Path, installed: Entries, progress: Callable[[float], None], clock: EngineClock
) -> dict[str, InProcessSwitch]:
    """Start the switches with the program in this file, install their entries, and return them by name.

    `progress` gets the fraction of switches that are ready.
    """
    program, found = read_program(path), {}
    for number, entries in enumerate(installed.switches):
        found[entries.switch] = InProcessSwitch(program, entries.switch, clock)
        found[entries.switch].install(entries)
        progress(number / len(installed.switches))
    return found


def counters(links: NDArray[np.void], number: int) -> InterfaceCounters:
    """The counters of the port at the sending end of a link. The lowest bit of the number selects the direction."""
    out, back = links[number], links[number ^ 1]
    return InterfaceCounters(
        received_bytes=int(back["received_bytes"]),
        received_packets=int(back["received_packets"]),
        receive_drops=0,
        sent_bytes=int(out["sent_bytes"]),
        sent_packets=int(out["sent_packets"]),
        send_drops=0,
    )


def host_ports_of(fabric: Fabric) -> list[HostPort]:
    """The ports of the fabric's hosts, as `lay_out` takes them; there are no processes or interfaces behind them."""
    found = addresses(fabric)
    names = [host.name for host in fabric.hosts]
    return [HostPort(name, 0, "eth0", found[name].mac_text, found[name].ipv4_text) for name in names]
