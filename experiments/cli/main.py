"""The entry point of `inakit`: an error that the user can correct ends in one line and exit code 2.

A run whose verdict is not VALID ends in exit code 1. A command that a signal ends has 128 plus the signal's number as
its exit code, as in shells.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

from topo.errors import InakitError, output_error
from topo.live.signals import ENDING, code_of, ignore_signals, signals_unwind
from topo.ownership import give, given_to_owners

FAILED = 2


def main() -> None:
    """Run the command that `sys.argv` names, and exit."""
    with given_to_owners(), signals_unwind():
        try:
            from experiments.cli.app import app  # noqa: PLC0415, a signal may already come while the program loads

            app()
        except InakitError as error:
            leave(FAILED, f"{error}", error)
        except OSError as error:
            if (told := output_error(error)) is None:
                raise
            leave(FAILED, f"{told}", error)
        except (KeyboardInterrupt, SystemExit) as ended:
            code = ended.code if isinstance(ended, SystemExit) else code_of(signal.SIGINT)
            if not isinstance(code, int) or code not in map(code_of, ENDING):
                raise
            ignore_signals()
            leave(code, "interrupted; every process and interface of the run has been removed", ended)


def leave(code: int, message: str, error: BaseException) -> None:
    """Print the message and the notes that were added to the error, in one line, and exit with `code`."""
    line = "; ".join((f"inakit: {message}", *dict.fromkeys(notes(error))))
    color = ("\033[33m" if code > FAILED else "\033[31m", "\033[0m") if colored() else ("", "")
    print(line.join(color), file=sys.stderr, flush=True)
    if threading.active_count() > 1 and code > FAILED:
        sys.stdout.flush()
        give()
        os._exit(code)  # a solver that runs in a thread cannot be told to end
    raise SystemExit(code) from None


def colored() -> bool:
    """Whether errors may be coloured: on a terminal, unless NO_COLOR is set."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def notes(error: BaseException | None) -> Iterator[str]:
    """The notes of an error and of those that caused it: typer replaces a KeyboardInterrupt by an error of its own."""
    while error is not None:
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__
