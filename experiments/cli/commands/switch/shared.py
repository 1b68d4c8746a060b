"""What several subcommands of `inakit switch` have: arguments, an exit code, and where they say what is no result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

Program = Annotated[Path, typer.Argument(help="a P4 program as BMv2 JSON, which p4c-bm2-ss writes")]
Target = Annotated[str, typer.Option(help="fast (in this process, without root), kernel or bmv2 (both need root)")]

FAILED = 1


def say(line: str) -> None:
    """Print a line that is no result."""
    print(line, file=sys.stderr)
