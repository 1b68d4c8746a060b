"""A student's Python as a module, and the mistakes in it, in words for the student."""

from __future__ import annotations

import sys
import traceback
import types
from typing import Any


class MistakeError(Exception):
    """Something that the student's code has to do otherwise."""


def module_of(text: str, name: str) -> Any:
    """The module `name` of a student's file, which runs the file."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def said(value: Any) -> str:
    """A value as Python writes it, cut short."""
    return repr(value)[:60]


def told(error: Exception, file: str) -> str:
    """What is wrong with a student's file, of what was raised when it ran."""
    if isinstance(error, MistakeError):
        return str(error)
    if isinstance(error, MemoryError):
        return "it needs more memory than it may use"
    return place_of(error, file)


def place_of(error: Exception, file: str) -> str:
    """An exception, and the line of the student's file that it comes from."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = f"{file}:{line}: " if line else ""
    return f"{where}{type(error).__name__}: {str(error)[:200]}"
