"""The two phases of `make test`: pure tests on all processors, then emulated networks one after the other.

    python tests/phases.py [options and folders of pytest]

Networks of the second phase have the machine to themselves, for their rates are measured. One line for each phase
says how it ended, and the command fails if either does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

PURE, NETWORKS = "pure", "networks"
ALONE = ("root", "alone")
"""Tests with one of these marks belong to the second phase."""

NOTHING_TO_RUN = int(pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--phase", choices=[PURE, NETWORKS], help="only the tests of one phase of `make test`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--phase`, deselect the tests of the other one."""
    phase = config.getoption("phase")
    if phase is None:
        return
    others = [item for item in items if phase_of(item) != phase]
    items[:] = [item for item in items if phase_of(item) == phase]
    config.hook.pytest_deselected(items=others)


def phase_of(item: pytest.Item) -> str:
    return NETWORKS if any(item.get_closest_marker(mark) for mark in ALONE) else PURE


def main(arguments: Sequence[str]) -> int:
    """Run both phases, the second also if the first fails, and return the exit code. An interrupt ends both."""
    processors = len(os.sched_getaffinity(0))
    spread = ["-n", str(processors), "--dist", "loadfile"] if processors > 1 else []
    phases = {
        f"pure tests, on {processors} processors": ["--phase", PURE, *spread],
        "networks, one after the other": ["--phase", NETWORKS],
    }
    codes, lines = [], []
    for name, options in phases.items():
        started = time.monotonic()
        codes.append(run([*options, *arguments]))
        lines.append(f"{name}: {said(codes[-1])} after {time.monotonic() - started:.0f} s")
        if codes[-1] == pytest.ExitCode.INTERRUPTED:
            break
    print("", *lines, sep="\n", flush=True)
    return outcome(codes)


def run(arguments: Sequence[str]) -> int:
    try:
        return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode
    except KeyboardInterrupt:  # pytest has received it as well, and has printed which test it interrupts
        return int(pytest.ExitCode.INTERRUPTED)


def said(code: int) -> str:
    return {0: "passed", NOTHING_TO_RUN: "nothing to run"}.get(code, f"FAILED (exit code {code})")


def outcome(codes: Sequence[int]) -> int:
    """The exit code of the first phase that failed. A phase with nothing to run counts only if both have nothing."""
    failed = [code for code in codes if code not in (0, NOTHING_TO_RUN)]
    return failed[0] if failed else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
