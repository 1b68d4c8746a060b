"""The quick form of every figure finds its claims in the states that the ledgers record for it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers.common.claims import ledgers
from inakit.experiments.papers.common.figure_registry import FIGURES, Request
from inakit.traffic.measure.verdict import Verdict

JUDGING = sorted(
    {(ledger.paper, claim.figure) for ledger in ledgers() for claim in ledger.claims.values() if claim.figure}
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all figures, some of which share their trials."""
    return tmp_path_factory.mktemp("results")


@pytest.mark.long
@pytest.mark.parametrize(("paper", "figure"), JUDGING)
def test_a_quick_figure_finds_the_recorded_states(paper: str, figure: str, results: Path) -> None:
    console = Console(file=StringIO(), width=160)
    verdict = FIGURES[paper][figure].run(console, Request(results, quick=True, switch="virtual"))
    assert verdict not in (Verdict.CHANGED, Verdict.OVERLOADED, Verdict.WRONG), console.file.getvalue()  # type: ignore[attr-defined]
