"""`inakit validate`: reads a site's file, validates the site, and prints and writes the verdict and the page.

One validation at a time runs in a site's folder: its trials read the network, the jobs and the plans that lie there.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.hardware.fit import amount
from inakit.experiments.hardware.judge import HOLDS, PlannerResult
from inakit.experiments.hardware.site_file import load_site, write_starter
from inakit.experiments.hardware.validation import Validation, folder_of, validate_site
from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import made_by
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.report.write import PAGE, write_page, write_text
from inakit.experiments.run.console import NamedTable, names
from inakit.experiments.study.study import kept_in
from inakit.experiments.sweeps.engines import find_engine
from inakit.topo.errors import MachineError, RunError, writing

LOCK = ".validating"


@contextmanager
def one_validation(folder: Path) -> Iterator[None]:
    """Hold the folder for the block. The system frees it if the process dies.

    Raises `RunError` where another validation holds it, and `OutputError`.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{folder}: another validation is writing there: wait until it has ended, or choose another --results"
            ) from error
        yield


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
        "margins": {
            "keeps": site.margins.keeps,
            "least_rate_bps": site.margins.least_rate,
            "free": site.margins.free,
            "within": site.margins.within,
        },
        "planners": [planner_document(result) for result in found.results],
    }


def planner_document(result: PlannerResult) -> dict[str, Any]:
    """What was found of one planner: of each chip what a switch needs most of each limit; failures, the worst first."""
    return {
        "planner": result.name,
        "color": styles_of([result.name])[result.name].color,
        "failed": result.failed,
        "said": result.said,
        "fits": [
            {
                "chip": fit.chip.name,
                "switches": fit.switches,
                "fits": fit.fits,
                "needs": [
                    {"kind": need.kind, "where": need.where, "share": need.share}
                    | {"needed": amount(need.kind, need.used), "has": amount(need.kind, need.limit)}
                    for need in fit.needs
                ],
            }
            for fit in result.fits
        ],
        "rates_bps": result.rates_bps,
        "virtual": dict(result.virtual),
        "emulated": result.emulated,
        "failures": [
            {
                "name": each.failure.name,
                "kind": each.failure.kind,
                "plan": each.state,
                "error": each.error,
                "lost": each.lost,
                "rates_bps": each.rates_bps,
                "kept": each.kept(result.rates_bps),
            }
            for each in result.worst
        ],
    }


def document_of(found: Validation) -> Document:
    """The document of the page."""
    return Document(f"Site {found.site.name}", made_by(), site=verdict_document(found))


VERDICT = "validation.json"
SHOWN_REASONS, SHOWN_FAILURES = 8, 5


def start(folder: Path, console: Console) -> None:
    """Write the starter's files, and print the next command. Raises `InakitError`."""
    for file in write_starter(folder):
        console.print(f"wrote {file}", highlight=False, soft_wrap=True)
    console.print(f"validate it: inakit validate {folder / 'site.yml'}", highlight=False, soft_wrap=True)


def validate_file(file: Path, on: str, processes: int | None, results: Path, console: Console) -> bool:
    """Validate the site of a file; whether it holds. Raises `InakitError`."""
    site = load_site(file)
    engine, folder = find_engine(on, processes, kept_in(results)), folder_of(site, results)
    with one_validation(folder):
        found = validate_site(site, results, engine, console)
        write_validation(found, folder, console)
    return found.verdict == HOLDS


def write_validation(found: Validation, folder: Path, console: Console) -> None:
    """Print the verdict, and write it and the page into the site's folder. Raises `OutputError`."""
    write_text(folder / VERDICT, json.dumps(verdict_document(found), indent=1, allow_nan=False) + "\n")
    print_validation(console, found)
    console.print(f"wrote {folder / VERDICT}", highlight=False, soft_wrap=True)
    try:
        console.print(f"wrote {write_page(document_of(found), folder / PAGE)}", highlight=False, soft_wrap=True)
    except MachineError as error:
        console.print(f"no page ({error})", highlight=False, markup=False, soft_wrap=True)


def print_validation(console: Console, found: Validation) -> None:
    """Print the verdict, why, the worst failures of each planner, and what was left out."""
    for result in found.results:
        if result.weathered:
            console.print(NamedTable(worst_table(result)))
    good = found.verdict == HOLDS
    with_whom = f" with {', '.join(found.holding)}" if good else ", because"
    console.print(f"{found.site.name} {found.verdict.lower()}{with_whom}", style="green" if good else "red")
    for planner, reasons in found.reasons.items():
        for line in [] if good else shortened(reasons):
            console.print(f"  {planner}: {line}", highlight=False, markup=False, soft_wrap=True)
    for line in (*stops(found), *found.left_out):
        console.print(f"({line})", highlight=False, markup=False, soft_wrap=True)


def shortened(reasons: list[str]) -> list[str]:
    """The first reasons, and how many more there are."""
    more = len(reasons) - SHOWN_REASONS
    return [*reasons[:SHOWN_REASONS], *([f"and {more} more, which {VERDICT} has"] if more > 0 else [])]


def stops(found: Validation) -> list[str]:
    """A line for each planner about failures that cut hosts off, which no plan can help."""
    return [
        f"{result.name}: {count} of {len(result.weathered)} failures stop a job by cutting off its hosts"
        for result in found.results
        if (count := sum(bool(each.lost) for each in result.weathered))
    ]


def worst_table(result: PlannerResult) -> Table:
    """The worst failures of a planner: what becomes of the plan, and the job that keeps least."""
    headings = ("plan", "jobs stopped", "job that keeps least", "of its rate", "then")
    title = f"{result.name}: the worst of {len(result.weathered)} single failures"
    table = Table(*names("failure"), *headings, title=title)
    for each in result.worst[:SHOWN_FAILURES]:
        shares = {n: share for n, share in each.kept(result.rates_bps).items() if n not in each.lost}
        least = min(shares, key=lambda number: shares[number], default=None)
        told = (
            ("", "", "")
            if least is None
            else (str(least), f"{shares[least]:.0%}", rate_words(each.rates_bps.get(least, 0)))
        )
        table.add_row(f"{each.failure.kind} {each.failure.name}", each.state, ", ".join(map(str, each.lost)), *told)
    return table
