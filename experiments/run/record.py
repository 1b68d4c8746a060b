"""The record of a run, which is the content of `run.json`: all data needed to repeat and to judge the run.

`begin_record` makes the record before the run, each planner's results are added to it, and `read_record` reads it.
Parts that a run does not have are omitted from the file.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from inakit.experiments.inspect.capture import Counts
from inakit.experiments.run.planning import ChipCost
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import InputError
from inakit.topo.files.fabric_records import document_of
from inakit.topo.kit import Kit, Source, this_kit
from inakit.traffic.measure.fidelity import TurnedAway
from inakit.traffic.measure.measured import Replayed
from inakit.traffic.measure.verdict import Verdict

RECORD_VERSION = 2
LIBRARIES = ("numpy", "pulp", "highspy", "networkx", "scapy", "pyroute2", "psutil")
OF_THE_OCCASION = ("command", "source", "versions", "machine", "started", "finished")
"""The parts of `run.json` that depend on the time, place and way of starting a run, as `setup_s` of a planner does."""
PROGRAMS = {"clang": "--version", "simple_switch": "--version", "tcpreplay": "--version"}
VERSION = re.compile(r"(?<![\w.])v?\d+\.\d+")
VERSION_S = 10
"""The timeout for a program to print its version, in seconds."""

Number = int | float


class Part(BaseModel):
    """A part of the record. Its keys are its fields only, and unset fields are not written."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def as_json(self) -> dict[str, Any]:
        """The part as in `run.json`."""
        return self.model_dump(exclude_unset=True)


class TotalFigures(Part):
    """Figures of one iteration of all jobs together, which have no common time; rates are in bit/s.

    The sending rate is that of all workers together. `aggregation_ratio`: bytes that workers send for each byte that
    reaches a PS; None if no byte does.
    """

    sending_rate_bps: Number
    ps_ingress_bytes: Number
    communication_time_s: Number | None
    aggregation_ratio: Number | None


class JobFigures(TotalFigures):
    """Figures of one iteration of a job; the sending rate is that of each of its workers."""

    communication_time_s: Number


class RunFigures(JobFigures):
    """Figures of one iteration of every job; the sending rate and the time are those of the slowest job.

    `jobs` has the figures of each job, `total` those of all together. `aggregated_bytes`: bytes that workers send minus
    bytes that PSs receive; `overhead_bytes`: gradients summed over all links that they pass (both from GOAT).
    """

    aggregated_bytes: Number
    overhead_bytes: Number | None
    jobs: dict[str, JobFigures]
    total: TotalFigures


class PlannedFigures(RunFigures):
    """Figures predicted by the evaluator. `switches`: gradient packets that each switch receives per packet sent."""

    switches: dict[str, Number] = {}


class MeasuredFigures(RunFigures):
    """Measured figures: means over iterations. `exact`: whether all sums were exact; None if unknown.

    `overhead_bytes` is None if jobs differ in their number of iterations, because switches do not count by job.
    """

    retransmissions: int
    window_cuts: int = 0
    exact: bool | None


class BandwidthOfJob(Part):
    """A job's bandwidths as nccl-tests define them, in bit/s."""

    algorithm_bandwidth_bps: Number
    bus_bandwidth_bps: Number


class Bandwidth(Part):
    """Bandwidths of every job that ran, and bytes of the whole run by tier of links, and in the core."""

    jobs: dict[str, BandwidthOfJob]
    tier_bytes: dict[str, int]
    core_bytes: int


class Moment(Part):
    """An event in a run: its nodes, and its time and duration in seconds, None if unknown."""

    text: str
    nodes: list[str]
    at_s: float | None
    lasting_s: float | None


class InterferenceRecord(Part):
    """The effects of an interference: in words, as events, as counts of packets, and as `details` of its kind."""

    kind: str
    said: list[str]
    moments: list[Moment] = []
    counts: dict[str, int] = {}
    details: dict[str, Any] = {}


class UsedByPart(Part):
    """The processors and the memory that a part of the kit used in each interval."""

    processors: list[float]
    memory_bytes: list[int]


class Processors(Part):
    """The use by each part in intervals from `starts_s` to `ends_s`, on a machine with this number of `processors`."""

    processors: int
    starts_s: list[float]
    ends_s: list[float]
    parts: dict[str, UsedByPart]


class LinkUse(Part):
    """The utilisation of a link, and the packets in the queue before it."""

    link: str
    utilisation_mean: float
    utilisation_peak: float
    queue_mean_packets: float
    queue_peak_packets: int


class LinksOverTime(Part):
    """The most loaded links and the links with the deepest queues, from series with intervals of `interval_s`."""

    interval_s: float
    most_loaded: list[LinkUse]
    deepest_queues: list[LinkUse]


class Fragments(Part):
    """The times of fragments; one in `every` was followed. `seconds` has the figures of each part of the time."""

    every: int
    followed: int
    incomplete: int
    seconds: dict[str, dict[str, float]]


class Sampled(Part):
    """The part of a run's fragments that was sent `by_packets`, and the largest `error` of a figure, as a share of it.

    `why_whole`: the reason why a run that could have been sampled was sent whole.
    """

    fragments: int
    by_packets: int
    error: Number = 0
    why_whole: str | None = None


class Training(Part):
    """The results of training through the network. `loss_off_floats`: the largest change of a loss by rounding."""

    epochs: list[dict[str, Number]]
    loss: list[float]
    accuracy: list[float]
    as_one_process: bool
    loss_off_floats: float


class PlanRecord(Part):
    """A planner's part of the record before its run: the planned figures, and the cost of the switches' chips."""

    planned: PlannedFigures
    chips: ChipCost | None = None


class Results(Part):
    """The results of a planner's run.

    - `setup_s`: the network's set-up time
    - `collisions`: gradient packets that found their slot taken, or took it
    - `switches`: events of each switch by name, and gradient packets received per packet sent
    - `turned_away`: packets that were not admitted; `ignored_by_endpoints`: packets of other trees
    - `captures`: packet counts of every pcap file
    - `interferences`: the deliberate changes to the run, such as faults
    - `replayed`: the pcaps of a replay; `processors`: for a run in real time; `training`: for `inakit train`
    - `sampled`: for a run of which only a part had to be sent by packets
    """

    setup_s: float | None = None
    collisions: int = 0
    measured: MeasuredFigures | None = None
    bandwidth: Bandwidth | None = None
    verdict: str | None = None
    reasons: list[str] = []
    switches: dict[str, dict[str, Number | None]] = {}
    turned_away: list[TurnedAway] = []
    ignored_by_endpoints: int = 0
    captures: dict[str, Counts] = {}
    interferences: list[InterferenceRecord] = []
    replayed: list[Replayed] = []
    processors: Processors | None = None
    links_over_time: LinksOverTime | None = None
    fragments: Fragments | None = None
    sampled: Sampled | None = None
    training: Training | None = None

    @property
    def exact(self) -> bool | None:
        """Whether all sums were exact; None if unknown."""
        return None if self.measured is None else self.measured.exact

    def repeatable(self) -> dict[str, Any]:
        """The results without the set-up time."""
        return {name: part for name, part in self.as_json().items() if name != "setup_s"}


class PlannerRecord(Results, PlanRecord):
    """A planner's entry: its planned figures and, after its run, its results."""

    def take(self, results: Results) -> None:
        """Copy the set fields of `results` into this entry."""
        for name in results.model_fields_set:
            setattr(self, name, getattr(results, name))


class FabricSummary(Part):
    """The fabric: its size, the ratio of its rates to the described rates, and its description as in a fabric file."""

    name: str
    switches: int
    hosts: int
    workers: int
    scale: float
    description: dict[str, Any]


class Configuration(Part):
    """The user's request. `runs`: for a figure of a paper, the place of each run in it.

    `faults`: the content of the faults file. `code`: the file or package, and the SHA-256, of user-defined planners.
    """

    planners: list[str] = []
    policies: list[str] = []
    headroom: str | None = None
    program: str | None = None
    jobs: list[Job] = []
    faults: dict[str, Any] | None = None
    code: dict[str, dict[str, str]] = {}
    training: dict[str, Any] | None = None
    runs: dict[str, dict[str, Any]] = {}


class SourceCommit(Part):
    """The kit's commit, and whether tracked files differ from it; None if unknown."""

    commit: str | None = None
    changed: bool | None = None


class MachineState(Part):
    """The machine of a run: its processors, memory, load before the run, and operating system."""

    processors: int | None
    memory_bytes: int
    load_before: float
    system: str


class RunRecord(Part):
    """The content of `run.json`."""

    version: int
    verdict: str
    reasons: list[str]
    switch: str
    mode: str
    seed: int
    fabric: FabricSummary
    planners: dict[str, PlannerRecord]
    configuration: Configuration
    command: list[str]
    source: SourceCommit
    versions: dict[str, str | None]
    machine: MachineState
    started: str
    finished: str | None

    @property
    def kit(self) -> Kit:
        return Kit(self.versions["inakit"] or "", Source(self.source.commit, self.source.changed))

    def finish(self, verdict: str, reasons: Iterable[str] = ()) -> None:
        self.verdict, self.reasons, self.finished = verdict, list(reasons), now()

    def repeatable(self) -> dict[str, Any]:
        """The record without the parts that depend on the time and place of the run.

        For a run in virtual time, the rest is the same on every machine that makes the same plans.
        """
        kept = {name: part for name, part in self.as_json().items() if name not in OF_THE_OCCASION}
        return kept | {"planners": {name: each.repeatable() for name, each in self.planners.items()}}


def begin_record(
    problem: Problem,
    *,
    scale: float,
    world: str,
    mode: str,
    seed: int,
    configuration: Configuration,
    planners: Mapping[str, PlanRecord],
) -> RunRecord:
    """Make the record of a run before it begins, with the machine, the versions, and every planner's plan."""
    fabric = problem.fabric
    return RunRecord(
        version=RECORD_VERSION,
        verdict=Verdict.INCOMPLETE,
        reasons=[],
        switch=world,
        mode=mode,
        seed=seed,
        fabric=FabricSummary(
            name=fabric.name,
            switches=len(fabric.switches),
            hosts=len(fabric.hosts),
            workers=len({host for job in problem.jobs for host in job.workers}),
            scale=scale,
            description=document_of(fabric),
        ),
        planners={name: PlannerRecord(**planned.as_json()) for name, planned in planners.items()},
        configuration=configuration,
        command=sys.argv,
        source=SourceCommit(**this_kit().source._asdict()),
        versions=versions(),
        machine=machine(),
        started=now(),
        finished=None,
    )


def read_record(file: Path) -> RunRecord:
    """Read the record in a file. Raises `InputError` for a file that is broken, of another version, or not a record."""
    try:
        content = json.loads(file.read_text())
    except ValueError as error:
        raise cut_short(file) from error
    if not isinstance(content, dict) or "version" not in content:
        raise InputError(f"{file} is not the record of a run: it has no version")
    if content["version"] != RECORD_VERSION:
        kit = (content.get("versions") or {}).get("inakit", "which made it")
        raise InputError(
            f"{file} has version {content['version']}, this inakit reads {RECORD_VERSION}: run again, or make the "
            f"report with the inakit that made the run ({kit})"
        )
    try:
        return RunRecord.model_validate_json(file.read_text())
    except ValidationError as error:
        mistake = error.errors()[0]
        where = ".".join(map(str, mistake["loc"]))
        raise InputError(
            f"{file} does not have the format of this inakit ({where}: {mistake['msg']}): "
            "make the report with the inakit that made the run"
        ) from error


def cut_short(file: Path) -> InputError:
    """The error for a truncated or changed file."""
    return InputError(f"{file} is truncated or was changed after the run: run again, or copy the whole folder")


def now() -> str:
    """The time now (UTC), in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str | None]:
    """The versions of inakit, Python, the kernel, and the libraries and programs of a run; None if missing."""
    found: dict[str, str | None] = {"inakit": this_kit().version, "python": platform.python_version()}
    found["kernel"] = platform.release()
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = None
    return found | {program: program_version(program, flag) for program, flag in PROGRAMS.items()}


def program_version(program: str, flag: str) -> str | None:
    """The first line with a version that `program` prints; None if it is missing, hangs or prints none.

    Warnings can come first: without root, tcpreplay prints one on either stream.
    """
    try:
        answer = subprocess.run(
            [program, flag], capture_output=True, text=True, errors="replace", timeout=VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(filter(VERSION.search, (answer.stdout + "\n" + answer.stderr).splitlines()), None)


def machine() -> MachineState:
    return MachineState(
        processors=psutil.cpu_count(),
        memory_bytes=psutil.virtual_memory().total,
        load_before=psutil.getloadavg()[0],
        system=platform.platform(),
    )
