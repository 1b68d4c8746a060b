"""The format of a faults file, and its reader, which answers each mistake in a file with one message.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inakit.experiments.faults.fault_plan import Event, FaultPlan, Link, Moment
from inakit.experiments.faults.fault_values import (
    FRAME,
    LINK,
    SHARE,
    TIME,
    WHOLE,
    choice,
    frame_bytes,
    link_of,
    mean,
    names,
    share,
    spread,
    version,
    whole,
)
from inakit.planner.core.problem import Problem
from inakit.planner.install.background_entries import Flow
from inakit.planner.install.fault_entries import Faults, LinkFaults
from inakit.topo.errors import InputError
from inakit.topo.files.quantities import RATE, lasting, rate
from inakit.topo.files.reader import FileKind, ParsedFile, Section, of_type, read_file
from inakit.traffic.faults.attacks import ATTACKS
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.faults.hostile import Attack, possible_attacks

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
    """The workers of all jobs."""
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
