"""The document of a report: the content of its page as plain data.

Nodes and directed links are identified by numbers: a fabric's `nodes` are numbered from 0, and link n of `links` is
the directed links 2n (from `a` to `b`) and 2n + 1 (from `b` to `a`). Lists by directed link have one element per link,
None if unknown. Rates are in bit/s, sizes in bytes, times in seconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DOCUMENT_VERSION = 1
"""The version of the format; a change of the format that breaks older documents increases it."""

ByLink = Sequence[float | None]


@dataclass(frozen=True)
class NodeView:
    """A host or a switch, and its position; `tier` is 0 for hosts. `slots`: the number of slots per pipeline."""

    name: str
    tier: int
    x: float
    y: float
    width: float
    ina: bool = False
    pipelines: int = 0
    slots: int | None = None


@dataclass(frozen=True)
class LinkView:
    """A link between two nodes, by their numbers. `bend`: the height of its arc over the nodes between its ends."""

    a: int
    b: int
    capacity_ab_bps: float
    capacity_ba_bps: float
    delay_s: float
    optical: bool
    bend: float


@dataclass(frozen=True)
class FabricView:
    """A fabric with the positions of its nodes; y grows upwards."""

    name: str
    nodes: Sequence[NodeView]
    links: Sequence[LinkView]
    width: float
    height: float


@dataclass(frozen=True)
class JobView:
    """A job; `workers` and `servers` are numbers of nodes."""

    number: int
    workers: Sequence[int]
    servers: Sequence[int]
    gradient_bytes: int
    iterations: int
    arrival_s: float
    model: str


@dataclass(frozen=True)
class Figure:
    """A figure of a job, or of all jobs where `job` is None, planned and measured."""

    name: str
    job: int | None
    planned: float | None
    measured: float | None


@dataclass(frozen=True)
class AggregatorView:
    """An aggregator of a tree: its switch and pipeline, the number of its senders, and its slots."""

    node: int
    pipeline: int
    senders: int
    first_slot: int
    slots: int


@dataclass(frozen=True)
class TreeView:
    """An aggregation tree. `links` and `result_links` are numbers of directed links."""

    job: int
    number: int
    root: int
    rate_bps: float
    share: float
    policy: str
    links: Sequence[int]
    result_links: Sequence[int]
    aggregators: Sequence[AggregatorView]


@dataclass(frozen=True)
class LoadsView:
    """The planned and measured loads of directed links. Rates are means while the link's jobs send."""

    planned_bps: ByLink = ()
    measured_bps: ByLink = ()
    planned_bytes: ByLink = ()
    measured_bytes: ByLink = ()
    drops: ByLink = ()


@dataclass(frozen=True)
class SwitchView:
    """The counters of a switch. `planned_ratio`, `measured_ratio`: gradient packets received per packet sent."""

    node: int
    planned_ratio: float | None
    measured_ratio: float | None
    counts: Mapping[str, float | None]


@dataclass(frozen=True)
class IterationView:
    """An iteration of a job; `rates_bps` are those of its workers, by the number of the node."""

    job: int
    number: int
    started_s: float | None
    time_s: float
    rates_bps: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EventView:
    """A fault that happened; `lasting_s` is None if it lasted until the end of the run or has no duration."""

    text: str
    nodes: Sequence[str]
    at_s: float | None
    lasting_s: float | None


@dataclass(frozen=True)
class CircuitView:
    """A circuit that existed from `from_s` until `until_s`, and carried nothing before `lit_s`."""

    name: str
    nodes: Sequence[str]
    from_s: float
    lit_s: float
    until_s: float


@dataclass(frozen=True)
class SeriesView:
    """Series in intervals that begin at `starts_s`; the last one ends at `end_s`.

    By a link's number as text: `used`, in thousandths of its capacity; `waiting` and `most_waiting`, the mean and the
    maximum queue in tenths of packets. By a switch's number as text: `held`, in tenths of fragments.
    """

    starts_s: Sequence[float] = ()
    end_s: float = 0.0
    used: Mapping[str, Sequence[int]] = field(default_factory=dict)
    waiting: Mapping[str, Sequence[int]] = field(default_factory=dict)
    most_waiting: Mapping[str, Sequence[int]] = field(default_factory=dict)
    held: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PartView:
    """A part of the kit, or the rest of the machine: the processors and memory that it used in each interval."""

    name: str
    processors: Sequence[float]
    memory_bytes: Sequence[int]


@dataclass(frozen=True)
class UsedView:
    """The use by all parts in intervals from `starts_s` to `ends_s`. `processors`: the machine's number of them."""

    processors: int
    starts_s: Sequence[float]
    ends_s: Sequence[float]
    parts: Sequence[PartView]


@dataclass(frozen=True)
class PlannerView:
    """One planner's plan and its results. `notes`: lines about faults, collisions and packets of other trees."""

    name: str
    color: str
    fabric: int
    verdict: str
    reasons: Sequence[str]
    exact: bool | None
    jobs: Sequence[JobView]
    figures: Sequence[Figure]
    trees: Sequence[TreeView]
    loads: LoadsView
    switches: Sequence[SwitchView]
    series: SeriesView
    iterations: Sequence[IterationView]
    events: Sequence[EventView]
    circuits: Sequence[CircuitView]
    notes: Sequence[str]
    fragments: Mapping[str, Any] | None = None
    used: UsedView | None = None


@dataclass(frozen=True)
class RunView:
    """A run: its verdict, its configuration, and its planners."""

    folder: str
    title: str
    verdict: str
    meaning: str
    reasons: Sequence[str]
    world: str
    mode: str
    seed: int
    scale: float
    command: str
    started: str
    finished: str | None
    versions: Mapping[str, str | None]
    machine: Mapping[str, Any]
    configuration: Mapping[str, Any]
    fabrics: Sequence[FabricView]
    planners: Sequence[PlannerView]


@dataclass(frozen=True)
class Document:
    """A report of one run, of several compared runs, or, without runs, of a study, a site or schedules."""

    title: str
    made_by: str
    runs: Sequence[RunView] = ()
    study: Mapping[str, Any] | None = None
    site: Mapping[str, Any] | None = None
    schedule: Mapping[str, Any] | None = None
    version: int = DOCUMENT_VERSION
