"""The targets of a single switch, each under the marks that say what it needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "stf" / "programs"

EVERYWHERE = [
    pytest.param("interpreted"),
    pytest.param("fast", marks=pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")),
    pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
]
