"""Which p4c is installed, and whether it is the one that compiled the programs of this repository."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

COMMITTED = "1.2.4"
"""The p4c that wrote `p4/build/` and the JSON of tests; others number temporaries and write conditions otherwise."""


def installed() -> str:
    """The version of the p4c that is installed; "" without one."""
    if shutil.which("p4c-bm2-ss") is None:
        return ""
    done = subprocess.run(["p4c-bm2-ss", "--version"], capture_output=True, text=True, check=True, timeout=60)
    found = re.search(r"Version (\d+\.\d+\.\d+)", done.stdout + done.stderr)
    return found[1] if found else "of unknown version"


INSTALLED = installed()
NEEDS_P4C = pytest.mark.skipif(not INSTALLED, reason="needs p4c (p4c-bm2-ss is not installed)")
NEEDS_COMMITTED_P4C = pytest.mark.skipif(
    INSTALLED != COMMITTED, reason=f"needs p4c {COMMITTED} ({INSTALLED or 'none'} is installed)"
)
