"""Mistakes in a student's Python, in words for the student."""

from __future__ import annotations

import traceback
from typing import Any


class MistakeError(Exception):
    """Something that the student's code has to do otherwise."""


def said(value: Any) -> str:
    """A value as Python writes it, cut short."""
    return repr(value)[:60]


def place_of(error: Exception, file: str) -> str:
    """An exception, and the line of the student's file that it comes from."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = f"{file}:{line}: " if line else ""
    return f"{where}{type(error).__name__}: {str(error)[:200]}"
