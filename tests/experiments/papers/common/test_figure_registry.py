"""Figures of the papers are found by name, and listed by the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import inakit, nothing_left

from inakit.experiments.papers.common.figure_registry import FIGURES, figures, find_figure
from inakit.topo.errors import InputError


def test_every_figure_is_listed_and_found() -> None:
    listed = dict(figures())
    assert {tuple(name.split()) for name in listed} == {(p, f) for p, found in FIGURES.items() for f in found}
    assert all(find_figure(*name.split()) is figure for name, figure in listed.items())


def test_unknown_papers_and_figures_are_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown paper 'goatt': did you mean 'goat'"):
        find_figure("goatt", "fig13-emulated")
    with pytest.raises(InputError, match=r"unknown figure of 'goat' 'fig31': .*fig13"):
        find_figure("goat", "fig31")


def test_the_command_lists_and_refuses(tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        listed = inakit("reproduce", at=tmp_path)
        unknown = inakit("reproduce", "goat", "fig31", at=tmp_path)
    assert listed.code == 0
    assert "goat fig13-emulated" in listed.output
    assert unknown.code == 2
    assert "unknown figure of 'goat' 'fig31'" in unknown.error
