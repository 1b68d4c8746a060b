"""A validation as data: the JSON of its verdict, and the document of its page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from inakit.experiments.hardware.fit import ChipFit, amount
from inakit.experiments.hardware.validate.judge import PlannerResult, Weathered
from inakit.experiments.hardware.validate.validation import Validation
from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import made_by
from inakit.experiments.styles.method_styles import styles_of

VERSION = 1


def verdict_document(found: Validation) -> dict[str, Any]:
    """All that was found, in JSON's types."""
    site = found.site
    return {
        "version": VERSION,
        "site": site.name,
        "verdict": found.verdict,
        "holds_with": found.holding,
        "reasons": found.reasons,
        "left_out": list(found.left_out),
        "fabric": site.problem.fabric.name,
        "program": site.program,
        "switches": len(site.problem.fabric.switches),
        "links": len(site.problem.fabric.links),
        "jobs": [{"number": job.number, "workers": len(job.workers)} for job in site.problem.jobs],
        "withstand": asdict(site.withstand),
        "margins": asdict(site.margins),
        "planners": [planner_document(result) for result in found.results],
    }


def planner_document(result: PlannerResult) -> dict[str, Any]:
    """What was found of one planner; failures are listed the worst first."""
    return {
        "planner": result.name,
        "color": styles_of([result.name])[result.name].color,
        "failed": result.failed,
        "said": result.said,
        "fits": [fit_document(fit) for fit in result.fits],
        "rates_bps": result.rates_bps,
        "virtual": dict(result.virtual),
        "emulated": result.emulated,
        "failures": [failure_document(result, each) for each in result.worst],
    }


def fit_document(fit: ChipFit) -> dict[str, Any]:
    """What the plan needs of a chip: of each limit the most that a switch needs."""
    needs = [
        {"kind": need.kind, "where": need.where, "share": need.share}
        | {"needed": amount(need.kind, need.used), "has": amount(need.kind, need.limit)}
        for need in fit.needs
    ]
    return {"chip": fit.chip.name, "switches": fit.switches, "fits": fit.fits, "needs": needs}


def failure_document(result: PlannerResult, found: Weathered) -> dict[str, Any]:
    """What one failure does: to the plan, and to every job."""
    return {
        "name": found.failure.name,
        "kind": found.failure.kind,
        "plan": found.state,
        "error": found.error,
        "lost": found.lost,
        "rates_bps": found.rates_bps,
        "kept": found.kept(result.rates_bps),
    }


def document_of(found: Validation) -> Document:
    """The document of the page."""
    return Document(f"Site {found.site.name}", made_by(), site=verdict_document(found))
