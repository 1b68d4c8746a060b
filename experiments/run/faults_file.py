"""The faults file: its format, and its reader, which turns it into interferences of a run.

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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from inakit.experiments.run.faults import Event, Failures, Link, LossyLinks, Moment, OtherTraffic, SlowWorkers
from inakit.experiments.run.interference import Interference
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Faults, Flow, LinkFaults
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files import quantities
from inakit.topo.files.quantities import RATE, lasting, rate
from inakit.topo.files.reader import FileKind, ParsedFile, Section, of_type, read_file
from inakit.traffic.faults.attacks import ATTACKS, Attack, possible_attacks
from inakit.traffic.faults.endpoint_faults import Stragglers


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

    @property
    def interferences(self) -> tuple[Interference, ...]:
        """The faults as interferences of a run, in the order in which they change entries, rates and ports."""
        found: list[Interference] = []
        if self.background or self.hostile:
            found.append(OtherTraffic(self.background, self.hostile, self.seed))
        if self.stragglers is not None:
            found.append(SlowWorkers(self.stragglers))
        if self.links:
            found.append(LossyLinks(self.links, self.seed))
        if self.events:
            found.append(Failures(self.events))
        return tuple(found)


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
