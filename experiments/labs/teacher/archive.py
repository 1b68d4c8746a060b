"""What p4c makes of a lab's solutions and mutants, kept in one file, for machines without p4c."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping
from pathlib import Path

from inakit.topo.errors import InputError

ARCHIVE = "compiled.json.xz"


def key_of(text: str) -> str:
    """What a program is kept by: the hash of its source."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_archive(folder: Path) -> dict[str, str]:
    """The BMv2 JSON of each source, by `key_of`."""
    path = folder / ARCHIVE
    return dict(json.loads(lzma.decompress(path.read_bytes()))) if path.is_file() else {}


def write_archive(folder: Path, programs: Mapping[str, str]) -> None:
    """Keep programs; the same programs give the same bytes."""
    text = json.dumps(dict(sorted(programs.items())))
    (folder / ARCHIVE).write_bytes(lzma.compress(text.encode(), preset=9))


def program_in(archive: Mapping[str, str], text: str, name: str) -> str:
    """The compiled form of a source; `InputError` if it was not compiled since it changed."""
    if key_of(text) not in archive:
        raise InputError(f"{name} has changed since it was compiled: run 'inakit labs compile', where p4c is")
    return archive[key_of(text)]
