"""Without a terminal progress is told in words, a line every few seconds; work that is over sooner prints nothing."""

from __future__ import annotations

import re
import time
from io import StringIO

import pytest
from rich.console import Console

from inakit.experiments.run import console as progress
from inakit.experiments.run.console import bar, working


def printed(monkeypatch: pytest.MonkeyPatch, every_s: float, lasting_s: float) -> list[str]:
    """The lines that are printed for work that says it is half done, and then lasts `lasting_s` seconds."""
    monkeypatch.setattr(progress, "LINE_EVERY_S", every_s)
    console = Console(file=StringIO(), force_terminal=False)
    with bar(console, "aro: reliable on bmv2") as report:
        report(0.5)
        time.sleep(lasting_s)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_a_line_every_so_often_says_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, 0.01, 0.2)
    assert len(lines) > 1
    assert re.fullmatch(r"aro: reliable on bmv2: 50% done after \d+ s", lines[0])


def test_work_that_is_over_soon_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 60, 0) == []


def test_work_whose_end_is_not_known_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.01)
    console = Console(file=StringIO(), force_terminal=False)
    with working(console, "lbmm: planning"):
        time.sleep(0.1)
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().startswith("lbmm: planning: after 0 s")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=StringIO(), force_terminal=True)
    with bar(console, "aro") as report:
        report(1.0)
        time.sleep(0.15)
    assert isinstance(console.file, StringIO)
    assert "100%" in console.file.getvalue()
    assert "after" not in console.file.getvalue()
