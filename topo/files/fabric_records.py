"""The keys of fabric files, and the conversion to fabrics and back; profiles of chips in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.fabric import (
    MAX_PIPELINES,
    Chip,
    Fabric,
    Host,
    Link,
    Switch,
    contiguous_pipelines,
    port_rates_bps,
)
from inakit.topo.files.quantities import DURATION, RATE, Duration, Flag, Rate, Whole, rate, rate_text, whole
from inakit.topo.files.reader import FileKind, ParsedFile, Record, read_file, validate

# -- Chips in files: the kit's profiles in `chips/`, by name, and users' profiles.
#
#     name: mine
#     values_per_pass: 32
#     slots_per_pipeline: 16384
#     children_per_slot: 32
#     recirculation: 100G
#     pipelines: 4
#     ports_per_pipeline: {100G: 16, 25G: 64}
#     table_entries: 16384
#     multicast_groups: 65535
#     register_kib: 15360
#
# `recirculation` can be omitted if a packet needs one pass, `ports_per_pipeline` if ports do not matter, and
# `register_kib` if it is not known.

PROFILES = {path.stem: path for path in sorted((Path(__file__).parent / "chips").glob("*.yml"))}
"""The profiles of the kit, by the chip's name."""
GENERIC = "generic"
"""The profile of a switch that names no chip: the limits of the P4 program on BMv2."""
FILE_SUFFIXES = (".yml", ".yaml", ".json")
YAML = FileKind("chip profile", 1 << 20, error=FabricError, tells_lines=True)
KIB = 1024


def ports_by_rate(value: object) -> object:
    """Parse a mapping of rates such as '100G' to counts into pairs. Raises `ValueError`."""
    if not isinstance(value, dict) or not value:
        raise ValueError
    return tuple((rate(key), whole(count)) for key, count in value.items())


def falling(pairs: tuple[tuple[float, int], ...]) -> tuple[tuple[float, int], ...]:
    """The pairs, fastest ports first. Raises `ValueError` unless all counts are positive and grow as rates fall."""
    ordered = tuple(sorted(pairs, reverse=True))
    counts = [count for _, count in ordered]
    if min(counts) < 1 or counts != sorted(counts) or len(dict(ordered)) < len(ordered):
        raise ValueError
    return ordered


Count = Annotated[Whole, Field(ge=1)]
Ports = Annotated[tuple[tuple[float, int], ...], BeforeValidator(ports_by_rate), AfterValidator(falling)]
WHOLE = "a whole number, at least 1"
PORTS = "counts by rate, such as {100G: 16, 25G: 64}: a pipeline has more of the slower ports"


class ChipRecord(Record):
    """The keys of a chip's profile, apart from its name."""

    values_per_pass: Count = Field(description=WHOLE)
    slots_per_pipeline: Count = Field(description=WHOLE)
    children_per_slot: Whole = Field(ge=2, le=64, description="a whole number from 2 to 64")
    recirculation: Rate | None = Field(None, description=RATE)
    pipelines: Whole = Field(ge=1, le=8, description="a whole number from 1 to 8")
    ports_per_pipeline: Ports = Field((), description=PORTS)
    table_entries: Count = Field(description=WHOLE)
    multicast_groups: Whole = Field(ge=1, le=65535, description="a whole number from 1 to 65535")
    register_kib: Count | None = Field(None, description=WHOLE)


class NamedChipRecord(ChipRecord):
    """A file that describes one chip."""

    name: StrictStr = Field(min_length=1, description="a name in letters")


def find_chip(name: str) -> Chip:
    """Return the kit's profile of this name, or the chip of a .yml file. Raises `FabricError`."""
    if name.endswith(FILE_SUFFIXES):
        return load_chip(Path(name))
    if name not in PROFILES:
        raise FabricError(f"{unknown_name('chip', name, PROFILES)}, or a profile of your own in a .yml file")
    return profile(name)


@cache
def profile(name: str) -> Chip:
    return load_chip(PROFILES[name])


def load_chip(path: Path) -> Chip:
    """The chip of a file. Raises `FabricError` that names file, place and remedy."""
    file = read_file(path, YAML)
    found = described(file)
    if path not in PROFILES.values() and found.name in PROFILES and found != profile(found.name):
        raise file.error(("name",), f"{found.name} is a chip of the kit with other limits: give yours another name")
    return found


def described(file: ParsedFile) -> Chip:
    """The chip that a parsed file describes. Raises `FabricError`."""
    record = validate(file, NamedChipRecord)
    try:
        return chip_of(record.name, record)
    except FabricError as error:
        raise FabricError(f"{file.path}: {error}") from error


def chip_of(name: str, record: ChipRecord) -> Chip:
    """The chip of a record. Raises `FabricError` for values that contradict each other."""
    said = record.model_dump(exclude={"name", "recirculation", "register_kib"})
    kib = record.register_kib
    return Chip(name, **said, recirculation_bps=record.recirculation, register_bytes=None if kib is None else kib * KIB)


def chip_document(chip: Chip) -> dict[str, Any]:
    """The chip as a profile's document, without its name; `chip_of` restores an equal chip from it."""
    alike = ("values_per_pass", "slots_per_pipeline", "children_per_slot", "pipelines", "table_entries")
    document = {name: getattr(chip, name) for name in (*alike, "multicast_groups")}
    if chip.recirculation_bps is not None:
        document["recirculation"] = rate_text(chip.recirculation_bps)
    if chip.ports_per_pipeline:
        document["ports_per_pipeline"] = {rate_text(bps): count for bps, count in chip.ports_per_pipeline}
    if chip.register_bytes is not None:
        document["register_kib"] = chip.register_bytes // KIB
    return document


# -- The keys of fabric files, and the fabrics that they describe.
#
#     name: two-racks
#     hosts: [h1, h2, h3]
#     switches:
#       leaf1: {tier: 1, pipelines: 2}
#       leaf2: {tier: 1, pipelines: [[1, 2], [3]], ina: false}
#       spine1: {tier: 2, aggregator_slots: 512, aggregation_rate: 10M}
#     links:
#       - {a: h1, b: leaf1, capacity: 20M}
#       - {a: leaf1, b: spine1, capacity: 40M, capacity_back: 10M, delay: 50us, b_port: 1}
#
# Ports that a link does not give are numbered from 1 in the order of the links. `pipelines` is a number of contiguous
# port groups, or the groups. A switch's `chip` is a profile of the kit, a file, or one of the fabric's own:
#
#     chips:
#       mine: {values_per_pass: 32, slots_per_pipeline: 4096, children_per_slot: 32, recirculation: 200G, ...}
#
# A switch with a chip and without `pipelines` fills those of the chip, one after the other.


def pipelines_number(value: object) -> object:
    """Check a number of pipelines; return a list unchanged. Raises `ValueError` for an impossible number."""
    if value is None or isinstance(value, list):
        return value
    if not 1 <= (number := whole(value)) <= MAX_PIPELINES:
        raise ValueError
    return number


Port = Annotated[Whole, Field(ge=0)]


class PartRecord(Record):
    """A switch by itself, without a place in a network."""

    pipelines: Annotated[int | list[list[Whole]] | None, BeforeValidator(pipelines_number)] = Field(
        None, description=f"a number from 1 to {MAX_PIPELINES}, or lists of port numbers"
    )
    ina: Flag = Field(True, description="true or false")
    aggregator_slots: Whole = Field(512, ge=1, description="a whole number, at least 1")
    aggregation_rate: Rate | None = Field(None, description=RATE)
    latency: Duration = Field(0.0, description=DURATION)
    chip: StrictStr | None = Field(None, description="the name of a chip, or the file of a profile")


class SwitchRecord(PartRecord):
    """A switch in a fabric file."""

    tier: Whole = Field(1, description="a whole number, 1 for switches that hosts hang from")


class LinkRecord(Record):
    """A link in a fabric file; without `capacity_back` both directions have the same capacity."""

    a: StrictStr = Field(description="the name of a host or switch")
    b: StrictStr = Field(description="the name of a host or switch")
    capacity: Rate = Field(description=RATE)
    capacity_back: Rate | None = Field(None, description=RATE)
    a_port: Port | None = Field(None, description="a port number")
    b_port: Port | None = Field(None, description="a port number")
    delay: Duration = Field(0.0, description=DURATION)
    optical: Flag = Field(False, description="true or false")


class FabricRecord(Record):
    """A fabric file."""

    name: StrictStr = Field(description="a name in letters")
    hosts: list[StrictStr] = Field(description="a list of names; quote names that YAML reads as another type")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    links: list[LinkRecord] = Field(description="a list of links")
    chips: dict[str, ChipRecord] = Field({}, description="profiles of chips by name")


def fabric_of(record: FabricRecord) -> Fabric:
    """The fabric that a record describes. Raises `FabricError` for what no single key is to blame for."""
    links = tuple(links_of(record))
    chips = {name: chip_of(name, chip) for name, chip in record.chips.items()}
    rates = port_rates_bps(links)
    switches = (
        switch_of(name, switch.tier, switch, rates.get(name, {}), chips) for name, switch in record.switches.items()
    )
    return Fabric(record.name, tuple(map(Host, record.hosts)), tuple(switches), links)


def links_of(record: FabricRecord) -> Iterator[Link]:
    """Yield the links. A port that is not given is the first free one of its switch; a host's port is 0."""
    used = {(link.a, link.a_port) for link in record.links} | {(link.b, link.b_port) for link in record.links}

    def port_of(node: str, given: int | None) -> int:
        if given is not None or node not in record.switches:
            return given or 0
        free = next(port for port in range(1, len(used) + 2) if (node, port) not in used)
        used.add((node, free))
        return free

    for link in record.links:
        ports = port_of(link.a, link.a_port), port_of(link.b, link.b_port)
        back = link.capacity if link.capacity_back is None else link.capacity_back
        yield Link(link.a, link.b, *ports, link.capacity, back, link.delay, link.optical)


def switch_of(
    name: str, tier: int, record: PartRecord, rates_bps: Mapping[int, float], chips: Mapping[str, Chip]
) -> Switch:
    """Return the switch of a record, with one of `chips` or a profile. `rates_bps`: the rates of its ports with links.

    Its pipelines are the listed groups, or the given number of groups of the ports with links, or the chip's,
    filled in order. Raises `FabricError` for an unknown chip.
    """
    try:
        chip = None if record.chip is None else chips.get(record.chip) or find_chip(record.chip)
    except FabricError as error:
        raise FabricError(f"switches.{name}.chip: {error}") from error
    if isinstance(record.pipelines, list):
        pipelines = tuple(map(tuple, record.pipelines))
    elif record.pipelines is None and chip is not None:
        pipelines = chip.fill(rates_bps)
    else:
        pipelines = contiguous_pipelines(max(rates_bps, default=0), record.pipelines or 1)
    return Switch(
        name, tier, pipelines, record.ina, record.aggregator_slots, record.aggregation_rate, record.latency, chip
    )


def document_of(fabric: Fabric) -> dict[str, Any]:
    """The fabric as a complete document of its file; `fabric_of` restores an equal fabric from it."""
    chips = {switch.chip.name: switch.chip for switch in fabric.switches if switch.chip}
    own = {name: chip for name, chip in chips.items() if name not in PROFILES or profile(name) != chip}
    return {
        "name": fabric.name,
        "hosts": [host.name for host in fabric.hosts],
        "switches": {switch.name: switch_document(switch) for switch in fabric.switches},
        "links": [link_document(link) for link in fabric.links],
        "chips": {name: chip_document(chip) for name, chip in own.items()},
    }


def switch_document(switch: Switch) -> dict[str, Any]:
    document = {
        "tier": switch.tier,
        "pipelines": [list(ports) for ports in switch.pipelines],
        "ina": switch.ina,
        "aggregator_slots": switch.aggregator_slots,
    }
    if switch.aggregation_rate_bps is not None:
        document["aggregation_rate"] = rate_text(switch.aggregation_rate_bps)
    if switch.latency_s:
        document["latency"] = switch.latency_s
    if switch.chip is not None:
        document["chip"] = switch.chip.name
    return document


def link_document(link: Link) -> dict[str, Any]:
    document: dict[str, Any] = {
        "a": link.a,
        "b": link.b,
        "a_port": link.a_port,
        "b_port": link.b_port,
        "capacity": rate_text(link.capacity_ab_bps),
    }
    if link.capacity_ba_bps != link.capacity_ab_bps:
        document["capacity_back"] = rate_text(link.capacity_ba_bps)
    if link.delay_s:
        document["delay"] = link.delay_s
    if link.optical:
        document["optical"] = True
    return document
