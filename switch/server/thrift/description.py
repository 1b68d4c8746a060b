"""The interface description `bmv2.thrift`, parsed: its services, structures, codes and exceptions as Python classes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import thriftpy2

DESCRIPTION = Path(__file__).with_name("bmv2.thrift")


@cache
def description() -> Any:
    """The parsed description; its attributes bear the names that stand in it."""
    return thriftpy2.load(str(DESCRIPTION), module_name="inakit_bmv2_thrift")
