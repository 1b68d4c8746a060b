"""The planner of planner/README.md, registered in this process as one that a user has added."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import inakit.planner.own
from inakit.experiments.papers.common import own_planners
from inakit.experiments.styles import method_styles
from inakit.planner.registry import METHODS

NAME = "racks-in-turn"


def add_racks_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the README's planner until the test ends."""
    text = (Path(inakit.planner.own.__file__).parents[1] / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    module = ModuleType("racks_in_turn")
    exec(code, module.__dict__)
    monkeypatch.setitem(METHODS, NAME, module.METHOD)
    for user in (own_planners, method_styles):
        monkeypatch.setattr(user, "OWN", {NAME: module.METHOD})
