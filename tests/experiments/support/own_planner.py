"""The planner that `inakit planners new` writes, taking part in this process like one that a user has added."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.planner import racks_in_turn
from inakit.planner.registry import OWN

NAME = "racks-in-turn"


def add_racks_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the planner take part until the test ends."""
    monkeypatch.setattr(OWN, "all", {})
    monkeypatch.setattr(OWN, "added", [])
    assert OWN.add(str(Path(racks_in_turn.__file__))) == NAME
