"""What a report says is what the run's files say, without a browser."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import html
import json
import re
import shutil
from dataclasses import replace
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import shown_runs
from rich.console import Console

from inakit.experiments.cli.main import main
from inakit.experiments.report import write
from inakit.experiments.report import write as page
from inakit.experiments.report.document import IterationView, PlannerView
from inakit.experiments.report.gather import (
    as_fast,
    busy_s,
    circuits_of,
    document_of,
    finding_of,
    joined,
    step_of,
)
from inakit.experiments.report.write import report_beside, trace_of, write_report
from inakit.topo.errors import InputError
from inakit.topo.files.quantities import in_words
from inakit.topo.kit import this_kit

pytestmark = pytest.mark.compiler

RUN, TIME = ("aro", "atp", "lbmm"), "communication_time_s"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a VALID run of three planners on a fat-tree."""
    return shown_runs.valid(tmp_path_factory.mktemp("valid"))


def planner_of(folder: Path, name: str) -> PlannerView:
    return next(each for each in document_of([folder]).runs[0].planners if each.name == name)


def data_of(text: str) -> Any:
    """The document in a page."""
    packed = re.search(r'id="data">([^<]*)<', text)
    assert packed
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_figures_are_those_of_the_record(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())["planners"]["aro"]
    found = {(each.name, each.job): (each.planned, each.measured) for each in planner_of(folder, "aro").figures}
    for name in ("sending_rate_bps", "communication_time_s", "overhead_bytes"):
        assert found[name, None] == (record["planned"][name], record["measured"][name])
    assert found["ps_ingress_bytes", 1][1] == record["measured"]["jobs"]["1"]["ps_ingress_bytes"]


def test_the_commit_of_the_kit_is_on_the_page(folder: Path) -> None:
    """That of the run and that of the report, which may be made later."""
    kit = str(this_kit())
    document = document_of([folder])
    assert (document.made_by, document.runs[0].versions["inakit"]) == (f"inakit {kit}", kit)


@pytest.mark.parametrize("planner", ["aro", "atp", "lbmm"])
def test_every_link_carries_the_bytes_that_the_plan_puts_on_it(folder: Path, planner: str) -> None:
    loads = planner_of(folder, planner).loads
    carried = [(p, m) for p, m in zip(loads.planned_bytes, loads.measured_bytes, strict=True) if m is not None]
    assert len(carried) > 60
    assert all(planned == measured for planned, measured in carried)
    rates = [m / p for p, m in zip(loads.planned_bps, loads.measured_bps, strict=True) if p and m]
    assert len(rates) > 50 and all(0.7 < share < 1.01 for share in rates)


def test_series_of_links_are_shares_of_their_capacity(folder: Path) -> None:
    planner = planner_of(folder, "aro")
    with gzip.open(folder / "aro" / "link_series.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    used = [float(row["utilisation"]) for row in rows if (row["from"], row["to"]) == ("h1", "edge1_1")]
    assert planner.series.used["0"] == pytest.approx([1000 * share for share in used], abs=0.6)
    assert len(planner.series.starts_s) == len(used)


def test_what_parts_used_is_that_of_the_record(folder: Path, tmp_path: Path) -> None:
    made = shown_runs.with_processors(folder, tmp_path)
    record = json.loads((made / "run.json").read_text())["planners"]["aro"]["processors"]
    used = planner_of(made, "aro").used
    assert used is not None
    assert (used.processors, used.starts_s, used.ends_s) == (2, record["starts_s"], record["ends_s"])
    shown = {part.name: {"processors": part.processors, "memory_bytes": part.memory_bytes} for part in used.parts}
    assert shown == record["parts"] and len(shown) == 3
    assert planner_of(made, "atp").used is None


def test_the_page_allows_what_is_in_it_and_nothing_else(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and policy[1].startswith("default-src 'none'")
    inside = re.findall(r"<script>(.*?)</script>", text, re.DOTALL) + re.findall(
        r"<style>(.*?)</style>", text, re.DOTALL
    )
    hashes = {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inside}
    assert len(inside) == len(page.SCRIPTS) + 2
    assert set(re.findall(r"'sha256-([^']*)'", html.unescape(policy[1]))) == hashes
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?!data:)", text)


def test_names_in_the_data_cannot_be_markup(tmp_path: Path) -> None:
    folder = shown_runs.two_jobs(tmp_path)
    text = (folder / "report.html").read_text()
    assert "<img" not in text and text.count("</script>") == len(page.SCRIPTS) + 2
    assert data_of(text)["runs"][0]["command"] == f"inakit emulate --topo '{shown_runs.MARKUP}'"


def test_the_same_run_gives_the_same_page(folder: Path) -> None:
    before = (folder / "report.html").read_bytes()
    assert write_report(folder).read_bytes() == before


def test_a_page_of_k_6_is_small(tmp_path: Path) -> None:
    folder = shown_runs.planned_only(tmp_path, 6)
    assert write_report(folder).stat().st_size < 1 << 20


def test_the_trace_has_every_track_with_times_in_order(folder: Path) -> None:
    trace = json.loads((folder / "trace.json").read_text())
    names = {each["args"]["name"] for each in trace["traceEvents"] if each["name"] == "process_name"}
    assert {"aro: jobs", "aro: workers", "aro: slots of switches"} <= names
    spans = [each for each in trace["traceEvents"] if each["ph"] == "X" and each["name"].startswith("iteration")]
    assert len(spans) == 6, "two iterations of three planners"
    aro = planner_of(folder, "aro").iterations
    assert [each["ts"] for each in spans[:2]] == [1e6 * (each.started_s or 0) for each in aro]
    assert all(each["dur"] > 0 for each in spans)
    counters = [each for each in trace["traceEvents"] if each["ph"] == "C"]
    assert {each["name"] for each in counters} >= {"h1 sends (Mbit/s)", "edge4_1 (fragments)"}


def test_the_trace_of_a_schedule_has_its_circuits(tmp_path: Path) -> None:
    run = document_of([shown_runs.scheduled(tmp_path)]).runs[0]
    events = trace_of(run)["traceEvents"]
    lit = [each for each in events if each["name"] == "lit"]
    assert len(lit) == len(run.planners[0].circuits) > 0
    assert any(each["name"] == "dark" and each["dur"] == pytest.approx(25e3) for each in events)


def test_circuits_last_from_the_slot_that_sets_them_to_the_one_that_does_not() -> None:
    one, other = [["a", 1], ["b", 1]], [["a", 1], ["c", 1]]
    slots = [{"at_s": 0.0, "circuits": [one]}, {"at_s": 2.0, "circuits": [other]}, {"at_s": 3.0, "circuits": [other]}]
    found = list(circuits_of({"reconfiguration_s": 0.5, "slots": slots}, 4.0))
    assert [(each.name, each.from_s, each.lit_s, each.until_s) for each in found] == [
        ("a:1 - b:1", 0.0, 0.0, 2.0),
        ("a:1 - c:1", 2.0, 2.5, 4.0),
    ]


def test_a_link_is_busy_while_any_job_of_it_is() -> None:
    spans = [IterationView(1, 0, 0.0, 2.0), IterationView(2, 0, 1.0, 2.0), IterationView(1, 1, 5.0, 1.0)]
    assert busy_s(spans, frozenset({1, 2})) == 4.0
    assert busy_s(spans, frozenset({1})) == 3.0
    assert busy_s([IterationView(1, 0, None, 2.0), IterationView(1, 1, None, 1.0)], frozenset()) == 3.0


def test_many_links_have_fewer_points() -> None:
    import numpy as np  # noqa: PLC0415

    assert step_of(points=400, links=96, planners=3) == 1
    assert step_of(points=341, links=6144, planners=1) == 6
    rows = {7: np.array([0.1, 0.3, 0.5]), 9: np.zeros(3)}
    assert joined(rows, 2, 10.0, np.mean) == {"7": [2, 5], "9": [0, 0]}


def test_a_run_that_ends_early_has_a_page_of_what_was_planned(tmp_path: Path) -> None:
    run = document_of([shown_runs.planned_only(tmp_path, 4)]).runs[0]
    assert run.verdict == "INCOMPLETE" and run.meaning
    assert run.planners[0].trees and not run.planners[0].iterations


def damaged(folder: Path, name: str, text: bytes | None) -> None:
    """Write a file of a folder anew, or remove it."""
    path = folder / name
    path.unlink()
    if text is not None:
        path.write_bytes(text)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("run.json", lambda old: old[: len(old) // 2], "is truncated"),
        ("run.json", lambda _: b'{"version": 1}', "has version 1, this inakit reads 2: run again, or make the report"),
        (
            "run.json",
            lambda old: old.replace(b'"seed"', b'"sead"'),
            "format of this inakit (seed: Field",
        ),
        ("run.json", lambda _: b"[]", "is not the record of a run"),
        ("run.json", lambda _: None, "it has no run.json"),
        ("aro/link_series.csv.gz", lambda old: old[: len(old) // 2], "is truncated"),
        ("aro/iterations.csv", lambda old: old[:-30], "is truncated"),
        ("aro/iterations.csv", lambda _: b"", "is truncated"),
        ("aro/plan.json", lambda old: old[:99], "plan.json"),
        (
            "aro/link_totals.csv",
            lambda old: old.replace(b"sent_bytes", b"bytes"),
            "format of this inakit",
        ),
    ],
)
def test_a_folder_that_is_not_whole_gets_a_message(
    folder: Path, tmp_path: Path, name: str, change: Any, says: str
) -> None:

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damaged(copy, name, change((copy / name).read_bytes()))
    with pytest.raises(InputError, match=re.escape(says)):
        write_report(copy)


def test_what_is_no_folder_of_a_run_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, says in (
        (["nothing"], "no such folder"),
        ([str(tmp_path)], "is not the folder of a run"),
        (["a.yml", "b.yml"], "give one study alone"),
    ):
        monkeypatch.setattr("sys.argv", ["inakit", "report", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert says in capsys.readouterr().err


def test_a_run_is_kept_where_its_report_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "LIBRARY", ("no_such_package", Path("d3.js")))
    console = Console(file=StringIO(), width=200)
    report_beside(folder, console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "no report" in told and "pip install no_such_package" in told and "later: inakit report" in told


def test_a_report_is_written_whole_or_not_at_all(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write.write_comparison([folder], target)
    assert not target.exists()


def test_the_title_is_the_finding(folder: Path) -> None:
    run = document_of([folder]).runs[0]
    figures = {name: planner_of(folder, name).figures for name in RUN}
    times = {name: next(each.measured for each in found if each.name == TIME) for name, found in figures.items()}
    assert all(times.values())
    atp, lbmm = ((times[name] or 0) / (times["aro"] or 1) for name in ("atp", "lbmm"))
    day = datetime.fromisoformat(run.started)
    assert finding_of([run]) == document_of([folder]).title
    assert finding_of([run]).startswith(f"aro is {as_fast(atp)} atp, {as_fast(lbmm)} lbmm: ")
    assert finding_of([run]).endswith(f", VALID, {day.day} {day:%B}")
    assert finding_of([replace(run, verdict="OVERLOADED")]) == f"No result (OVERLOADED): {run.title}"
    alone = replace(run, planners=[planner_of(folder, "aro")])
    assert finding_of([alone]).startswith(f"aro takes {in_words(times['aro'] or 0, 's')} per iteration: ")
    twice = replace(run, planners=[planner_of(folder, "aro"), replace(planner_of(folder, "aro"), name="other")])
    assert finding_of([twice]).startswith("aro and other take ")


def test_the_title_of_runs_that_are_alike_is_their_finding(folder: Path) -> None:
    run = document_of([folder]).runs[0]
    fast, slow = ([planner_of(folder, name)] for name in ("aro", "lbmm"))
    compared = [replace(run, planners=fast), replace(run, planners=slow)]
    assert finding_of(compared).startswith("1: aro is ") and " times as fast as 2: lbmm: 15 workers" in finding_of(
        compared
    )
    jobs = [replace(each, gradient_bytes=8) for each in slow[0].jobs]
    for other in (replace(compared[1], verdict="OVERLOADED"), replace(run, planners=[replace(slow[0], jobs=jobs)])):
        assert finding_of([compared[0], other]) == "2 runs compared"


def test_how_much_faster_is_said_by_its_size() -> None:
    assert [as_fast(ratio) for ratio in (1.031, 5.04, 15.2)] == [
        "3.1% faster than", "5.0 times as fast as", "15 times as fast as"
    ]  # fmt: skip
