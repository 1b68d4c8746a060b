"""A folder in which the kit's switches bear BMv2's names, for scripts that start `simple_switch`."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from inakit.topo.c_library import cache_directory
from inakit.topo.errors import writing

ROOT = Path(__file__).parents[3]
"""The folder that has the package `inakit`."""
NAMES = ("simple_switch", "simple_switch_grpc")
"""The programs of the folder, each the name of a function of `inakit.switch.server.serve`."""


def make_shim() -> Path:
    """The folder, with both programs in it. Each installation of the kit has its own."""
    folder = cache_directory() / f"shim-{hashlib.sha256(f'{ROOT} {sys.executable}'.encode()).hexdigest()[:8]}"
    with writing(folder):
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            put(folder / name, program_text(name))
    return folder


def program_text(name: str) -> str:
    """A program that runs a switch with the Python that runs now."""
    lines = (f"#!{sys.executable}", "import sys", f"sys.path.insert(0, {str(ROOT)!r})")
    return "\n".join((*lines, f"from inakit.switch.server.serve import {name}", f"{name}()", ""))


def put(path: Path, text: str) -> None:
    """Write a program whole: another process may start it at any moment."""
    if path.exists() and path.read_text() == text:
        return
    whole = path.with_name(f"{path.name}.{os.getpid()}")
    whole.write_text(text)
    whole.chmod(0o755)
    whole.replace(path)
