"""Adds the generated pages of the site: every command, and every claim of a paper.

The page is made from the command line and the Makefile: it has the output of `inakit COMMAND --help` and `make help`
on the day when the site is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from inakit.experiments.cli.app import app
from inakit.experiments.papers.common.claims import ledgers

PAGE = "commands.md"
CLAIMS = "papers/claims.md"

INTRODUCTION = """# Every command

Generated from the command line when this site was built. `inakit` is `.venv/bin/inakit`; `inakit COMMAND --help`
prints the same in a terminal. Commands that run plans (`emulate`, `train`, `exactness`, the emulated figures of
`reproduce`) build a network as root, and run in virtual time without it; `calibrate` and `bench`, and those that look
into a network (`top`, `dump`, `capture`), need root; the others do not. Examples of options used together:
[What else it can do](recipes.md).

Every command ends with exit code 0 on success, 1 if a run is not VALID or a check failed, 2 with one line that names
the mistake and the way out, and 128 plus a signal's number if a signal ended it.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    makefile = Path(config.config_file_path).parent / "Makefile"
    files.append(File.generated(config, PAGE, content=page(makefile.read_text())))
    files.append(File.generated(config, CLAIMS, content=claims()))
    return files


CLAIMS_INTRODUCTION = """---
hide: [toc]
---

# Every claim

Every number and comparison that the papers print, and what became of it here: *reproduced*, *differs* and why, or
*not attempted* and why. A number is reproduced if ours is within 10 % of it. An advantage must also be at least half
of the paper's and lie outside our 95 % interval; orders and trends must exceed 2 % and the interval, so that equal
curves are in no order. The figure named is the one that judges the claim: `inakit reproduce PAPER FIGURE` ends with
the verdict CHANGED if it finds another state than this page. `inakit reproduce --claims` prints the same in a
terminal, beside the results of your own runs. The entries are in `experiments/papers/claims/`.
"""


def claims() -> str:
    """The page of the papers' claims, with a table for each paper."""
    parts = [CLAIMS_INTRODUCTION]
    for ledger in ledgers():
        parts += [f"## {ledger.paper}", "", f"{ledger.summary}.", ""]
        parts += ["| where | what the paper says | paper | ours | deviation | state | figure |", "|" + "---|" * 7]
        for claim in ledger.claims.values():
            cells = claim.where, claim.says, claim.printed, *claim.cells(), claim.figure
            parts.append("| " + " | ".join(map(escaped, cells)) + " |")
        parts.append("")
    return "\n".join(parts)


def page(makefile: str) -> str:
    """The whole page in Markdown."""
    sections = [INTRODUCTION, targets(makefile)]
    sections += [section(names, command) for names, command in commands(typer.main.get_command(app), "inakit")]
    return "\n".join(sections)


def targets(makefile: str) -> str:
    """The section of `make`: the output of its target `help`."""
    lines = re.findall(r'^\t@echo "(.*)"$', makefile, re.MULTILINE)
    return "\n".join(("## make", "", "```text", *lines, "```", ""))


def commands(group: Any, names: str) -> Iterator[tuple[str, Any]]:
    """Yield every command below a group, loaded, with the words that call it, in the order of the help."""
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
    """The table row of an argument or option: its name, its description, its default."""
    written = parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
    return f"| `{written}` | {escaped(parameter.help)} | {default(parameter)} |"


def default(parameter: Any) -> str:
    """The default as it would be typed; empty for a flag that is off and for a parameter without a default."""
    if parameter.required:
        return "required"
    value = parameter.default
    return "" if value is None or value is False or value == "" else f"`{value}`"


def escaped(text: str | None) -> str:
    """Return the text as one line of Markdown, with markup characters outside code escaped."""
    return re.sub(r"([|<>*_\[\]])(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", r"\\\1", " ".join((text or "").split()))
