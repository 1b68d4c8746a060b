"""Writes `report.html` and `trace.json` into the folder of a run, or the report of several runs into a file.

The page is one HTML file that contains its data, style, scripts and library. The data are compressed and in base64, so
that the browser never reads a name in them as markup. A Content-Security-Policy allows only the page's own style and
scripts, by their hashes: the page cannot load or send anything else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from string import Template
from typing import Any

from rich.console import Console

from inakit.experiments.report.document import Document, FabricView, PlannerView, RunView
from inakit.experiments.report.gather import document_of
from inakit.topo.errors import InakitError, MachineError
from inakit.topo.files.reader import write_whole

US_PER_S = 1e6
Event = dict[str, Any]

# -- A run as a trace for Perfetto (ui.perfetto.dev), in the Trace Event Format of Chrome, times in microseconds.
#
# Each planner has tracks for its jobs' iterations, its workers (iterations, and the rate over time), the fragments that
# switches hold in their slots, its circuits, and its faults.


def trace_of(run: RunView) -> dict[str, Any]:
    """The content of `trace.json`."""
    numbers = count(1)
    events = [event for planner in run.planners for event in planner_events(planner, run.fabrics, numbers)]
    about = {"run": run.folder, "command": run.command, "verdict": run.verdict}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def planner_events(planner: PlannerView, fabrics: Sequence[FabricView], numbers: Iterator[int]) -> Iterator[Event]:
    """Yield the tracks of a planner, one group for each kind."""
    fabric = fabrics[planner.fabric]
    groups = {
        "jobs": iteration_events(planner),
        "workers": worker_events(planner, fabric),
        "slots of switches": slot_events(planner, fabric),
        "circuits": circuit_events(planner),
        "faults": fault_events(planner),
    }
    for kind, found in groups.items():
        process, tracks = next(numbers), dict[str, int]()
        for track, event in found:
            if not tracks:
                yield named("process_name", f"{planner.name}: {kind}", process)
            if track not in tracks:
                tracks[track] = len(tracks) + 1
                yield named("thread_name", track, process, tracks[track])
            yield event | {"pid": process, "tid": tracks[track]}


def named(kind: str, name: str, process: int, thread: int = 0) -> Event:
    """The event that gives a group or a track its name."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def span(name: str, from_s: float, until_s: float, **told: Any) -> Event:
    return {"ph": "X", "name": name, "ts": from_s * US_PER_S, "dur": (until_s - from_s) * US_PER_S, "args": told}


def iteration_events(planner: PlannerView) -> Iterator[tuple[str, Event]]:
    for each in planner.iterations:
        if each.started_s is not None:
            name, end_s = f"iteration {each.number}", each.started_s + each.time_s
            yield f"job {each.job}", span(name, each.started_s, end_s, communication_time_s=each.time_s)


def worker_events(planner: PlannerView, fabric: FabricView) -> Iterator[tuple[str, Event]]:
    """Yield each worker's iterations, with its sending rate, and its rate over time if known."""
    uplinks = {2 * n + back: end for n, link in enumerate(fabric.links) for back, end in enumerate((link.a, link.b))}
    for each in planner.iterations:
        for worker, rate_bps in each.rates_bps.items() if each.started_s is not None else ():
            name, end_s = f"job {each.job}, iteration {each.number}", (each.started_s or 0.0) + each.time_s
            yield fabric.nodes[worker].name, span(name, each.started_s or 0.0, end_s, sending_rate_bps=rate_bps)
    workers = {worker for job in planner.jobs for worker in job.workers}
    for number, used in planner.series.used.items():
        node, link = uplinks[int(number)], fabric.links[int(number) // 2]
        if node in workers:
            capacity = link.capacity_ba_bps if int(number) % 2 else link.capacity_ab_bps
            values = [share * capacity / 1e9 for share in used]
            yield from counter(f"{fabric.nodes[node].name} sends (Mbit/s)", planner.series.starts_s, values)


def slot_events(planner: PlannerView, fabric: FabricView) -> Iterator[tuple[str, Event]]:
    """Yield the number of fragments that each switch holds over time."""
    for number, held in planner.series.held.items():
        name = f"{fabric.nodes[int(number)].name} (fragments)"
        yield from counter(name, planner.series.starts_s, [tenths / 10 for tenths in held])


def counter(name: str, starts_s: Sequence[float], values: Sequence[float]) -> Iterator[tuple[str, Event]]:
    before: float | None = None
    for at_s, value in zip(starts_s, values, strict=True):
        if value != before:
            yield name, {"ph": "C", "name": name, "ts": at_s * US_PER_S, "args": {"value": value}}
        before = value


def circuit_events(planner: PlannerView) -> Iterator[tuple[str, Event]]:
    for each in planner.circuits:
        if each.lit_s > each.from_s:
            yield each.name, span("dark", each.from_s, each.lit_s)
        yield each.name, span("lit", each.lit_s, each.until_s)


def fault_events(planner: PlannerView) -> Iterator[tuple[str, Event]]:
    """Yield the faults whose time is known. A fault without a duration is a moment."""
    for each in planner.events:
        if each.at_s is None:
            continue
        if each.lasting_s is None:
            yield "faults", {"ph": "i", "s": "p", "name": each.text, "ts": each.at_s * US_PER_S, "args": {}}
        else:
            yield "faults", span(each.text, each.at_s, each.at_s + each.lasting_s)


# -- The page.

FOLDER = Path(__file__).with_name("template")
SCRIPTS = (
    *("words.js", "dom.js", "chart.js", "table.js", "fabric.js", "summary.js", "details.js", "timeline.js"),
    *("processors.js", "run.js", "study.js", "site.js", "schedule.js", "page.js"),
)
"""The page's own scripts, in an order such that each uses only earlier definitions."""
LIBRARY = ("mpld3", Path("js", "d3.v5.min.js"))
"""The Python package that contains D3, and the path in it."""
LICENCE = """\
D3 (https://d3js.org), which is in this file unchanged: Copyright 2010-2018 Mike Bostock. All rights reserved.
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:
* Redistributions of source code must retain the above copyright notice, this list of conditions and the following
  disclaimer.
* Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
  disclaimer in the documentation and/or other materials provided with the distribution.
* Neither the name of the author nor the names of contributors may be used to endorse or promote products derived from
  this software without specific prior written permission.
THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF
THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""
"""The licence of the library, which every copy has to include."""


def page_of(document: Document) -> str:
    """The page as text. Raises `MachineError` if the library is not installed."""
    style = (FOLDER / "report.css").read_text()
    scripts = [library(), *((FOLDER / name).read_text() for name in SCRIPTS)]
    policy = f"default-src 'none'; img-src data:; style-src {allowed(style)}; script-src {allowed(*scripts)}"
    return Template((FOLDER / "report.html").read_text()).substitute(
        title=html.escape(document.title),
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        licence=LICENCE,
        style=style,
        verdict=html.escape("; ".join(f"{run.title}: {run.verdict}" for run in document.runs) or document.title),
        data=packed(document),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def packed(document: Document) -> str:
    """The document as JSON, compressed by gzip, in base64. Equal documents give equal texts."""
    text = json.dumps(document, default=vars, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()


def library() -> str:
    """The text of D3. Raises `MachineError` if it is not installed."""
    package, place = LIBRARY
    spec = find_spec(package)
    places = [] if spec is None else [Path(folder, place) for folder in spec.submodule_search_locations or ()]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise MachineError(f"a report needs D3, which the Python package {package} contains: pip install {package}")
    return found.read_text()


def allowed(*texts: str) -> str:
    """The sources of a Content-Security-Policy that allow elements with these texts."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{each}'" for each in hashes)


PAGE, TRACE = "report.html", "trace.json"


def write_report(folder: Path) -> Path:
    """Write the report and the trace of a run to its folder; return the report's path. Raises `InakitError`."""
    document = document_of([folder])
    folder = folder.parent if folder.is_file() else folder
    write_whole(folder / TRACE, json.dumps(trace_of(document.runs[0]), separators=(",", ":")))
    return write_page(document, folder / PAGE)


def write_comparison(folders: Sequence[Path], file: Path) -> Path:
    """Write the report of several runs to a file; return its path. Raises `InakitError`."""
    return write_page(document_of(folders), file)


def write_page(document: Document, file: Path) -> Path:
    """Write the page of a document to a file; return its path. Raises `InakitError`."""
    return write_whole(file, page_of(document))


def report_beside(folder: Path, console: Console) -> None:
    """Write the report of a run that has just ended, and print its path or the reason why there is none.

    A run is useful without its report, so an error is printed and not raised.
    """
    try:
        told = f"the report: {write_report(folder)}"
    except InakitError as error:
        told = f"no report ({error}); later: inakit report {folder}"
    console.print(told, highlight=False, markup=False, soft_wrap=True)
