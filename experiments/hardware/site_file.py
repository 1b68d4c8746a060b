"""A site and its file, `site.yml`: a network with its jobs, the failures to withstand, and the margins to keep.

File names in it are relative to its folder. The starter is a site's file with every key explained, and the files that
it names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, StrictStr

from inakit.experiments.run.faults_file import SHARE, share
from inakit.experiments.run.run import MODES
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem, jobs_text, parse_scale
from inakit.experiments.study.setting import Text
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import INA, PROGRAMS, DataPlaneProgram, find_program, program_for
from inakit.planner.own_planners import is_path
from inakit.planner.registry import by_name, find_method
from inakit.topo.errors import InputError, unknown_name, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.fabric_records import FILE_SUFFIXES, PROFILES
from inakit.topo.files.fabrics import FABRIC_SUFFIXES, to_yaml
from inakit.topo.files.quantities import RATE, Rate, Whole
from inakit.topo.files.reader import FileKind, ParsedFile, Place, Record, read_file, validate, write_new

NONE = "none"


@dataclass(frozen=True)
class Withstand:
    """The failures to withstand, one at a time. `links`: pairs of neighbours; `switches`: names; None for all.

    `hosts_may_be_cut_off`: a job that loses a host, because the host's only path fails, may stop.
    """

    links: tuple[tuple[str, str], ...] | None = None
    switches: tuple[str, ...] | None = None
    hosts_may_be_cut_off: bool = False


Share = Annotated[float, BeforeValidator(share)]
Pair = Annotated[list[StrictStr], Field(min_length=2, max_length=2)]
Found = TypeVar("Found")


class Margins(Record):
    """The requirements on rates and loads.

    - `keeps`: the share of its sending rate that every job keeps under each failure
    - `least_rate`: the lowest sending rate of every job in any case, in bit/s; None for no requirement
    - `free`: the share of every link's capacity that gradients and results leave free while nothing fails
    - `within`: the largest difference of rates in virtual time from the planned ones, relative to these
    """

    keeps: Share = Field(0.5, description=SHARE)
    least_rate: Rate | None = Field(None, description=RATE)
    free: Share = Field(0.0, description=SHARE)
    within: Share = Field(0.05, description=SHARE)


class Simulate(Record):
    """The runs in virtual time: the plans without failures, and those of the `worst` failures.

    At most `fragments` of each job's gradient are sent, once: rates do not depend on the duration.
    """

    worst: Annotated[Whole, Field(ge=0)] = Field(3, description="a whole number that is not negative")
    fragments: Annotated[Whole, Field(ge=1)] = Field(256, description="a whole number, at least 1")


@dataclass(frozen=True)
class Site:
    """The input of `inakit validate`.

    `emulate`: the factor of all rates in the emulation; None: no emulation. `program`: the program of the switches.
    """

    name: str
    problem: Problem
    planners: tuple[str, ...]
    withstand: Withstand = field(default_factory=Withstand)
    margins: Margins = field(default_factory=Margins)
    simulate: Simulate = field(default_factory=Simulate)
    emulate: float | None = None
    program: str = INA.name
    mode: str = "reliable"
    seed: int = 0


FILE = FileKind("site file", max_bytes=1 << 20, tells_lines=True)
STARTED = "site"
START = "`inakit validate --starter` writes a starter"

LINKS = "all, none, or a list of pairs of neighbours such as [[leaf1, spine1]]"
SWITCHES = "all, none, or a list of names such as [spine1, spine2]"
CUT_OFF = "fails (a job that loses a host fails the site), or accepted (it may stop)"


class WithstandRecord(Record):
    """The failures in a site's file."""

    links: Literal["all", "none"] | list[Pair] = Field("all", description=LINKS)
    switches: Literal["all", "none"] | list[StrictStr] = Field("all", description=SWITCHES)
    hosts_cut_off: Literal["fails", "accepted"] = Field("fails", description=CUT_OFF)


class SiteRecord(Record):
    """The contents of a site's file."""

    version: Literal[1] = Field(description="1, the version of this format")
    fabric: StrictStr = Field(description="a file (.yml, .graphml), or a fabric such as leafspine:leaves=4,spines=2")
    jobs: StrictStr = Field(description="a file of jobs (.yml); `inakit jobs` writes a starter")
    planners: Annotated[list[StrictStr], Field(min_length=1)] = Field(
        description="a list of planners such as [aro, ./mine.py]"
    )
    withstand: WithstandRecord = Field(WithstandRecord(), description="the keys links, switches, hosts_cut_off")
    margins: Margins = Field(Margins(), description="the keys keeps, least_rate, free, within")
    simulate: Simulate = Field(Simulate(), description="the keys worst, fragments")
    emulate: Text | None = Field(None, description="the factor of all rates in an emulation, such as 1/5000")
    capacity: Text | None = Field(None, description="the rate of all links such as 100G")
    ina: Text | None = Field(None, description="switches that aggregate: a share such as 0.5, or names")
    chip: StrictStr | None = Field(
        None, description=f"of every switch: {', '.join(PROFILES)}, or a profile in a .yml file"
    )
    program: StrictStr | None = Field(None, description=f"the data-plane program: {', '.join(PROGRAMS)}")
    mode: StrictStr = Field("reliable", description=f"one of {', '.join(MODES)}")
    seed: Annotated[Whole, Field(ge=0)] = Field(0, description="a whole number that is not negative")


def load_site(path: Path) -> Site:
    """Load the site of a file. Raises `InputError` with the line, the value, and the expected value."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file; {START}")
    file = read_file(path, FILE)
    record = validate(file, SiteRecord)
    choice = fabric_choice(file, record, path.parent)
    problem = at(file, ("jobs",), lambda: build_problem(choice, JobChoice(path.parent / record.jobs)))
    planners = [str(path.parent.absolute() / name) if is_path(name) else name for name in record.planners]
    for place, name in enumerate(planners):
        at(file, ("planners", place), lambda name=name: find_method(name))  # type: ignore[misc]
    if len(at(file, ("planners",), lambda: by_name(planners))) < len(planners):
        raise file.error(("planners",), "a planner is listed twice")
    if record.mode not in MODES:
        raise file.error(("mode",), str(unknown_name("mode", record.mode, MODES)))
    return Site(
        name=name_of(path.resolve()),
        problem=problem,
        planners=tuple(planners),
        withstand=withstand_of(file, record.withstand, problem.fabric),
        margins=record.margins,
        simulate=record.simulate,
        emulate=scale_of(file, record.emulate),
        program=at(file, ("program",), lambda: program_of(record.program, problem.fabric)).name,
        mode=record.mode,
        seed=record.seed,
    )


def name_of(path: Path) -> str:
    """The name of a site: that of its file, or of its folder if the file has the starter's name."""
    return path.parent.name if path.stem == STARTED and path.parent.name else path.stem


def program_of(name: str | None, fabric: Fabric) -> DataPlaneProgram:
    """The program of that name; without a name, the first that the fabric's chips can run. Raises `InputError`."""
    if name is not None:
        return find_program(name)
    return program_for(switch.chip for switch in fabric.switches if switch.chip)


def at(file: ParsedFile, place: Place, made: Callable[[], Found]) -> Found:
    """Return the result of `made`; an error gets the file and the place."""
    try:
        return made()
    except InputError as error:
        raise file.error(place, str(error)) from error


def fabric_choice(file: ParsedFile, record: SiteRecord, folder: Path) -> FabricChoice:
    """The fabric that a record describes, with files in `folder`. Raises `InputError` at the wrong key."""
    topo, chip = (
        str(folder / name) if name and name.endswith((*FABRIC_SUFFIXES, *FILE_SUFFIXES)) else name
        for name in (record.fabric, record.chip)
    )
    choice = FabricChoice(topo or "", seed=record.seed)
    at(file, ("fabric",), choice.build)
    for key, value in (("capacity", record.capacity), ("ina", record.ina), ("chip", chip)):
        if value is not None:
            choice = replace(choice, **{key: value})  # type: ignore[arg-type]
            at(file, (key,), choice.build)
    return choice


def scale_of(file: ParsedFile, text: str | None) -> float | None:
    """The factor of an emulation, if there is one. Raises `InputError` unless it is above 0."""
    if text is None:
        return None
    factor = at(file, ("emulate",), lambda: parse_scale(text))
    if not 0 < factor <= 1:
        raise file.error(("emulate",), f"{text}: expected a fraction above 0 and at most 1, such as 1/5000")
    return factor


def withstand_of(file: ParsedFile, record: WithstandRecord, fabric: Fabric) -> Withstand:
    """The failures of a record. Raises `InputError` for links and switches that the fabric does not have."""
    links, switches = listed(record.links), listed(record.switches)
    pairs = None if links is None else tuple((one, other) for one, other in links)
    for place, pair in enumerate(pairs or ()):
        if pair not in fabric.capacities_bps:
            message = f"{', '.join(pair)}: fabric '{fabric.name}' has no such link; expected two neighbours"
            raise file.error(("withstand", "links", place), message)
    for what, key, given in (("link", "links", [*map(frozenset, pairs or ())]), ("switch", "switches", switches or ())):
        if len(set(given)) < len(given):
            raise file.error(("withstand", key), f"a {what} is listed twice")
    for place, name in enumerate(switches or ()):
        if name not in fabric.switch_by_name:
            error = unknown_name(f"switch of fabric '{fabric.name}'", name, fabric.switch_by_name)
            raise file.error(("withstand", "switches", place), str(error))
    return Withstand(pairs, switches, record.hosts_cut_off == "accepted")


def listed(value: str | list[Found]) -> tuple[Found, ...] | None:
    """Return a list as a tuple; an empty one for `none`, and None for `all`."""
    if isinstance(value, str):
        return () if value == NONE else None
    return tuple(value)


def write_starter(folder: Path) -> list[Path]:
    """Write `site.yml`, `fabric.yml` and `jobs.yml` into a folder. Raises `InputError` if one of them exists."""
    problem = build_problem(
        FabricChoice("leafspine", leaves=4, spines=3, hosts_per_leaf=3, capacity="25G"),
        JobChoice(workers=8, gradient_bytes=1_000_000, iterations=1),
    )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    texts = {
        folder / "site.yml": Path(__file__).with_name("starter.yml").read_text(encoding="utf-8"),
        folder / "fabric.yml": to_yaml(problem.fabric),
        folder / "jobs.yml": jobs_text(problem, "fabric.yml"),
    }
    write_new(texts, other="folder")
    return list(texts)
