"""The compiled form of a program that a network file names as P4 source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from inakit.topo.errors import InputError, MachineError

COMPILER = "p4c-bm2-ss"


def compiled(program: Path, scratch: Path) -> Path:
    """The BMv2 JSON of a program: itself, or what p4c makes of the source, in the folder `scratch`."""
    if program.suffix == ".json":
        return program
    if shutil.which(COMPILER) is None:
        raise MachineError(
            f"{program} is source, and {COMPILER} is not installed: compile it elsewhere, and give it with --program"
        )
    result = scratch / f"{program.stem}.json"
    done = subprocess.run(
        [COMPILER, "--std", "p4-16", "-o", str(result), str(program)], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise InputError(f"{program}: {COMPILER} refuses it:\n{done.stderr.strip()}")
    return result
