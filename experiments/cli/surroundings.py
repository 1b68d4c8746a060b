"""What surrounds the command, seen to before any module of the kit is imported: it imports none of them itself.

A module of the user's own that has the name of one of Python's (`random.py` on PYTHONPATH), output that is closed or
takes ASCII only, a folder that is gone: each is said in a line, or is got round.
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
"""What stands for a character of the kit's output where it cannot be printed."""


def in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """The handler of `codecs` for what an output's encoding lacks: a letter that resembles it, else a question mark."""
    assert isinstance(error, UnicodeEncodeError)
    cannot = error.object[error.start : error.end]
    return "".join(PLAIN.get(each, "?") for each in cannot), error.end


codecs.register_error("inakit-plain", in_plain_letters)


def settle_streams() -> None:
    """Let any text be printed in any encoding, and give a closed input or output the number that is its own.

    A file that is opened later would have the number of a closed one, and get what libraries print.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="inakit-plain")
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def obstacle() -> str | None:
    """What is in the way of any command, in words, or None."""
    try:
        os.getcwd()  # noqa: PTH109, `Path.cwd` is the same
    except OSError:
        return "the folder in which this command was started is gone: cd to one that is there"
    return None


def covering_others() -> str | None:
    """A line about a module on PYTHONPATH that Python found in the place of one of its own or of a package; or None."""
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
    """The line about a module that is found before another one of its name."""
    return (
        f"{file}: this module is found in the place of {whose} '{name}': rename it, or start inakit from another "
        f"folder and without {file.parent} on PYTHONPATH"
    )
