"""Chips in files: the profiles of the kit in `chips/`, by name, and a user's own in a file.

    name: mine
    values_per_pass: 32
    slots_per_pipeline: 16384
    children_per_slot: 32
    recirculation: 100G
    pipelines: 4
    ports_per_pipeline: {100G: 16, 25G: 64}
    table_entries: 16384
    multicast_groups: 65535
    register_kib: 15360

`recirculation` may be left out where a packet needs one pass, `ports_per_pipeline` where ports do not matter, and
`register_kib` where it is not known.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.chips import Chip
from inakit.topo.files.quantities import RATE, Rate, Whole, rate, rate_text, whole
from inakit.topo.files.reader import FileKind, ParsedFile, read_file
from inakit.topo.files.validation import Record, validate

PROFILES = {path.stem: path for path in sorted((Path(__file__).parent / "chips").glob("*.yml"))}
"""The profiles of the kit, by the chip's name."""
GENERIC = "generic"
"""The profile of a switch that names no chip: what the P4 program takes on BMv2."""
FILE_SUFFIXES = (".yml", ".yaml", ".json")
YAML = FileKind("chip profile", 1 << 20, error=FabricError, tells_lines=True)
KIB = 1024


def ports_by_rate(value: object) -> object:
    """A mapping of rates as people write them to counts, as pairs. Raises `ValueError`."""
    if not isinstance(value, dict) or not value:
        raise ValueError
    return tuple((rate(key), whole(count)) for key, count in value.items())


def falling(pairs: tuple[tuple[float, int], ...]) -> tuple[tuple[float, int], ...]:
    """The pairs, the fastest ports first. Raises `ValueError` unless slower ports are more, and all are some."""
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
    """All that the profile of a chip says, apart from its name."""

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
    """The profile of that name, or the chip that a .yml file describes. Raises `FabricError`."""
    if name.endswith(FILE_SUFFIXES):
        return load_chip(Path(name))
    if name not in PROFILES:
        raise FabricError(f"{unknown_name('chip', name, PROFILES)}, or a profile of your own in a .yml file")
    return profile(name)


@cache
def profile(name: str) -> Chip:
    """A profile of the kit."""
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
    """The chip of a record. Raises `FabricError` for what no single key is to blame for."""
    return Chip(
        name,
        record.values_per_pass,
        record.slots_per_pipeline,
        record.children_per_slot,
        record.pipelines,
        record.table_entries,
        record.multicast_groups,
        record.recirculation,
        record.ports_per_pipeline,
        None if record.register_kib is None else record.register_kib * KIB,
    )


def chip_document(chip: Chip) -> dict[str, Any]:
    """The chip in the words of its profile, without its name: `chip_of` makes an equal chip of it."""
    document: dict[str, Any] = {
        "values_per_pass": chip.values_per_pass,
        "slots_per_pipeline": chip.slots_per_pipeline,
        "children_per_slot": chip.children_per_slot,
        "pipelines": chip.pipelines,
        "table_entries": chip.table_entries,
        "multicast_groups": chip.multicast_groups,
    }
    if chip.recirculation_bps is not None:
        document["recirculation"] = rate_text(chip.recirculation_bps)
    if chip.ports_per_pipeline:
        document["ports_per_pipeline"] = {rate_text(bps): count for bps, count in chip.ports_per_pipeline}
    if chip.register_bytes is not None:
        document["register_kib"] = chip.register_bytes // KIB
    return document
