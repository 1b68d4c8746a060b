"""Lists of exercises: which network each one starts, and which lines of Mininet's command line check it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

SHOWN = r"^\w+ -> .*|Results: .*|\d+ received"
"""What is compared of a check's output, unless it says otherwise: what Mininet and ping say of reachability."""


@dataclass(frozen=True)
class Check:
    """A line for Mininet's command line, and what is compared of its output: all that matches `keep`.

    It is `expect`, if that is known. A check that says what it keeps must show something, or else say that it expects
    nothing; other lines may only do something.
    """

    run: str
    keep: str = SHOWN
    expect: list[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what YAML reads otherwise than it looks: a text with a colon and a space needs quotes."""
        if not all(isinstance(each, str) for each in (self.run, self.keep, *(self.expect or ()))):
            raise ValueError(f"a check has texts only, and this one has others: {self}; put them in quotes")

    @property
    def must_show(self) -> bool:
        """Whether an output in which nothing matches says nothing at all."""
        return self.keep is not SHOWN and self.expect is None


@dataclass(frozen=True)
class Exercise:
    """An exercise: the files over it, the command that starts its network, and its checks.

    One that `needs` something that this machine does not have is only named. BMv2 takes part in those with `grpc` only
    where simple_switch_grpc is installed; elsewhere what they expect is the judge. `traffic` are two hosts between
    which throughput can be measured, once the lines `before_traffic` have run. `differs` is the known cause of a
    difference.
    """

    name: str
    start: str
    checks: tuple[Check, ...]
    folder: str
    over: str | None = None
    needs: str | None = None
    grpc: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    traffic: tuple[str, str] | None = None
    before_traffic: tuple[str, ...] = ()
    differs: str | None = None

    @property
    def digest(self) -> str:
        """A text that another exercise, or this one with other checks, does not have."""
        return hashlib.sha256(repr(replace(self, differs=None)).encode()).hexdigest()[:12]


def read_list(path: Path) -> Iterator[Exercise]:
    """The exercises of a list."""
    for each in yaml.safe_load(path.read_text()):
        for start in each.pop("starts", None) or [each.pop("start", "")]:
            name = f"{each['folder']}: {start}" if start else each["folder"]
            yield Exercise(name, start, tuple(checks_of(each.get("checks", ()))), **without(each, "checks"))


def without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """A dictionary without some keys."""
    return {name: value for name, value in given.items() if name not in names}


def checks_of(given: Iterable[str | dict[str, Any]]) -> Iterator[Check]:
    """Checks, each a line or a dictionary with what `Check` has."""
    for each in given:
        yield Check(each) if isinstance(each, str) else Check(**each)
