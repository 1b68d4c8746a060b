"""What `inakit validate` does: it reads the file, validates, writes the verdict and the page, and prints both."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from inakit.experiments.hardware.validate.document import document_of, verdict_document
from inakit.experiments.hardware.validate.folder_lock import one_validation
from inakit.experiments.hardware.validate.judge import HOLDS, PlannerResult, in_words
from inakit.experiments.hardware.validate.site_file import load_site
from inakit.experiments.hardware.validate.starter import write_starter
from inakit.experiments.hardware.validate.validation import Validation, folder_of, validate_site
from inakit.experiments.report.write import PAGE, write_page, write_text
from inakit.experiments.run.printed.tables import NamedTable
from inakit.experiments.study.study import kept_in
from inakit.experiments.sweeps.engines import find_engine
from inakit.topo.errors import MachineError

VERDICT = "validation.json"
SHOWN_REASONS, SHOWN_FAILURES = 8, 5


def start(folder: Path, console: Console) -> None:
    """Write the files to begin with, and say what to do with them. Raises `InakitError`."""
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
    table = Table(title=f"{result.name}: the worst of {len(result.weathered)} single failures")
    table.add_column("failure", no_wrap=True)
    for heading in ("plan", "jobs stopped", "job that keeps least", "of its rate", "then"):
        table.add_column(heading)
    for each in result.worst[:SHOWN_FAILURES]:
        shares = {n: share for n, share in each.kept(result.rates_bps).items() if n not in each.lost}
        least = min(shares, key=lambda number: shares[number], default=None)
        told = (
            ("", "", "")
            if least is None
            else (str(least), f"{shares[least]:.0%}", in_words(each.rates_bps.get(least, 0)))
        )
        table.add_row(f"{each.failure.kind} {each.failure.name}", each.state, ", ".join(map(str, each.lost)), *told)
    return table
