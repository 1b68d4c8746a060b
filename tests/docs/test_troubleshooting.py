"""Troubleshooting has every verdict, and every message that says what this machine lacks or why a run is not trusted.

Messages are read from the code: the literal texts of `MachineError`, of the reasons of a verdict, and of remedies. A
message stands in the page if the beginning of one of its literal parts does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from pages import ROOT, SPAN

from inakit.experiments.cli.ending import OUT_OF_MEMORY
from inakit.switch.testing.stf_play import StfVerdict
from inakit.switch.testing.target_comparison import Outcome
from inakit.topo.errors import REMEDIES, SYSTEM_REMEDIES
from inakit.traffic.measure.contention import RULES
from inakit.traffic.measure.verdict import Verdict

PAGE = ROOT / "docs" / "troubleshooting.md"
FOLDERS = ("experiments", "planner", "switch", "topo", "traffic")
REASONS = ("contention", "fidelity", "comparison")
"""The modules of `traffic/measure` that give the reasons of a verdict, as texts that they yield."""
OPEN = "\0"
"""Stands in a message for what is filled in."""
LETTERS = 28


def literal(node: ast.expr | None) -> str:
    """The literal text of a message; empty if it has none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else OPEN for part in node.values)
    return ""


def keys_of(message: str) -> list[str]:
    """The beginnings of the literal parts of a message; none if it is made of what is filled in."""
    parts = (part.strip(" ,;:()'`").replace("`", "") for part in message.split(OPEN))
    return [part[:LETTERS].strip() for part in parts if len(part) > 8]


def machine_errors() -> Iterator[tuple[str, str]]:
    """Each message of a `MachineError`, by its place."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "MachineError":
                yield f"{path.relative_to(ROOT)}:{node.lineno}", literal(node.args[0] if node.args else None)


def reasons() -> Iterator[tuple[str, str]]:
    """Each reason of a verdict, by its place."""
    for name in REASONS:
        path = ROOT / "traffic" / "measure" / f"{name}.py"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Yield):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", literal(node.value)


def in_code() -> str:
    """What stands in code on the page."""
    return "\n".join(SPAN.findall(PAGE.read_text()))


RULE_TEXTS = [("traffic/measure/contention.py", re.sub(r"{.*?}", OPEN, rule.text)) for rule in RULES]
MESSAGES = [*machine_errors(), *reasons(), *RULE_TEXTS]


def test_messages_are_found_in_the_code() -> None:
    """Else the page would be held to nothing."""
    assert len(MESSAGES) > 60
    assert sum(bool(keys_of(message)) for _, message in MESSAGES) > 50


@pytest.mark.parametrize(
    "messages",
    [
        MESSAGES,
        [("topo/errors.py", text) for text in (*REMEDIES.values(), *SYSTEM_REMEDIES.values())],
        [("experiments/cli/ending.py", OUT_OF_MEMORY)],
    ],
    ids=["of machines and runs", "of the system", "of memory"],
)
def test_every_message_is_there(messages: list[tuple[str, str]]) -> None:
    said = in_code()
    missing = [(place, text) for place, text in messages if keys_of(text) and not any(k in said for k in keys_of(text))]
    assert missing == []


def test_every_verdict_is_there() -> None:
    words = {*Verdict, *StfVerdict, *Outcome}
    rows = set(re.findall(r"^\| `(\w+)`", PAGE.read_text(), re.MULTILINE))
    assert sorted(set(map(str, words)) - rows) == []


def test_what_the_page_quotes_is_in_the_code() -> None:
    """Each row quotes a message; capitals stand for what is filled in."""
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    code = " ".join(re.sub(r'"\s*f?"', "", " ".join(path.read_text().split())) for path in sources).replace("`", "")
    quotes = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    parts = {quoted: max(re.split(r"\b[A-Z][A-Z]+\b", quoted), key=len).strip(" ,;:()'") for quoted in quotes}
    assert len(parts) > 60
    assert [quoted for quoted, part in parts.items() if part not in code and not quoted.isupper()] == []
