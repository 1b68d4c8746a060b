"""The site builds without a warning, needs nothing from other hosts, and has every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_lines import INAKIT
from mkdocs.commands.build import build
from mkdocs.config import load_config
from pages import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does it: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


def test_nothing_comes_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*")
    assert [found for page in pages for found in loaded.findall(page.read_text())] == []
    styles = [style.read_text() for style in site.rglob("*.css")]
    assert [found for style in styles for found in re.findall(r"url\([\"']?(?:https?:)?//[^)]*", style)] == []


def whole_commands() -> Iterator[tuple[str, Any]]:
    """Every command by its name, those of a group by both."""
    for name, command in INAKIT.commands.items():
        if parts := getattr(command, "commands", None):
            yield from ((f"{name} {part}", own) for part, own in parts.items())
        else:
            yield name, command


def test_the_page_of_commands_has_every_command_and_option(site: Path) -> None:
    page = (site / "commands.html").read_text()
    for name, command in whole_commands():
        start = re.search(rf"<h2[^>]*>inakit {name}<", page)
        assert start, name
        section = page[start.end() :].split("<h2")[0]
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert [option for option in options if f">{option}<" not in section and option != "--help"] == [], name


def test_pages_from_elsewhere_are_there_and_link_to_each_other(site: Path) -> None:
    for name, words in {"own-planner": "A planner of your own", "switches": "Switch targets"}.items():
        assert f'<h1 id="{words.lower().replace(" ", "-")}">{words}' in (site / f"{name}.html").read_text()
    assert 'href="own-planner.html"' in (site / "contributing.html").read_text()
