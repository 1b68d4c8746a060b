"""Which parameters of a test are long."""

from __future__ import annotations

from typing import Any

import pytest


def long_unless(short: bool, *given: Any) -> Any:
    """The parameters of a test, which runs with `-m long` only unless it is of the short form."""
    return pytest.param(*given, marks=[] if short else [pytest.mark.long])
