"""The faults file: its format, and a reader that turns it into interferences of a run.

    version: 1
    seed: 7                                          # selects the packets that are hit; default 0
    links:                                           # shares of the INA packets: 0.01 or 1%
      - {link: all, drop: 1%}
      - {link: [leaf1, h3], drop: 10%, duplicate: 5%}  # both directions; later lines override earlier ones
      - {link: [leaf1, spine1], one_way: true, reorder: 0.1}
      - {link: [leaf1, 4], drop: 2%}                   # the link at port 4 of leaf1
    events:
      - {at: 2s, down: [leaf1, spine1], for: 500ms}  # without `for` the link stays down
      - {at: 3, restart: spine1, for: 1s}            # a switch: it loses its registers, and all packets during 1 s
      - {at: {iteration: 1}, pause: h3, for: 5s}     # a worker; iterations count from 0
      - {at: {iteration: 2, job: 1}, restart: h1}    # a parameter server: it loses its sums
      - {at: 9s, kill: h4}                           # a worker or a parameter server, permanently
    stragglers: {mean: 1.0, spread: 0.2, seed: 1}    # shares of planned rates, normally distributed (GOAT)
    background:
      - {from: h3, to: h7, rate: 5M, frame_bytes: 1000}
      - {from: h4, to: h8, rate: 5M, at: {iteration: 2}, until: {iteration: 6}}  # without them, during the whole run
    hostile:                                         # during the whole run, against the job with this number
      - {host: h7, job: 1, rate: 2M, attacks: [spoof, replay]}  # without `attacks`, all of `traffic/faults/attacks.py`

A multicast packet is duplicated on all its links at once, with the largest of their shares. Only links to switches
reorder packets: `reorder` with `link: all` skips the directions to hosts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, StrictStr, Tag

from inakit.experiments.run.faults import Event, Failures, LossyLinks, OtherTraffic, SlowWorkers, Span, When
from inakit.experiments.run.interference import Interference
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Faults, Flow, LinkFaults
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.fabric import DirectedLink
from inakit.topo.files.quantities import RATE, Duration, Flag, Rate, Whole
from inakit.topo.files.reader import FileKind, ParsedFile, Place, Record, read_file, validate
from inakit.traffic.faults.attacks import ATTACKS, Attack, possible_attacks
from inakit.traffic.faults.endpoint_faults import Stragglers


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a faults file. `document` is its parsed content, `spans` has the times of background flows."""

    document: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    links: Faults = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    stragglers: Stragglers | None = None
    background: tuple[Flow, ...] = ()
    hostile: tuple[Attack, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def interferences(self) -> tuple[Interference, ...]:
        """The faults as interferences of a run, in the order in which they change entries, rates and ports."""
        found: list[Interference] = []
        if self.background or self.hostile:
            found.append(OtherTraffic(self.background, self.hostile, self.seed, self.spans))
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
        raise InputError(f"faults in mode '{mode}': lost packets would not be sent again; choose --mode reliable")


SHARE = "a share from 0 to 1, or a percentage such as 5%"
TIME = "a time in seconds that is not negative, or one with a unit such as 500ms"
LINK = "two neighbours such as [leaf1, h3], or a switch and a port number such as [leaf1, 4]"
WHOLE = "a non-negative whole number"
HOST = "the name of a host"
FRAME = range(64, 1515)

FILE = FileKind("faults file", max_bytes=64 << 20)


def share(value: object) -> float:
    """Parse a share from 0 to 1, written as a number or as a percentage such as '5%'. Raises `ValueError`."""
    percent = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", value) if isinstance(value, str) else None
    found = float(percent[1]) / 100 if percent else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise ValueError
    return float(found)


Share = Annotated[float, BeforeValidator(share)]
Count = Annotated[Whole, Field(ge=0)]
Ends = Annotated[list[StrictStr | int], Field(min_length=2, max_length=2)]


class LinkRecord(Record):
    """A line of `links`."""

    link: Literal["all"] | Ends = Field(description=f"all, or {LINK}")
    one_way: Flag = Field(False, description="true or false")
    drop: Share | None = Field(None, description=SHARE)
    reorder: Share | None = Field(None, description=SHARE)
    duplicate: Share | None = Field(None, description=SHARE)

    @property
    def shares(self) -> dict[str, float]:
        given = {"drop": self.drop, "reorder": self.reorder, "duplicate": self.duplicate}
        return {name: share for name, share in given.items() if share is not None}


class MomentRecord(Record):
    """The time of an event: the beginning of an iteration of a job, by default of the first job."""

    iteration: Count = Field(description=WHOLE)
    job: Count | None = Field(None, description=WHOLE)


AT = Annotated[
    Annotated[Duration, Tag("float")] | Annotated[MomentRecord, Tag("MomentRecord")],
    Discriminator(lambda at: "MomentRecord" if isinstance(at, dict) else "float"),
]


class EventRecord(Record):
    """A line of `events`, with exactly one kind of event."""

    at: AT = Field(description=f"{TIME}; or {{iteration: 1}}")
    lasting_s: Duration | None = Field(None, alias="for", description=TIME)
    down: Ends | None = Field(None, description=LINK)
    restart: StrictStr | None = Field(None, description="the name of a switch or of a parameter server")
    pause: StrictStr | None = Field(None, description="the name of a worker")
    kill: StrictStr | None = Field(None, description="the name of a worker or of a parameter server")


class StragglersRecord(Record):
    """The distribution of workers' shares of their planned rates."""

    spread: Annotated[float, Field(strict=False, ge=0, lt=inf)] = Field(description="a standard deviation such as 0.2")
    mean: Annotated[Share, Field(gt=0)] = Field(
        1.0, description="a share of the planned rate, greater than 0 and at most 1"
    )
    seed: Count = Field(0, description=WHOLE)


class FlowRecord(Record):
    """A line of `background`."""

    source: StrictStr = Field(alias="from", description=HOST)
    destination: StrictStr = Field(alias="to", description=HOST)
    rate: Rate = Field(description=RATE)
    frame_bytes: Annotated[Whole, Field(ge=FRAME[0], le=FRAME[-1])] = Field(
        1000, description=f"a whole number from {FRAME[0]} to {FRAME[-1]}"
    )
    at: AT | None = Field(None, description=f"{TIME}; or {{iteration: 1}}")
    until: AT | None = Field(None, description=f"{TIME}; or {{iteration: 6}}")


class HostileRecord(Record):
    """A line of `hostile`."""

    host: StrictStr = Field(description=HOST)
    job: Count = Field(description=WHOLE)
    rate: Rate = Field(description=RATE)
    attacks: list[StrictStr] = Field([], description=f"a list of {', '.join(ATTACKS)}")


class FaultsRecord(Record):
    """The content of a faults file."""

    version: Literal[1] = Field(description="1")
    seed: Count = Field(0, description=WHOLE)
    links: list[LinkRecord] = Field([], description="a list of links with their shares")
    events: list[EventRecord] = Field([], description="a list of events")
    stragglers: StragglersRecord | None = Field(None, description="the keys spread, mean, seed")
    background: list[FlowRecord] = Field([], description="a list of flows")
    hostile: list[HostileRecord] = Field([], description="a list of hostile hosts")


def load_faults(path: Path, problem: Problem) -> FaultPlan:
    """Read a problem's faults from a YAML file. Raises `InputError` that names file, key, value and expected value."""
    return faults_of(read_file(path, FILE), problem)


def faults_from(document: Mapping[str, Any], problem: Problem) -> FaultPlan:
    """Read a problem's faults from a dictionary with the keys of the file. Raises `InputError`."""
    return faults_of(ParsedFile(Path("faults"), FILE, {"version": 1, **document}), problem)


def faults_of(file: ParsedFile, problem: Problem) -> FaultPlan:
    """Read a problem's faults from a parsed file. Raises `InputError`."""
    record, names = validate(file, FaultsRecord), Names(file, problem)
    slow = record.stragglers
    return FaultPlan(
        document=file.document,
        seed=record.seed,
        links=link_faults(record.links, names),
        events=tuple(event_of(line, names, ("events", at)) for at, line in enumerate(record.events)),
        stragglers=None if slow is None else Stragglers(slow.spread, slow.mean, slow.seed),
        background=tuple(flow_of(line, names, ("background", at)) for at, line in enumerate(record.background)),
        spans=tuple(span_of(line, names, ("background", at)) for at, line in enumerate(record.background)),
        hostile=tuple(attack_of(line, names, ("hostile", at)) for at, line in enumerate(record.hostile)),
    )


class Names:
    """The names of a problem's nodes, links and jobs, for checking a file. Other names raise the file's error."""

    def __init__(self, file: ParsedFile, problem: Problem) -> None:
        self.file, self.problem, self.fabric = file, problem, problem.fabric
        self.workers = {host for job in problem.jobs for host in job.workers}
        self.servers = {host for job in problem.jobs for host in job.servers}
        self.peers: dict[tuple[Any, Any], str] = {
            (node, port): peer for (node, peer), port in self.fabric.port_numbers.items()
        }

    def check(self, place: Place, what: str, name: str, known: Collection[str]) -> str:
        """Return the name if it is among `known`, the names of every `what`."""
        if name not in known:
            raise self.file.error(place, str(unknown_name(what, name, known)))
        return name

    def job_index(self, place: Place, number: int) -> int:
        numbers = [job.number for job in self.problem.jobs]
        if number not in numbers:
            raise self.file.error(place, f"{number}: expected one of {', '.join(map(str, numbers))}")
        return numbers.index(number)

    def link(self, place: Place, ends: list[str | int], expected: str = LINK) -> DirectedLink:
        """The link that a file names by two nodes, or by a switch and one of its ports."""
        node, other = ends
        peer = self.peers.get((node, other), other)
        if not isinstance(node, str) or not isinstance(peer, str):
            raise self.file.error(place, f"{ends}: expected {expected}")
        if (node, peer) not in self.fabric.capacities_bps:
            message = f"{node}-{other} is not a link of fabric '{self.fabric.name}': expected {LINK}"
            raise self.file.error(place, message)
        return node, peer


def link_faults(lines: list[LinkRecord], names: Names) -> Faults:
    """The faults of each direction of each link. Later lines override the shares of earlier ones.

    Links to hosts do not reorder packets: a line for all links, or for both directions, skips them.
    """
    found: dict[DirectedLink, LinkFaults] = {}
    for at, line in enumerate(lines):
        place: Place = ("links", at)
        directions = list(names.fabric.capacities_bps)
        if line.link != "all":
            link = names.link((*place, "link"), line.link, f"all, or {LINK}")
            directions = [link] if line.one_way else [link, link[::-1]]
        for direction in directions:
            shares = line.shares
            if line.reorder is not None and direction[1] in names.fabric.host_names:
                if line.one_way:
                    message = f"links to hosts such as '{direction[1]}' do not reorder packets: name a link to a switch"
                    raise names.file.error((*place, "reorder"), message)
                shares["reorder"] = 0.0
            try:
                found[direction] = replace(found.get(direction, LinkFaults()), **shares)
            except InputError as error:
                raise names.file.error(place, str(error)) from None
    return {link: faults for link, faults in found.items() if faults}


KINDS = ("down", "restart", "pause", "kill")


def event_of(line: EventRecord, names: Names, place: Place) -> Event:
    """Convert an item of `events`. Raises `InputError` with file, line and key."""
    given = [kind for kind in KINDS if getattr(line, kind) is not None]
    if len(given) != 1:
        message = f"{len(given)} kinds of event: expected exactly one of {', '.join(KINDS)}"
        raise names.file.error(place, message)
    (kind,) = given
    switches = set(names.fabric.switch_by_name)
    targets: tuple[str, ...]
    if line.down is not None:
        targets = names.link((*place, kind), line.down)
    elif line.restart is not None:
        known = names.servers | switches
        targets = (names.check((*place, kind), "switch or parameter server", line.restart, known),)
    elif line.pause is not None:
        targets = (names.check((*place, kind), "worker", line.pause, names.workers),)
    else:
        assert line.kill is not None
        known = names.workers | names.servers
        targets = (names.check((*place, kind), "worker or parameter server", line.kill, known),)
    if kind == "kill" and line.lasting_s is not None:
        raise names.file.error((*place, "for"), f"'{kind}' has no end: omit the key")
    if kind == "pause" and line.lasting_s is None:
        raise names.file.error(place, f"key 'for' is missing: expected {TIME}")
    return Event(moment_of(line.at, names, (*place, "at")), kind, targets, line.lasting_s)


def moment_of(at: float | MomentRecord, names: Names, place: Place) -> When:
    """The time of an event: a number of seconds after the start, or the beginning of a job's iteration."""
    if not isinstance(at, MomentRecord):
        return When(at)
    return When(None, at.iteration, 0 if at.job is None else names.job_index((*place, "job"), at.job))


def flow_of(line: FlowRecord, names: Names, place: Place) -> Flow:
    """Convert an item of `background`. Raises `InputError` for a flow from a host to itself."""
    for key, name in (("from", line.source), ("to", line.destination)):
        names.check((*place, key), "host", name, names.fabric.host_names)
    if line.source == line.destination:
        message = f"'{line.source}' is the source of the traffic: name another host"
        raise names.file.error((*place, "to"), message)
    return Flow(line.source, line.destination, line.rate, line.frame_bytes)


def span_of(line: FlowRecord, names: Names, place: Place) -> Span:
    """The time of an item of `background`. Raises `InputError` if it ends before it begins."""
    begin, end = (
        None if at is None else moment_of(at, names, (*place, key))
        for key, at in (("at", line.at), ("until", line.until))
    )
    if begin and end and begin.never_before(end):
        raise names.file.error((*place, "until"), f"{end}: a time after `at`, {begin}, is expected")
    return Span(begin, end)


def attack_of(line: HostileRecord, names: Names, place: Place) -> Attack:
    """Convert an item of `hostile`. Raises `InputError` for an attack that is impossible from that host."""
    names.check((*place, "host"), "host", line.host, names.fabric.host_names)
    names.job_index((*place, "job"), line.job)
    try:
        kinds = possible_attacks(names.problem, line.host, line.job, line.attacks)
    except InputError as error:
        raise names.file.error(place, str(error)) from None
    return Attack(line.host, line.job, kinds, line.rate)
