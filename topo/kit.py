"""Which inakit this is: what `inakit --version` prints, and what every run's record and report name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import inakit
from inakit.topo.kit_source import Source, source_of

PLACE = Path(inakit.__file__).resolve().parents[1]
"""The folder in which the package `inakit` is: of a checkout, or `site-packages`."""


@dataclass(frozen=True)
class Kit:
    """A version of inakit, and the source that it was made from."""

    version: str
    source: Source

    def __str__(self) -> str:
        """As people read it: `0.1.0 (commit ede02423, changed files)`."""
        return f"{self.version} ({self.source})" if str(self.source) else self.version


@cache
def this_kit() -> Kit:
    """The inakit that runs; its files are looked at once, when this is first asked."""
    return Kit(inakit.__version__, source_of(PLACE))
