"""The version of this inakit, as `inakit --version` prints it and every run's record and report state it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import inakit
from inakit.topo.kit_source import Source, source_of

PLACE = Path(inakit.__file__).resolve().parents[1]
"""The folder that contains the package `inakit`: a checkout or `site-packages`."""


@dataclass(frozen=True)
class Kit:
    """A version of inakit, and the source that it was built from."""

    version: str
    source: Source

    def __str__(self) -> str:
        """The text for people: `0.1.0 (commit ede02423, changed files)`."""
        return f"{self.version} ({self.source})" if str(self.source) else self.version


@cache
def this_kit() -> Kit:
    """The running inakit. The first call examines its files; the result is cached."""
    return Kit(inakit.__version__, source_of(PLACE))
