"""The ledger of claims: every number and comparison that a paper prints, and what became of it here.

A paper's ledger is `experiments/papers/claims/PAPER.yml`. An entry has the paper's sentence and value, the figure of
the kit that judges it, our value, and its state: reproduced; differs, because; or not attempted, because. A figure
judges its claims by their names, and its verdict is CHANGED if the state of one is no longer the recorded one. A
recorded difference is no error.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.statements import Point, Points, Statement, number
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files.reader import FileKind, Record, read_file, validate, write_csv
from inakit.traffic.measure.verdict import VALID, Verdict

FOLDER = Path(__file__).parents[1] / "claims"
LEDGER = FileKind("ledger of claims", max_bytes=1 << 20, tells_lines=True)

REPRODUCED, DIFFERS, NOT_ATTEMPTED, NOT_JUDGED = "reproduced", "differs", "not attempted", "not judged"

Kind = Literal[
    "value", "ratio", "range", "at-most", "at-least",
    "rises", "falls", "level", "order", "highest", "lowest", "crosses", "fact",
]  # fmt: skip
"""What a claim is about. A `ratio` is one scheme over another; a `range` has its two ends. Trends (`rises`, `falls`,
`level`) are of one curve or of several; an `order` names curves from the highest, `highest` and `lowest` the best one
first; in `crosses` the first curve begins below the second and ends above it. A `fact` is true or false."""

NUMERIC = ("value", "ratio", "range", "at-most", "at-least")

TRENDS = {"rises": statements.rises, "falls": statements.falls, "level": statements.is_level}

Evidence = bool | Point | Points | Mapping[str, Points]
"""Our values for a claim: a number, the points of a curve, curves by name, or whether a fact is true."""


class Claim(Record):
    """A claim of a paper. `where` is its figure or section; `paper` is its value in `unit`, for a range both ends.

    `figure` is the figure of the kit that judges it, if any. `ours` is our value in that figure's full form. `quick`
    is the state in the quick form, if that is another one.
    """

    id: str
    where: str
    says: str
    kind: Kind
    paper: float | Annotated[tuple[float, float], Field(strict=False)] | None = None
    unit: str = ""
    figure: str = ""
    ours: float | str | None = None
    state: Literal["reproduced", "differs", "not attempted"]
    because: str = ""
    quick: Literal["reproduced", "differs", "not judged", ""] = ""

    @property
    def numeric(self) -> bool:
        """Whether the claim is about numbers; else it is about a trend, an order or a fact."""
        return self.kind in NUMERIC

    @property
    def printed(self) -> str:
        """The paper's value with its unit, as a table shows it."""
        if self.paper is None:
            return ""
        value = " to ".join(map(number, self.paper)) if isinstance(self.paper, tuple) else number(self.paper)
        bound = {"at-most": "at most ", "at-least": "at least "}.get(self.kind, "")
        return f"{bound}{value} {self.unit}".strip()

    @property
    def deviation(self) -> float | None:
        """Our value's difference from the paper's, as a share of it; None without two numbers."""
        if self.kind in ("value", "ratio") and isinstance(self.ours, float | int) and isinstance(self.paper, float):
            return self.ours / self.paper - 1 if self.paper else None
        return None

    def cells(self, now: str = "") -> tuple[str, str, str]:
        """Our recorded value, its deviation, and the state with its reason, as tables show them.

        `now` is the state that a run has found, if it is known.
        """
        ours = self.ours or "" if isinstance(self.ours, str | None) else number(self.ours)
        deviation = "" if self.deviation is None else f"{self.deviation:+.0%}"
        state = self.state if now in ("", self.state) else f"[red]{now}, recorded as {self.state}[/]"
        return ours, deviation, state + (f", because {self.because}" if self.because else "")

    def recorded(self, *, quick: bool) -> str:
        """The state that a run of the figure is expected to find."""
        return (quick and self.quick) or self.state

    def judge(self, evidence: Evidence, places: Sequence[object] = ()) -> Statement:
        """The claim with our values and whether they confirm it. `places` name the points of orders.

        Raises `TypeError` if the evidence does not suit the kind of the claim.
        """
        judged = self.judged(evidence, places)
        ours = f"{judged.ours} {self.unit}".strip() if self.numeric else judged.ours
        return replace(judged, says=f"{self.where}: {self.says}", ours=ours, paper=self.printed, claim=self.id)

    def judged(self, evidence: Evidence, places: Sequence[object]) -> Statement:
        """The statement by the rule of the claim's kind."""
        match self.kind, evidence, self.paper:
            case "fact", bool(), _:
                found = statements.is_true("", evidence)
            case "value", int() | float() | Estimate(), float(paper):
                found = statements.is_about("", evidence, paper)
            case "ratio", int() | float() | Estimate(), float(paper):
                found = statements.is_advantage("", evidence, paper)
            case "at-most", _, float(paper):
                found = statements.is_below("", max(points_of(evidence), key=statements.mean), paper)
            case "at-least", _, float(paper):
                found = statements.is_above("", min(points_of(evidence), key=statements.mean), paper)
            case "range", _, (low, high):
                found = statements.spans("", points_of(evidence), low, high)
            case "rises" | "falls" | "level", _, _:
                curves = evidence if isinstance(evidence, Mapping) else {"": points_of(evidence)}
                found = statements.all_of("", (TRENDS[self.kind](name, points) for name, points in curves.items()))
            case "order", Mapping(), _:
                pairs = pairwise(evidence)
                found = statements.all_of("", (self.over(upper, (lower,), evidence, places) for upper, lower in pairs))
            case "highest" | "lowest", Mapping(), _:
                best, *others = evidence
                found = self.over(best, others, evidence, places, lowest=self.kind == "lowest")
            case "crosses", Mapping(), _:
                first, second = evidence.values()
                found = statements.crosses("", first, second)
            case _:
                raise TypeError(f"claim {self.id}: evidence {evidence!r} for a claim of the kind '{self.kind}'")
        return found

    @staticmethod
    def over(
        best: str, others: Sequence[str], curves: Mapping[str, Points], places: Sequence[object], lowest: bool = False
    ) -> Statement:
        """The statement that a curve is over (or under) all others."""
        rule = statements.is_lowest if lowest else statements.is_highest
        named = places or [f"point {number}" for number, _ in enumerate(curves[best], 1)]
        return replace(rule("", best, others, curves, named), says=f"{best} to {others[0]}" if len(others) == 1 else "")


def points_of(evidence: Evidence) -> Points:
    """The points of a curve, or a number as a curve of one point. Raises `TypeError` for curves by name or a fact."""
    if isinstance(evidence, bool | Mapping):
        raise TypeError(f"{evidence!r}: numbers are expected")
    return [evidence] if isinstance(evidence, int | float | Estimate) else evidence


class Entries(Record):
    """The contents of a paper's ledger."""

    claims: tuple[Claim, ...] = Field(strict=False)


class Ledger:
    """A paper's claims by name."""

    def __init__(self, paper: str, claims: Iterable[Claim]) -> None:
        self.paper = paper
        self.claims = {claim.id: claim for claim in claims}

    def judge(self, name: str, evidence: Evidence, places: Sequence[object] = ()) -> Statement:
        """Judge a claim by its name. Raises `InputError` for an unknown name."""
        if name not in self.claims:
            raise unknown_name(f"claim of '{self.paper}'", name, self.claims)
        return self.claims[name].judge(evidence, places)

    def judge_each(
        self, figure: str, evidence: Mapping[str, Evidence], places: Sequence[object] = ()
    ) -> list[Statement]:
        """Judge the claims of a figure for which there is evidence, by what follows the figure's number in their names.

        Claims of `fig2-emulated` are named `fig2-...`.
        """
        own, number = self.of_figure(figure), figure.removesuffix("-emulated")
        named = {f"{number}-{name}": found for name, found in evidence.items()}
        return [own[name].judge(found, places) for name, found in named.items() if name in own]

    def of_figure(self, figure: str) -> dict[str, Claim]:
        return {name: claim for name, claim in self.claims.items() if claim.figure == figure}

    @property
    def figures(self) -> set[str]:
        return {claim.figure for claim in self.claims.values() if claim.figure}

    @property
    def summary(self) -> str:
        """The numbers of claims by state, and the share of numeric claims that are reproduced or explained."""
        states: list[str] = [claim.state for claim in self.claims.values()]
        numeric = [claim for claim in self.claims.values() if claim.numeric]
        reproduced = sum(claim.state == REPRODUCED for claim in numeric)
        counts = ", ".join(f"{states.count(state)} {state}" for state in (REPRODUCED, DIFFERS, NOT_ATTEMPTED))
        return f"{self.paper}: {len(states)} claims: {counts}; of {len(numeric)} numeric ones {reproduced} reproduced"


@cache
def read_ledger(paper: str) -> Ledger:
    """The ledger of a paper; empty if it has none. Raises `InputError` for a file that breaks a rule."""
    path = FOLDER / f"{paper}.yml"
    if not path.exists():
        return Ledger(paper, ())
    file = read_file(path, LEDGER)
    claims = validate(file, Entries).claims
    names = [claim.id for claim in claims]
    for place, claim in enumerate(claims):
        if names.index(claim.id) != place:
            raise file.error(("claims", place, "id"), f"'{claim.id}' is the name of another claim; choose a new one")
        if claim.state != REPRODUCED and not claim.because:
            raise file.error(("claims", place), f"'{claim.id}' {claim.state}; `because` says why")
        if (claim.state == NOT_ATTEMPTED) == bool(claim.figure):
            raise file.error(
                ("claims", place), f"'{claim.id}': a claim has a figure if and only if it is reproduced or differs"
            )
    return Ledger(paper, claims)


def ledgers() -> Iterator[Ledger]:
    return (read_ledger(path.stem) for path in sorted(FOLDER.glob("*.yml")))


def state_of(judged: Statement) -> str:
    return REPRODUCED if judged.holds else DIFFERS


def changes(claims: Mapping[str, Claim], judged: Iterable[Statement], *, quick: bool) -> Iterator[str]:
    """A line for each claim of a figure that is not in its recorded state, or that the figure did not judge."""
    found = {statement.claim: statement for statement in judged if statement.claim}
    for name, claim in claims.items():
        recorded = claim.recorded(quick=quick)
        now = state_of(found[name]) if name in found else NOT_JUDGED
        if now != recorded:
            ours = f" ({found[name].ours})" if name in found else ""
            yield f"claim {name}: recorded as {recorded}, now {now}{ours}: {claim.where}: {claim.says}"
    for name in found.keys() - claims.keys():
        yield f"claim {name}: judged by this figure, while the ledger names another figure or none"


def settle(
    console: Console, results: Path, paper: str, figure: str, judged: Sequence[Statement], *, quick: bool
) -> Verdict:
    """Keep what a figure found of its claims, print those that changed, and return VALID or CHANGED."""
    claims = read_ledger(paper).of_figure(figure)
    rows = [
        (one.claim, state_of(one), "" if one.value is None else one.value, *(one.interval or ("", "")), one.ours)
        for one in judged
        if one.claim
    ]
    if rows:
        write_csv(
            kept_path(results, paper, figure, quick=quick), ("claim", "state", "value", "low", "high", "ours"), rows
        )
    changed = list(changes(claims, judged, quick=quick))
    for line in changed:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return Verdict.CHANGED if changed else VALID


def kept_path(results: Path, paper: str, figure: str, *, quick: bool) -> Path:
    """The file in which a figure keeps what it found of its claims."""
    return results / f"{paper}-{figure}{'-quick' if quick else ''}-claims.csv"


def print_ledger(console: Console, ledger: Ledger, results: Path) -> Verdict:
    """Print a paper's claims, beside what figures in the results found; CHANGED if a state is not the recorded one."""
    table = Table("claim", "the paper's text", "paper", "ours", "deviation", "state", title=f"claims of {ledger.paper}")
    changed = 0
    found = {figure: found_in(results, ledger.paper, figure) for figure in ledger.figures}
    for claim in ledger.claims.values():
        states = found.get(claim.figure)
        now = states.get(claim.id, NOT_JUDGED) if states else ""
        changed += now not in ("", claim.state)
        table.add_row(claim.id, f"{claim.where}: {claim.says}", claim.printed, *claim.cells(now))
    console.print(table)
    console.print(ledger.summary, highlight=False)
    return Verdict.CHANGED if changed else VALID


def found_in(results: Path, paper: str, figure: str) -> dict[str, str]:
    """The states of claims that a figure's full form found, by name; none if the results do not have them."""
    path = kept_path(results, paper, figure, quick=False)
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["claim"]: row["state"] for row in csv.DictReader(file)}


def find_ledger(paper: str) -> Ledger:
    """The ledger of a paper. Raises `InputError` if it has none."""
    ledger = read_ledger(paper)
    if not ledger.claims:
        known = ", ".join(path.stem for path in sorted(FOLDER.glob("*.yml")))
        raise InputError(f"paper '{paper}' has no ledger of claims; these have one: {known}")
    return ledger
