"""The ledger of claims: its rules, what judging a claim gives, and verdicts that change."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.experiments.papers.common import claims
from inakit.experiments.papers.common.claims import Claim, Ledger, changes, ledgers, print_ledger, read_ledger, settle
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.papers.common.figure_registry import FIGURES
from inakit.topo.errors import InputError

RATE = """\
claims:
- {id: rate, where: Figure 1, says: the rate, kind: value, paper: 10, figure: fig1, ours: 9.5, state: reproduced}
- {id: gain, where: Figure 1, says: over ATP, kind: ratio, paper: 2, figure: fig1, ours: 1.5, quick: reproduced,
   state: differs, because: links}
- {id: up, where: Figure 2, says: rises, kind: rises, state: not attempted, because: no data}
"""


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger with a claim of each state."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "made-up.yml").write_text(RATE)
    monkeypatch.setattr(claims, "FOLDER", tmp_path / "claims")
    read_ledger.cache_clear()
    return read_ledger("made-up")


def silent() -> Console:
    return Console(file=StringIO(), width=200)


@pytest.mark.parametrize(
    ("kind", "paper", "evidence", "holds"),
    [
        ("value", 10, 9.1, True),
        ("value", 10, 8.9, False),
        ("value", 0, 0.0, True),
        ("ratio", 2, 2.1, True),
        ("ratio", 2, estimate([0.8, 2.0, 3.3]), False),
        ("at-most", 0.1, [0.05, 0.2], False),
        ("at-least", 2, [2.5, 2.0], True),
        ("range", [1, 2], [1.05, 1.5, 1.9], True),
        ("range", [1, 2], [1.05, 1.5], False),
        ("rises", None, [1, 2], True),
        ("falls", None, {"a": [2, 1], "b": [1, 1]}, False),
        ("level", None, [1, 1.05], True),
        ("order", None, {"a": [3, 3], "b": [2, 2], "c": [1, 2]}, False),
        ("highest", None, {"a": [3, 3], "b": [2, 2], "c": [1, 2]}, True),
        ("lowest", None, {"a": [3, 3], "b": [2, 2]}, False),
        ("crosses", None, {"a": [1, 3], "b": [2, 2]}, True),
        ("fact", None, False, False),
    ],
)
def test_every_kind_of_claim_can_hold_and_fail(kind: str, paper: object, evidence: object, holds: bool) -> None:
    claim = Claim.model_validate(
        {
            "id": "c",
            "where": "Figure 1",
            "says": "so",
            "kind": kind,
            "paper": paper,
            "figure": "f",
            "state": "reproduced",
        }
    )
    judged = claim.judge(evidence)  # type: ignore[arg-type]
    assert judged.holds is holds
    assert (judged.claim, judged.says) == ("c", "Figure 1: so")


def test_evidence_of_another_kind_is_refused(made_up: Ledger) -> None:
    with pytest.raises(TypeError, match="claim rate: evidence"):
        made_up.judge("rate", [1.0, 2.0])
    with pytest.raises(InputError, match="'rate'"):
        made_up.judge("rat", 1.0)


def test_a_recorded_difference_is_no_error_but_a_change_is(made_up: Ledger, tmp_path: Path) -> None:
    as_recorded = [made_up.judge("rate", 9.5), made_up.judge("gain", 1.5)]
    assert settle(silent(), tmp_path, "made-up", "fig1", as_recorded, quick=False) == "VALID"
    better = [made_up.judge("rate", 9.5), made_up.judge("gain", 2.0)]
    assert settle(silent(), tmp_path, "made-up", "fig1", better, quick=False) == "CHANGED"
    assert settle(silent(), tmp_path, "made-up", "fig1", better, quick=True) == "VALID", "the quick form's own state"
    unjudged = list(changes(made_up.of_figure("fig1"), better[1:], quick=True))
    assert unjudged == ["claim rate: recorded as reproduced, now not judged: Figure 1: the rate"]


def test_the_printed_ledger_tells_what_runs_found(made_up: Ledger, tmp_path: Path) -> None:
    console = silent()
    assert print_ledger(console, made_up, tmp_path) == "VALID"
    settle(silent(), tmp_path, "made-up", "fig1", [made_up.judge("rate", 5), made_up.judge("gain", 1.5)], quick=False)
    assert print_ledger(console, made_up, tmp_path) == "CHANGED"
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "differs, recorded as reproduced" in shown
    assert "-5%" in shown and "differs, because links" in shown
    assert "made-up: 3 claims: 1 reproduced, 1 differs, 1 not attempted; of 2 numeric ones 1 reproduced" in shown


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("id: gain", "id: rate", "line 3: claims\\[1\\].id: 'rate' is the name of another claim"),
        ("state: differs, because: links", "state: differs", "line 3.*'gain' differs; `because` says why"),
        ("figure: fig1, ours: 9.5, ", "", "line 2.*has a figure if and only if"),
        ("kind: rises", "kind: grows", "kind"),
    ],
)
@pytest.mark.usefixtures("made_up")
def test_a_ledger_that_breaks_a_rule_is_refused(was: str, becomes: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "claims" / "broken.yml").write_text(RATE.replace(was, becomes))
    with pytest.raises(InputError, match=says):
        read_ledger("broken")


@pytest.mark.usefixtures("made_up")
def test_the_command_prints_every_ledger(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "--claims", "--results", str(tmp_path)])
    assert (done.exit_code, "claims of made-up" in done.output) == (0, True)


def test_each_claim_names_a_figure_that_exists() -> None:
    read_ledger.cache_clear()
    for ledger in ledgers():
        figures = {claim.figure for claim in ledger.claims.values() if claim.figure}
        assert figures <= FIGURES[ledger.paper].keys()


MARK = re.compile(r"<!-- as in the ledger: ([^>]*) -->\n(.*?)(?=<!--|\Z)", re.DOTALL)
"""Before a paragraph of a paper's notes: the claims, or the curves of claims, whose values the paragraph has."""


def shows(text: str, value: float) -> bool:
    """Whether a number of the text is the value, rounded to as many decimals as the text has."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return any(float(each.replace(",", "")) == round(abs(value), len(each.partition(".")[2])) for each in found)


def values(ledger: Ledger, named: str) -> list[float]:
    """Our value for a claim; the first and the last value of a curve that is named behind the claim."""
    name, _, curve = named.partition("/")
    ours = ledger.claims[name].ours
    if not curve:
        return [float(str(ours))]
    curves = dict(each.split(": ") for each in str(ours).split("; "))
    points = [float(each) for each in curves[curve].split(", ")]
    return [points[0], points[-1]]


@pytest.mark.parametrize("ledger", list(ledgers()), ids=lambda ledger: ledger.paper)
def test_notes_have_the_values_of_the_ledger(ledger: Ledger) -> None:
    read_ledger.cache_clear()
    notes = Path(claims.__file__).parents[1] / f"{ledger.paper.replace('-', '_')}.md"
    for names, text in MARK.findall(notes.read_text()):
        for name in re.split(r",\s+", names):
            stale = [value for value in values(ledger, name) if not shows(text, value)]
            assert not stale, f"{notes.name}: {name} is {stale} in the ledger, and not in: {text[:300]}"


def test_a_stale_number_of_notes_is_found() -> None:
    assert shows("| 1,234.6 |", 1234.56)
    assert not shows("785, 612, 515 and 508", 778)
