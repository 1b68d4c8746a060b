"""The entry point of `inakit`: whatever cannot be done ends in one line that says what to do, and exit code 2.

A run whose verdict is not VALID ends in exit code 1. A command that a signal ends has 128 plus the signal's number as
its exit code, as in shells. With INAKIT_DEBUG=1 the traceback is printed as well.
"""

from __future__ import annotations

import sys

from inakit.experiments.cli.surroundings import FAILED, covering_others, obstacle, settle_streams


def main() -> None:
    """Run the command that `sys.argv` names, and exit."""
    settle_streams()
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
    """Say why nothing can be done, and exit."""
    print(f"inakit: {line}", file=sys.stderr)
    raise SystemExit(FAILED) from None
