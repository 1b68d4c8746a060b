"""Writes `report.html` and `trace.json` into the folder of a run, or the report of several runs into a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import document_of
from inakit.experiments.report.page import page_of
from inakit.experiments.report.trace import trace_of
from inakit.topo.errors import InakitError, writing

PAGE, TRACE = "report.html", "trace.json"


def write_report(folder: Path) -> Path:
    """Write the report and the trace of a run into its folder; the report's path. Raises `InakitError`."""
    document = document_of([folder])
    folder = folder.parent if folder.is_file() else folder
    write_text(folder / TRACE, json.dumps(trace_of(document.runs[0]), separators=(",", ":")))
    return write_page(document, folder / PAGE)


def write_comparison(folders: Sequence[Path], file: Path) -> Path:
    """Write the report of several runs into a file; its path. Raises `InakitError`."""
    return write_page(document_of(folders), file)


def write_page(document: Document, file: Path) -> Path:
    """Write the page of a document into a file; its path. Raises `InakitError`."""
    return write_text(file, page_of(document))


def write_text(file: Path, text: str) -> Path:
    """Write a text whole or not at all; its path. Raises `OutputError`."""
    draft = file.with_name(f".{file.name}.draft")
    with writing(file):
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    return file


def report_beside(folder: Path, console: Console) -> None:
    """Write the report of a run that has just ended, and print where it is; or why there is none.

    The run is worth keeping without its report, so that an error is told and not raised.
    """
    try:
        told = f"the report: {write_report(folder)}"
    except InakitError as error:
        told = f"no report ({error}); later: inakit report {folder}"
    console.print(told, highlight=False, markup=False, soft_wrap=True)
