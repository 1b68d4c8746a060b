"""How a command ends: its errors and signals become one line and an exit code."""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from inakit.experiments.cli.surroundings import FAILED, covering_others
from inakit.topo.errors import InakitError, lacking_import, output_error, system_error
from inakit.topo.live.signals import ENDING, code_of, ignore_signals, signals_unwind
from inakit.topo.ownership import give, given_to_owners

DEBUG = "INAKIT_DEBUG"
OUT_OF_MEMORY = (
    "this process is out of memory: raise its limit (ulimit -v, the container's limit), end other programs, "
    "or choose a smaller fabric or gradient"
)


def run_to_its_end() -> None:
    """Run the command that `sys.argv` names, and exit."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns about its cache
    with given_to_owners(), signals_unwind():
        try:
            gc.disable()  # until the command is loaded: collections during imports take a fifth of the time
            from inakit.experiments.cli.app import app  # noqa: PLC0415, a signal may already come while the program loads

            gc.freeze()
            app()
        except (KeyboardInterrupt, SystemExit) as ended:
            code = ended.code if isinstance(ended, SystemExit) else code_of(signal.SIGINT)
            if not isinstance(code, int) or code not in map(code_of, ENDING):
                flush_output()
                raise
            ignore_signals()
            leave(code, "interrupted; every process and interface of the run has been removed", ended)
        except Exception as error:
            leave(FAILED, said(error), error)


def said(error: Exception) -> str:
    """The line about an error: its cause and the way out or, for an unforeseen error, the file of its traceback."""
    foreseen = str(error) if isinstance(error, InakitError) else known(error)
    if foreseen is not None:
        return foreseen
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(str(error).split())
    return f"{type(error).__name__}: {what} ({Path(last.filename).name}:{last.lineno}); {kept(error)}"


def known(error: Exception) -> str | None:
    """The meaning of an error of Python or of the system, and the way out; None for an unforeseen error."""
    told: object = None
    if isinstance(error, MemoryError):
        told = OUT_OF_MEMORY
    elif isinstance(error, ImportError | AttributeError):
        told = covering_others() or (lacking_import(error, "this") if isinstance(error, ImportError) else None)
    elif isinstance(error, RuntimeError) and "start new thread" in str(error):
        told = system_error(OSError(errno.EAGAIN, ""))
    elif isinstance(error, OSError):
        told = output_failure(error) or output_error(error) or system_error(error)
    return None if told is None else str(told)


def kept(error: Exception) -> str:
    """Write the traceback of an unexpected error to a file, and return the line that names the file."""
    text = "".join(traceback.format_exception(error))
    with suppress(OSError):
        number, name = tempfile.mkstemp(".txt", "inakit-traceback-")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        return f"inakit did not foresee this: please report it, with the traceback, which is in {name}"
    return f"inakit did not foresee this: please report it, with the traceback, which {DEBUG}=1 prints"


def output_failure(error: OSError) -> str | None:
    """The line for an output that cannot be written to; None if the error is about something else."""
    if error.filename is not None or sys.stdout is None:
        return None
    try:
        os.write(sys.stdout.fileno(), b"\n")  # a flush would not fail again: Python drops text that it could not write
    except OSError as again:
        if again.errno != error.errno:
            return None
        where = "free some space on its disk, or " if error.errno == errno.ENOSPC else ""
        why = os.strerror(error.errno or 0)
        return f"the output of this command cannot be written: {why}: {where}redirect it to another file"
    return None


def flush_output() -> None:
    """Flush the output; a pipe whose reader has ended is no error."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            leave(FAILED, said(error), error)
        discard_output()


def discard_output() -> None:
    """Discard the rest of the output, for which Python would otherwise print an error of its own at its end."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(code: int, message: str, error: BaseException) -> None:
    """Print the message and the notes that were added to the error, in one line, and exit with `code`."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    line = "; ".join((f"inakit: {message}", *dict.fromkeys(notes(error))))
    colored = sys.stderr is not None and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    color = ("\033[33m" if code > FAILED else "\033[31m", "\033[0m") if colored else ("", "")
    with suppress(OSError):
        print(line.join(color), file=sys.stderr, flush=True)
    try:
        sys.stdout.flush()
    except (OSError, AttributeError):
        discard_output()
    if threading.active_count() > 1 and code > FAILED:
        give()
        os._exit(code)  # a solver that runs in a thread cannot be told to end
    raise SystemExit(code) from None


def notes(error: BaseException | None) -> Iterator[str]:
    """Yield the notes of an error and of its causes: typer replaces a KeyboardInterrupt by an error of its own."""
    while error is not None:
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__
