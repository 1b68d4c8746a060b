"""Runs PTF on a folder of tests, with a switch of the kit instead of interfaces."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from inakit.switch.testing.ptf.platform import PtfOptions
from inakit.topo.extras import lacking

PLATFORMS = Path(__file__).with_name("platforms")


def run_ptf(tests: Path, options: PtfOptions, more: Sequence[str] = ()) -> int:
    """Run PTF's tests in a folder against a switch with these options, and return PTF's exit code.

    `more` are further arguments of PTF, such as `--test-params` and the names of tests.
    """
    platform = ["--platform", "inakit", "--platform-dir", str(PLATFORMS), "--platform-args", options.text()]
    command = [sys.executable, ptf_script(), "--test-dir", str(tests), "--allow-user", *platform, *more]
    return subprocess.run(command, check=False).returncode


def ptf_script() -> str:
    """The file of the command `ptf`; `MachineError` if it is not installed."""
    beside = Path(sys.executable).with_name("ptf")
    found = str(beside) if beside.is_file() else shutil.which("ptf")
    if found is None:
        raise lacking("ptf", "inakit switch ptf")
    return found
