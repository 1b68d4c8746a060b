"""`CITATION.cff` is of this version, has what its format requires, and names the papers behind the kit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from inakit import __version__

ROOT = Path(__file__).parents[1]
REQUIRED = {"cff-version", "message", "title", "authors"}
REQUIRED_OF_REFERENCES = {"type", "title", "authors"}


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    return found


def test_the_citation_is_of_this_version_and_as_the_package_says(citation: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "inakit.__version__"}
    assert citation["version"] == __version__
    assert citation["license"] == project["project"]["license"]
    assert citation["authors"] == project["project"]["authors"]


def test_the_citation_has_what_its_format_requires(citation: dict[str, Any]) -> None:
    assert citation.keys() >= REQUIRED
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    for reference in citation["references"]:
        assert reference.keys() >= REQUIRED_OF_REFERENCES
        assert all("name" in each or {"given-names", "family-names"} <= each.keys() for each in reference["authors"])


def test_the_five_papers_are_referred_to_by_their_titles(citation: dict[str, Any]) -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(.*?\): \*(.*?)\* \|", (ROOT / "docs/papers/index.md").read_text(), re.MULTILINE
    )
    listed = {name: title for name, title in rows if name not in {"SOAR", "INARouting"}}  # not behind the kit
    references = {each["abbreviation"]: each["title"] for each in citation["references"]}
    assert len(listed) == 5
    assert references.keys() == listed.keys()
    assert [name for name, title in listed.items() if not references[name].endswith(title)] == []
