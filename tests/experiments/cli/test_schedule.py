"""`inakit schedule`: files in; schedules, tables, a page and a run by packets out."""

from __future__ import annotations

import csv
import html
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from command import inakit

from inakit.experiments.cli.commands import schedule as commands
from inakit.experiments.run import scheduled
from inakit.planner.methods.p4inc_aoi.schedule import check, load_schedule, load_scheduling
from inakit.planner.registry import SCHEDULERS
from inakit.topo.errors import OutputError

CENTER = """\
version: 1
center:
  units:
    - {name: a, servers: 3, gpus: 2, nic_bps: 8.0e+9, optical_ports: 4, switch_bps: 64.0e+9, inc_jobs: 1}
    - {name: b, servers: 3, gpus: 2, nic_bps: 8.0e+9, optical_ports: 4, switch_bps: 64.0e+9, inc_jobs: 1}
  port_bps: 8.0e+9
  reconfiguration_s: 0.01
  slot_s: 1.0
  step_bps: 1.0e+9
"""
TRACE = (
    "arrival_s,workers,gradient_bytes,update_s,iterations,compute_s\n0,2,102000000,0.1,2,0.2\n1,3,102000000,0.1,2,0.2\n"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "center.yml").write_text(CENTER)
    (tmp_path / "jobs.csv").write_text(TRACE)
    return tmp_path


def test_every_scheduler_gives_a_schedule_that_passes_the_check(files: Path) -> None:
    names = ",".join(SCHEDULERS)
    command = ("schedule", "center.yml", "--trace", "jobs.csv", "--schedulers", names, "--output", "out")
    done = inakit(*command, at=files)
    assert done.code == 0, done.error
    problem = load_scheduling(files / "out" / "problem.json")
    for name in SCHEDULERS:
        schedule = load_schedule(files / "out" / f"{name}.json")
        check(problem, schedule)
        assert name in done.output
    with (files / "out" / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(SCHEDULERS)
    assert all(float(row["end_s"]) - float(row["arrival_s"]) == pytest.approx(float(row["jct_s"])) for row in rows)
    page = (files / "out" / "report.html").read_text()
    assert len(page) > 100_000
    assert re.search(
        r"<title>\S+ has the shortest mean JCT, [^<]*times as long: 2 jobs of jobs.csv</title>", html.unescape(page)
    )
    again = inakit("schedule", "out/problem.json", "--format", "json", at=files)
    assert json.loads(again.output)["schedulers"][0]["mean_jct_s"] > 0


def test_circuits_are_listed_while_their_number_stays_the_same(files: Path) -> None:
    """Without INC both jobs send to a PS; where this is in the other unit, a circuit carries their rates."""
    done = inakit(
        "schedule", "center.yml", "--trace", "jobs.csv", "--schedulers", "noINC-TW", "--format", "json", at=files
    )
    (scheduler,) = json.loads(done.output)["schedulers"]
    crossing = [job for job in scheduler["jobs"] if set(job["workers"]) - {job["server"]}]
    circuits = scheduler["circuits"]
    assert crossing and circuits
    for one in circuits:
        assert 0 <= one["used"] <= 1 and one["from_s"] < one["until_s"] and one["ports"] >= 1
    for before, after in pairwise(circuits):
        changed = before["ports"] != after["ports"] or (before["used"] > 0) != (after["used"] > 0)
        assert changed or before["until_s"] < after["from_s"]
    carried = sum(one["used"] * one["ports"] * 8e9 * (one["until_s"] - one["from_s"]) for one in circuits)
    sent = sum(
        8 * 2 * 102e6 * count for job in crossing for unit, count in job["workers"].items() if unit != job["server"]
    )
    assert carried >= sent * 0.999, "slots are granted whole, so no less than the data"


@pytest.mark.compiler
def test_a_run_by_packets_is_exact_and_within_a_percent_of_its_plan(files: Path) -> None:
    command = (
        "schedule",
        "center.yml",
        "--trace",
        "jobs.csv",
        "--switch",
        "virtual",
        "--format",
        "json",
        "--scale",
        "1/1000",
    )
    done = inakit(*command, at=files)
    assert done.code == 0, done.error
    (ran,) = json.loads(done.output)["schedulers"]
    assert (ran["exact"], ran["verdict"]) == (True, "VALID")
    assert ran["measured_mean_jct_s"] == pytest.approx(ran["mean_jct_s"], rel=0.01)
    assert ran["measured_connections"] == ran["connections"]


@pytest.mark.compiler
@pytest.mark.parametrize("switch", ["none", "virtual"])
def test_after_a_connection_that_fails_jobs_get_a_new_plan(files: Path, switch: str) -> None:
    """Jobs of 4 and 3 workers send between a and b; in the first slot in which they do, a connection goes dark."""
    (files / "jobs.csv").write_text(TRACE.replace("0,2,", "0,4,"))
    command = ("schedule", "center.yml", "--trace", "jobs.csv", "--schedulers", "noINC-TW", "--format", "json",
               "--output", "out", "--switch", switch, "--scale", "1/1000")  # fmt: skip
    (usual,) = json.loads(inakit(*command, at=files).output)["schedulers"]
    begins_s = min(one["from_s"] for one in usual["circuits"] if one["used"] > 0)
    done = inakit(*command, "--dark", f"b:a@{begins_s + 0.5}s", at=files)
    assert done.code == 0, done.error
    document = json.loads(done.output)
    (anew,) = document["schedulers"]
    assert "are planned anew" in document["notes"][-1]
    assert anew["mean_jct_s"] > usual["mean_jct_s"]
    assert max(one["ports"] for one in anew["circuits"] if one["from_s"] > begins_s) <= 3
    if switch == "virtual":
        assert (anew["exact"], anew["verdict"]) == (True, "VALID")
        assert anew["measured_mean_jct_s"] == pytest.approx(anew["mean_jct_s"], rel=0.15)


def test_the_starter_is_scheduled_and_is_not_written_over(tmp_path: Path) -> None:
    assert inakit("schedule", "--starter", "hall", at=tmp_path).code == 0
    done = inakit("schedule", "hall/center.yml", "--trace", "hall/jobs.csv", at=tmp_path)
    assert done.code == 0 and "12 jobs" in done.output
    again = inakit("schedule", "--starter", "hall", at=tmp_path)
    assert again.code == 2 and "exists: choose another folder" in again.error


@pytest.mark.parametrize(
    ("center", "trace", "options", "message"),
    [
        (CENTER, TRACE + "x,0,3\n" * 2, (), "jobs.csv line 4: 3 values: 6, one for each column, are expected"),
        (CENTER, TRACE.replace("0,2,", "0,99,"), (), "jobs.csv: job 1, which arrives at 0 s: 99 workers, constr"),
        (CENTER, TRACE.replace("102000000", "-4"), (), "column gradient_bytes: '-4'"),
        (CENTER.replace("slot_s: 1.0", "slot_s: .nan"), TRACE, (), "center.yml: slot_s is nan"),
        (CENTER.replace("port_bps: 8.0e+9", "port_bps: 8e9"), TRACE, (), "write a point and a sign, as in 1.0e+12"),
        (CENTER.replace("servers: 3", "servers: 3e0"), TRACE, (), "found '3e0': write 3"),
        (CENTER.replace("name: b", "name: a"), TRACE, (), "unit 'a' is given 2 times"),
        (CENTER.replace("8.0e+9, optical", "1.0e+999, optical"), TRACE, (), "nic_bps"),
        (CENTER.replace("gpus", "gpu"), TRACE, (), "did you mean 'gpus'?"),
        (CENTER.replace("slot_s: 1.0", "slot_s: 0.001"), TRACE, (), "make slots longer"),
        (CENTER + "jobs:\n  - {workers: {a: 2}, server: b, gradient_bytes: 4}\n", TRACE, (), "remove those of one"),
        (CENTER, TRACE.replace("0.1,2,0.2", "0.1,1000000000,0.2"), (), "jobs.csv: job 1: it ends after slot 1,000,000"),
        (CENTER.replace("step_bps: 1.0e+9", "step_bps: 1.0e-9"), TRACE, (), "center.yml: step_bps 1e-09: at least"),
        ("", TRACE, (), "center.yml"),
        (CENTER, TRACE, ("--schedulers", "INC-TX"), "did you mean 'INC-TW'?"),
        (CENTER, TRACE, ("--schedulers", ","), "give at least one name"),
        (
            CENTER,
            TRACE,
            ("--compute", "0s"),
            "--compute 0s: expected a time in seconds, or such as 50us or 1ms, above 0",
        ),
        (CENTER, TRACE, ("--seed", "-1"), "'--seed': Input should be greater than or equal to 0"),
        (CENTER, TRACE, ("--switch", "virtual", "--scale", "1e-9"), "scale 1e-09 leaves nothing of the 102,000,000 b"),
        (
            CENTER,
            TRACE.replace("0,2,", "0,1,"),
            ("--switch", "virtual"),
            "job 1: its only worker leaves a switch nothing",
        ),
        (CENTER, TRACE, ("--switch", "virtul"), "virtul"),
        (CENTER, TRACE, ("--dark", "a:b"), "--dark a:b: expected two units and a time"),
        (CENTER, TRACE, ("--dark", "a:a@1s"), "expected two units and a time"),
        (CENTER, TRACE, ("--dark", "a:rack@1s"), "unknown unit 'rack'"),
        (CENTER, TRACE, ("--dark", "a:b@1"), "slot 1 has no connection between a and b that could fail"),
        (CENTER, TRACE, ("--switch", "virtual", "--scale", "0"), "scale 0"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    tmp_path: Path, center: str, trace: str, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "center.yml").write_text(center)
    (tmp_path / "jobs.csv").write_text(trace)
    done = inakit("schedule", "center.yml", "--trace", "jobs.csv", "--output", "out", *options, at=tmp_path)
    assert (done.code, done.output) == (2, "")
    assert message in done.error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["center.yml", "jobs.csv"]


def test_a_place_for_results_is_made_before_a_run_by_packets(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, "run_course", lambda *_: pytest.fail("it ran first"))
    trace = files / "jobs.csv"
    with pytest.raises(OutputError, match=r"jobs\.csv: File exists: it is a file; choose a folder"):
        commands.schedule(center=files / "center.yml", trace=trace, switch="virtual", output=trace)


def test_the_number_of_jobs_is_said_in_english(files: Path) -> None:
    (files / "jobs.csv").write_text(TRACE.partition("1,3,")[0])
    assert "the kit's: 1 job\n" in inakit("schedule", "center.yml", "--trace", "jobs.csv", at=files).output


def test_a_horizon_that_is_too_short_has_a_way_out(files: Path) -> None:
    (files / "center.yml").write_text(CENTER + "horizon: 1\n")
    done = inakit("schedule", "center.yml", "--trace", "jobs.csv", at=files)
    assert done.code == 2 and "not all jobs are done in T = 1 slots; raise horizon or slot_s" in done.error
