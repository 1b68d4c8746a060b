"""Runs `inakit emulate`, and repeats a run that a busy machine has spoiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Answer, inakit, nothing_left

TRIES = 3
"""How often a run is tried. A busy machine makes a run OVERLOADED, which is no failure of the kit."""


def emulate(at: Path, *arguments: str) -> tuple[Answer, dict[str, Any]]:
    """Run the command, and return its answer and its `run.json`."""
    with nothing_left():
        answer = inakit("emulate", "--keep-going", "--results", str(at), *arguments, at=at)
    return answer, json.loads((at / "latest" / "run.json").read_text())


def valid_run(at: Path, *arguments: str) -> dict[str, Any]:
    """The `run.json` of a VALID run. Skips the test if the machine is too busy for one."""
    for _ in range(TRIES):
        answer, run = emulate(at, *arguments)
        assert answer.code == (0 if run["verdict"] == "VALID" else 1), answer
        if run["verdict"] == "VALID":
            return run
    pytest.skip(f"this machine is too busy for a valid run: {run['reasons'][:3]}")
