"""What the README and the site say is so: files, folders, names, links, pictures; and their code runs."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pages import PAGES, ROOT, SPAN, blocks
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.experiments.run import faults_file
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.registry import METHODS, OWN
from inakit.traffic.faults.attacks import ATTACKS

DOCS = ROOT / "docs"
FOLDERS = ("p4", "topo", "switch", "planner", "traffic", "experiments", "tests", "docs", "vagrant")
PYTHON_FOLDERS = FOLDERS[1:6]
TO_BE_WRITTEN = ("planner/own/racks_in_turn.py",)
"""Files that a page tells its reader to write."""
GENERATED = ("commands.md", "papers/claims.md")
"""Pages that exist on the site only."""
MOST_LINES = MOST_COLUMNS = 120

by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@by_name
def test_files_and_folders_that_a_page_names_exist(page: Path) -> None:
    spans = [span.strip() for span in SPAN.findall(page.read_text()) if re.fullmatch(r"[\w./-]+", span.strip())]
    named = {span for span in spans if span.split("/")[0] in FOLDERS and "/" in span}
    assert sorted(path for path in named if not (ROOT / path).exists() and path not in TO_BE_WRITTEN) == []


@by_name
def test_links_between_files_of_the_repository(page: Path) -> None:
    targets = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", page.read_text())
    assert [to for to in targets if not (page.parent / to).exists() and to not in GENERATED] == []


@by_name
def test_pictures_are_described(page: Path) -> None:
    assert "![](" not in page.read_text()


def test_the_readme_is_a_door() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > MOST_COLUMNS] == []


def test_the_first_ten_minutes_show_the_table_of_the_readme() -> None:
    table = re.search(
        r"^ {20,}sending rate.*?verdict: VALID", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert table
    assert dedent(table[0]) in dedent((DOCS / "first-ten-minutes.md").read_text())


def test_the_architecture_has_every_room() -> None:
    text = (DOCS / "architecture.md").read_text()
    parts = re.split(r"^\*\*`(\w+)/`\*\*", text, flags=re.MULTILINE)
    for folder, part in zip(parts[1::2], parts[2::2], strict=True):
        if folder not in PYTHON_FOLDERS:
            continue
        rows = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        said = {room for row in rows for room in re.findall(r"`(\w+)/`", row)}
        assert said == {init.parent.name for init in (ROOT / folder).glob("*/__init__.py")}, folder


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("planners.md", METHODS.keys() - OWN.keys()),
        ("data-plane.md", POLICIES),
        ("faults.md", ATTACKS),
        ("files.md", {key for name, keys in vars(faults_file).items() if name.endswith("KEYS") for key in keys}),
        ("files.md", faults_file.KINDS),
    ],
)
def test_a_page_has_every_name(page: str, names: set[str]) -> None:
    assert sorted(set(names) - set(SPAN.findall((DOCS / page).read_text()))) == []


def test_the_events_of_the_data_plane_are_those_of_the_program() -> None:
    program = set(re.findall(r"EVENT_(\w+)", (ROOT / "p4" / "ina.p4").read_text()))
    part = (DOCS / "data-plane.md").read_text().split("## The life of a slot")[1].split("## Slot policies")[0]
    said = {span for span in SPAN.findall(part) if span.isupper()}
    assert said <= program and len(said) > 5


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.language in ("python", "pycon") for block in blocks(page))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_python_in_a_page_runs(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page one after the other, sessions with what they print, tests with the fixture that they ask for."""
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, block.place, "exec"), namespace)
            for name in [name for name in namespace if name.startswith("test_")]:
                namespace.pop(name)(request.getfixturevalue("p4_switch"))
        elif block.language == "pycon":
            session = doctest.DocTestParser().get_doctest(block.text, namespace, block.place, str(page), block.line)
            outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, clear_globs=False)
            assert not outcome.failed, block.place


def test_pictures_are_what_their_commands_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`inakit topo ... --output NAME` in a page that shows `pictures/NAME.svg` draws this picture."""
    monkeypatch.chdir(tmp_path)
    shown = {picture for page in PAGES for picture in re.findall(r"pictures/([\w-]+)\.svg", page.read_text())}
    assert shown == {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    text = (DOCS / "first-ten-minutes.md").read_text()
    drawn = re.findall(r"^inakit (topo .* --output ([\w-]+))$", text, re.MULTILINE)
    assert {name for _, name in drawn} == shown
    for arguments, name in drawn:
        assert CliRunner().invoke(app, arguments.split()).exit_code == 0
        made, kept = (tmp_path / f"{name}.svg").read_text(), (DOCS / "pictures" / f"{name}.svg").read_text()
        assert lines_of(made) == lines_of(kept), f"`inakit {arguments}` draws another picture now: keep it"


def lines_of(picture: str) -> list[str]:
    """The lines of an SVG without its date, its program and the names that it draws at random."""
    text = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    return re.sub(r"#?\b[a-z][0-9a-f]{10}\b", "", text).split("\n")


def test_the_gallery_has_a_picture_and_its_command_for_each_thing() -> None:
    text = (DOCS / "gallery.md").read_text()
    parts = text.split("\n## ")[1:]
    assert len(parts) > 6
    for part in parts:
        assert re.search(r"^```sh\ninakit ", part, re.MULTILINE) and re.search(
            r"^!\[.+\]\(pictures/", part, re.MULTILINE
        )
    shown = {name for page in PAGES for name in re.findall(r"pictures/([\w.-]+)\)", page.read_text())}
    assert shown == {path.name for path in (DOCS / "pictures").iterdir()}
