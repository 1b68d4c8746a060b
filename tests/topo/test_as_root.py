"""What is said to who lacks root is a command that sudo finds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inakit.topo.errors import as_root


def test_the_program_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "inakit"
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "capture", "edge1 1"])
    assert as_root() == f"run `sudo {program} capture 'edge1 1'`"


@pytest.mark.parametrize("argument", ["-c", "-m", "script.py"])
def test_what_python_is_given_is_no_program(argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").touch(mode=0o644)
    monkeypatch.setattr(sys, "argv", [argument])
    assert as_root() == "run the same command with sudo"
