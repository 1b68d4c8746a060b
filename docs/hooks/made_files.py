"""Adds what is made when the site is built: the page of every command, and the style sheet that colours code.

The page is made from the command line and the Makefile themselves: it has what `inakit COMMAND --help` and `make help`
print on the day when the site is built. The style sheet is made by Pygments, so that the site takes no script from
anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

from inakit.experiments.cli.app import app

PAGE = "commands.md"
STYLE_SHEET = "styles/highlighting.css"

INTRODUCTION = """# Every command

Made from the command line itself when this site was built. `inakit` is `.venv/bin/inakit`; `inakit COMMAND --help`
prints the same in a terminal. Commands that run plans (`emulate`, `train`, `exactness`, the emulated figures of
`reproduce`) build a network as root, and run in virtual time without it; `calibrate` and `bench`, and those that look
into a network (`top`, `dump`, `capture`), need root; the others do not. What the options mean together, by examples:
[What else it can do](recipes.md).

Every command ends with exit code 0 if it did what was asked, 1 if a run is not VALID or a check failed, 2 with one line
that names the mistake and the way out, and 128 plus a signal's number if a signal ended it.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page, and the style sheet, which `extra_css` of `mkdocs.yml` names."""
    makefile = Path(config.config_file_path).parent / "Makefile"
    files.append(File.generated(config, PAGE, content=page(makefile.read_text())))
    rules = HtmlFormatter(style="default").get_style_defs(".codehilite")
    files.append(File.generated(config, STYLE_SHEET, content=rules))
    return files


def page(makefile: str) -> str:
    """The whole page in Markdown."""
    sections = [INTRODUCTION, targets(makefile)]
    sections += [section(names, command) for names, command in commands(typer.main.get_command(app), "inakit")]
    return "\n".join(sections)


def targets(makefile: str) -> str:
    """The section of `make`: what its target `help` prints."""
    lines = re.findall(r'^\t@echo "(.*)"$', makefile, re.MULTILINE)
    return "\n".join(("## make", "", "```text", *lines, "```", ""))


def commands(group: Any, names: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, loaded, with the words by which it is called, in the order of its own help."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{names} {name}")
        else:
            yield f"{names} {name}", command.loaded()


def section(names: str, command: Any) -> str:
    """A command's heading, its description, and a table of its arguments and options."""
    rows = [row(parameter) for parameter in command.params if parameter.name != "help"]
    table = ["| | is | default |", "|---|---|---|", *rows] if rows else ["It has no options."]
    return "\n".join((f"## {names}", "", escaped(command.help), "", *table, ""))


def row(parameter: Any) -> str:
    """An argument or option: how it is written, what it is, its default."""
    written = parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
    return f"| `{written}` | {escaped(parameter.help)} | {default(parameter)} |"


def default(parameter: Any) -> str:
    """The default as it would be typed; nothing for a switch that is off and for what has none."""
    if parameter.required:
        return "required"
    value = parameter.default
    return "" if value is None or value is False or value == "" else f"`{value}`"


def escaped(text: str | None) -> str:
    """A text of the command line in one line of Markdown: what would be markup there is shown as it is."""
    return re.sub(r"([|<>*_\[\]])(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", r"\\\1", " ".join((text or "").split()))
