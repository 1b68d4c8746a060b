"""P4 programs of others as BMv2 JSON, compiled once and kept."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECONDS_TO_COMPILE = 600
ARCHITECTURE = "V1Switch"


@dataclass(frozen=True)
class Compiled:
    """A program's JSON file, or None with the compiler's first error."""

    json: Path | None
    error: str = ""


def v1model_programs(folder: Path) -> Iterator[Path]:
    """The P4 files below `folder` that are whole programs for v1model, not parts of others."""
    for path in sorted(folder.rglob("*.p4")):
        if ARCHITECTURE in path.read_text(errors="replace") and path.name != "v1model.p4":
            yield path


def compiled_programs(folder: Path) -> Iterator[Path]:
    """The files of BMv2 JSON below `folder`."""
    for path in sorted(folder.rglob("*.json")):
        text = path.read_text(errors="replace")
        if '"parse_states"' in text and '"pipelines"' in text:
            yield path


def compile_p4(program: Path, result: Path, folder: Path | None = None) -> Compiled:
    """Compile `program` to the file `result`, unless it is there. It may include files from anywhere in `folder`."""
    if result.exists():
        return Compiled(result)
    result.parent.mkdir(parents=True, exist_ok=True)
    above = [each for each in program.parents if folder in (None, each, *each.parents)]
    included = [word for each in above[: None if folder else 1] for word in ("-I", str(each))]
    command = ["p4c-bm2-ss", "--std", "p4-16", *included, "-o", str(result), str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_COMPILE, check=False)
    except subprocess.TimeoutExpired:
        return Compiled(None, f"p4c took over {SECONDS_TO_COMPILE} s")
    if result.exists():
        return Compiled(result)
    return Compiled(None, next((line for line in done.stderr.splitlines() if "error" in line), "no error said"))
