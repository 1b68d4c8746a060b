"""The README's table of features is what the code's own tables say."""

from __future__ import annotations

from pathlib import Path

from inakit.switch.fast.compile.actions import PRIMITIVES as COMPILED_PRIMITIVES
from inakit.switch.fast.compile.expressions import OPERATORS as COMPILED_OPERATORS
from inakit.switch.fast.compile.parser import PARSER_OPERATIONS as COMPILED_PARSER_OPERATIONS
from inakit.switch.interpret.actions import HANDLERS, JUMPING
from inakit.switch.interpret.expressions import OPERATORS
from inakit.switch.interpret.parser import PARSER_OPERATIONS
from inakit.switch.targets import markdown

README = Path(__file__).resolve().parents[2] / "switch" / "README.md"


def test_the_readme_has_the_table_that_the_code_prints() -> None:
    assert markdown() in README.read_text(), "put in what `python -m inakit.switch.targets` prints"


def test_whatever_is_compiled_is_interpreted_too() -> None:
    assert set(COMPILED_PRIMITIVES) <= set(HANDLERS | JUMPING)
    assert set(COMPILED_OPERATORS) <= set(OPERATORS)
    assert set(COMPILED_PARSER_OPERATIONS) <= set(PARSER_OPERATIONS)
