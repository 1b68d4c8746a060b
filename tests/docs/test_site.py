"""The site builds without a warning, needs nothing from other hosts, and has every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browsing, missing_for_browser
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


def test_every_page_says_what_it_is(site: Path) -> None:
    """What Lighthouse asks of a page: language, title, description, a width for phones, one first heading."""
    titles = []
    for page in sorted({*site.rglob("*.html")} - {site / "404.html"}):
        text = page.read_text()
        assert 'lang="en"' in text and '<meta name="viewport"' in text and '<meta name="description"' in text, page.name
        assert len(re.findall(r"<h1\b", text)) == 1, page.name
        assert [image for image in re.findall(r"<img[^>]*>", text) if not re.search(r'alt="[^"]', image)] == [], (
            page.name
        )
        titles += re.findall(r"<title>(.*?)</title>", text)
    assert len(titles) == len(set(titles))


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


@pytest.mark.skipif(missing_for_browser() is not None, reason=missing_for_browser() or "")
def test_the_search_is_in_sight_and_finds_a_page_that_is_read_from_the_disk(site: Path) -> None:
    with browsing() as browser:
        browser.visit(site / "papers" / "claims.html")
        browser.run("window.scrollTo(0, document.body.scrollHeight)")
        box = browser.find(".md-search__input")
        top = browser.run("arguments[0].getBoundingClientRect().top", box)
        assert 0 <= top < 900
        box.click()
        box.send_keys("aggregation ratio")
        browser.wait("document.querySelectorAll('.md-search-result__link').length > 2")
        assert any("verdict.html" in link.get_attribute("href") for link in browser.all(".md-search-result__link"))
        assert browser.errors == []
        assert [url for url in browser.requests if not url.startswith("file:")] == []


TASKS = {
    "install without root": "install",
    "own planner compare with papers": "own-planner",
    "P4 counter": "own-p4",
    "training script": "own-training",
    "figure LaTeX study": "studies",
    "why OVERLOADED": "troubleshooting",
    "grade a class": "adopt-the-course",
    "validate a site": "hardware",
    "resume study": "studies",
    "compare two runs": "report",
    "INA ratio": "faq",
    "figure 8 InArt": "papers/inart",
    "p4c": "get-p4c",
    "offline": "install",
    "no sudo": "install",
    "without root": "install",
    "interrupted study": "studies",
    "my own model": "own-training",
}
"""What a new user types into the search, and the page that has to be among the first four."""


@pytest.mark.skipif(missing_for_browser() is not None, reason=missing_for_browser() or "")
def test_the_search_finds_the_page_for_each_task(site: Path) -> None:
    lost = {}
    with browsing() as browser:
        browser.visit(site / "index.html")
        for task, page in TASKS.items():
            box = browser.find(".md-search__input")
            box.click()
            box.clear()
            browser.wait("!document.querySelector('.md-search-result__link')")
            box.send_keys(task)
            links = ".md-search-result__item > .md-search-result__link"
            browser.wait(f"document.querySelectorAll('{links}').length > 0")
            found = [str(link.get_attribute("href")).split("?")[0] for link in browser.all(links)]
            if not any(each.endswith(f"/{page}.html") for each in found[:4]):
                lost[task] = found[:4]
    assert lost == {}


WAYS = {
    "install without root": ("Start", "Install", "without root"),
    "own planner against the papers'": ("Tutorials", "A planner of your own", "Compare it with the papers' planners"),
    "own P4 counter": ("Tutorials", "A P4 program of your own", "A counter in the kit's own program"),
    "own training script": ("Tutorials", "A training script of your own", "What a run asks of a script"),
    "a study's figure in LaTeX": ("How to", "Make studies and figures", "Results, figures, LaTeX"),
    "why OVERLOADED": ("Start", "Troubleshooting", "OVERLOADED"),
    "grade a class": ("How to", "Adopt the course in a week", "Thursday: grade a class"),
    "validate a site": ("How to", "Validate a site, go to hardware", "Validate a site: will it hold?"),
    "resume a study": ("How to", "Make studies and figures", "Run a study, interrupt it, resume it"),
    "compare two runs": ("How to", "Read and compare reports", "Compare two runs, and write other reports"),
    "the meaning of INA ratio": ("Reference", "Glossary", "INA ratio"),
    "the command for Figure 8 of InArt": ("Papers", "InArt", "inakit reproduce inart fig8"),
}
"""What a new user looks for: the part of the site, its entry, and what the page has to show."""


@pytest.mark.skipif(missing_for_browser() is not None, reason=missing_for_browser() or "")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_entries_lead_to_the_page_for_each_task(site: Path, width: int) -> None:
    """On a desk by the tabs and the list at the side, on a phone by the drawer."""
    entry_of = (
        "[...document.querySelectorAll(arguments[0])].find(e => e.checkVisibility() && "
        "e.textContent.trim().replace(/\\s+/g, ' ') === arguments[1])"
    )
    with browsing() as browser:
        for task, (part, entry, words) in WAYS.items():
            browser.visit(site / "index.html", width=width)
            if width < 600:
                browser.run("document.querySelector('label.md-header__button[for=__drawer]').click()")
                parts, entries = ".md-nav--primary label.md-nav__link", ".md-nav--primary a.md-nav__link"
            else:
                parts, entries = ".md-tabs__link", ".md-sidebar--primary a.md-nav__link"
            for kind, name in ((parts, part), (entries, entry)):
                found = browser.run(entry_of, kind, name)
                assert found is not None, f"{task}: no entry '{name}'"
                browser.run("arguments[0].click()", found)
                browser.wait("document.readyState === 'complete'")
            assert words in browser.find(".md-content").text, task


@pytest.mark.skipif(missing_for_browser() is not None, reason=missing_for_browser() or "")
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("names", [("index", "first-ten-minutes", "faults"), pytest.param((), marks=pytest.mark.long)])
def test_pages_fit_the_screen_and_everybody_can_read_them(
    site: Path, width: int, theme: str, names: tuple[str, ...]
) -> None:
    """By axe-core's rules, as reports: contrast, names of what can be pressed, what only a mouse can scroll."""
    pages = [site / f"{name}.html" for name in names] or sorted({*site.rglob("*.html")} - {site / "404.html"})
    found = []
    with browsing() as browser:
        for page in pages:
            browser.visit(page, width=width, theme=theme)
            wide = [f"{browser.overflow()} px too wide"] if browser.overflow() > 0 else []
            found += [f"{page.relative_to(site)}: {fault}" for fault in (*browser.faults(), *wide, *browser.errors)]
    assert found == []
