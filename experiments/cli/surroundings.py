"""Checks of the process's environment before any module of the kit is imported: this file imports none of them.

A user's module with the name of a standard one (`random.py` on PYTHONPATH), a closed output, an output that takes
ASCII only, a folder that is gone: each is reported in a line, or worked around.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

FAILED = 2
PLAIN = {"→": ">", "←": "<", "↑": "^", "↓": "v", "×": "x", "µ": "u", "…": "~", "≤": "<=", "Σ": "S"}
"""The replacement for a character of the kit's output that cannot be printed."""


def in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """The error handler of `codecs` for letters that an encoding lacks: a similar letter, else a question mark."""
    assert isinstance(error, UnicodeEncodeError)
    cannot = error.object[error.start : error.end]
    return "".join(PLAIN.get(each, "?") for each in cannot), error.end


codecs.register_error("inakit-plain", in_plain_letters)


def settle_streams() -> None:
    """Make any text printable in any encoding, and reserve the number of a closed input or output.

    A file opened later would otherwise get that number, and the output that libraries print.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="inakit-plain")
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def obstacle() -> str | None:
    """The obstacle to any command, in words, or None."""
    try:
        os.getcwd()  # noqa: PTH109, `Path.cwd` is the same
    except OSError:
        return "the folder in which this command was started no longer exists: cd to one that exists"
    return None


def covering_others() -> str | None:
    """A line about a module on PYTHONPATH that shadows a standard module or a package's; or None."""
    folders = [os.path.realpath(each) for each in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), os.curdir)]
    others = [each for each in sys.path if os.path.realpath(each or os.curdir) not in folders]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or not file:
            continue
        if {os.path.realpath(each) for each in Path(file).parents[:2]}.isdisjoint(folders):
            continue
        if name in sys.stdlib_module_names:
            return in_the_way(Path(file), name, "Python's")
        other = PathFinder.find_spec(name, others)
        if other is not None and os.path.realpath(other.origin or "") != os.path.realpath(file):
            return in_the_way(Path(file), name, "another package's")
    return None


def in_the_way(file: Path, name: str, whose: str) -> str:
    """The line about a module that shadows another one of its name."""
    return (
        f"{file}: this module shadows {whose} '{name}': rename it, or start inakit from another "
        f"folder and without {file.parent} on PYTHONPATH"
    )
