"""The entry point of `inakit`: an error ends in one line that names the way out, and in exit code 2.

A run whose verdict is not VALID ends in exit code 1. A command that a signal ends has 128 plus the signal's number as
its exit code, as in shells. With INAKIT_DEBUG=1 the traceback is also printed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from inakit.experiments.cli.surroundings import FAILED, covering_others, obstacle, settle_streams

COMPLETION = "_INAKIT_COMPLETE"
"""The variable by which a shell requests completions."""


def main() -> None:
    """Run the command that `sys.argv` names, and exit."""
    settle_streams()
    if COMPLETION in os.environ:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115, a line about an error would disturb the typed command
    if (line := obstacle()) is not None:
        stop(line)
    try:
        from inakit.experiments.cli.ending import run_to_its_end  # noqa: PLC0415, what it imports may be in the way
    except (ImportError, AttributeError):
        if (line := covering_others()) is None:
            raise
        stop(line)
    run_to_its_end()


def stop(line: str) -> None:
    print(f"inakit: {line}", file=sys.stderr)
    raise SystemExit(FAILED) from None
