"""What the chip's compiler said of `p4/ina_hw`, recorded beside the programs: `p4/build/ina_hw.resources.json`.

The chip's compiler is not needed to read it. The record has the hash of the sources that were compiled, so that figures
of older sources are told apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from inakit.experiments.hardware.compiled.logs import Document, log, read_manifest, read_resources
from inakit.experiments.hardware.compiled.resources import Amount, Resources
from inakit.planner.install.data_plane_program import BUILD, INA_HW
from inakit.topo.errors import InputError

SOURCES = BUILD.parent / "ina_hw"
RECORD = BUILD / "ina_hw.resources.json"
VALUES_PER_PASS = "VALUES_PER_PASS"
"""What a compilation defines to sum another number of values in a pass than the program does by itself."""
OTHER_SHELL = "v1model.p4"


@dataclass(frozen=True)
class Recorded:
    """What `ina_hw` takes with `values` values a pass, compiled from sources with the hash `source_sha256`."""

    values: int
    source_sha256: str
    resources: Resources

    @property
    def is_stale(self) -> bool:
        """Whether the sources have changed since."""
        return self.source_sha256 != source_sha256()


def source_sha256(folder: Path = SOURCES) -> str:
    """The hash of the hashes and names of what the chip's compiler reads: all sources but the shell for v1model."""
    hashes = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in chip_sources(folder))
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def chip_sources(folder: Path) -> list[Path]:
    """The sources of a folder that the chip's compiler reads, in order of their names."""
    return sorted(file for file in folder.glob("*.p4") if file.name != OTHER_SHELL)


def recorded(chip: str, record: Path = RECORD) -> tuple[Recorded, ...]:
    """What is recorded for a chip, by the name of its profile: an entry for each number of values a pass.

    Raises `InputError` for a record that is damaged.
    """
    if not record.is_file():
        return ()
    document = log(record)
    try:
        found = [recorded_of(each) for each in document["compiled"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{record}: not of `inakit hardware record`: {error!r} is missing or wrong") from error
    return tuple(each for each in found if each.resources.chip == chip)


def recorded_of(document: Document) -> Recorded:
    """An entry of the record."""
    fields: Document = {
        key: Amount(**value) if isinstance(value, dict) else value for key, value in document["resources"].items()
    }
    return Recorded(document["values"], document["source_sha256"], Resources(**fields))


def record_logs(folders: Sequence[Path], record: Path = RECORD, sources: Path = SOURCES) -> list[Recorded]:
    """Write the record from folders that the compiler wrote of the sources as they are now; what is recorded is lost.

    Raises `InputError` for a folder of something else, and for one that is older than the sources.
    """
    found = [compiled_now(folder, sources) for folder in folders]
    document = {"compiled": [asdict(each) for each in found]}
    record.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return found


def compiled_now(folder: Path, sources: Path) -> Recorded:
    """What a folder says that the sources take."""
    resources = read_resources(folder)
    written = (folder / "manifest.json").stat().st_mtime
    changed = [file.name for file in chip_sources(sources) if file.stat().st_mtime > written]
    if changed:
        raise InputError(f"{folder}: older than {', '.join(changed)} in {sources}: compile again")
    return Recorded(values_of(read_manifest(folder)), source_sha256(sources), resources)


def values_of(manifest: Document) -> int:
    """How many values a pass sums, by what the compilation defined."""
    defined = dict(each.partition("=")[::2] for each in manifest["programs"][0]["source_files"]["defines"])
    return int(defined.get(VALUES_PER_PASS, INA_HW.values_per_pass))
