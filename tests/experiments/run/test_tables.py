"""Planners' names are whole in every table, also where Rich assumes 80 columns, and figures stay in their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from io import StringIO

import pytest
from made_up_record import made_up_record, planner
from rich.console import Console, RenderableType
from rich.table import Table

from inakit.experiments.emulate.presets import PRESETS, comparison
from inakit.experiments.papers.common import emulated_figure
from inakit.experiments.run.console import NamedTable
from inakit.experiments.run.planning import plan_to_run, print_comparison
from inakit.experiments.run.printed_report import planners_report, replay_lines
from inakit.experiments.run.record import RunRecord
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.traffic.measure.measured import Replayed

NAMES = (
    "aro",
    "aggtree-balanced",
    "inart-forest-replanned+shadow-copy",
    "a-planner-of-my-own-" + 6 * "with-a-long-name-",
)
FIGURES = {
    "sending_rate_bps": 12345.678e6,
    "ps_ingress_bytes": 123456789,
    "communication_time_s": 12.3456,
    "aggregation_ratio": 123.45,
}
OF_README = {
    "sending_rate_bps": 20e6,
    "ps_ingress_bytes": 698_000,
    "communication_time_s": 0.2792,
    "aggregation_ratio": 15.0,
}


def printed(what: RenderableType) -> str:
    console = Console(file=StringIO(), width=80)
    console.print(what)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def record(jobs: int, names: Sequence[str] = NAMES, of_all: Mapping[str, float] = FIGURES) -> RunRecord:
    """A run with this number of jobs."""
    entry = planner(of_all, jobs, setup_s=3.7, verdict="OVERLOADED")
    return made_up_record(dict.fromkeys(names, entry), names)


@pytest.mark.parametrize(
    ("pipelines", "words"),
    [
        ([[[1, 2]], [[1, 2]]], "2 switches,"),
        ([[[1], [2]], [[1], []]], "2 switches (2 pipelines),"),
        ([[[1, 2]], [[1], [2], [3]]], "2 switches (up to 3 pipelines),"),
    ],
)
def test_the_report_says_how_many_pipelines_switches_have(pipelines: list[list[list[int]]], words: str) -> None:
    made = record(1, ("aro",))
    switches = {f"s{number}": {"pipelines": groups} for number, groups in enumerate(pipelines)}
    made.fabric.switches, made.fabric.description = len(switches), {"switches": switches}
    assert words in printed(planners_report(made))


def test_a_replay_says_what_tcpreplay_is_told() -> None:
    told = [
        Replayed(1, f"h{n}", 10, rate, f"tcpreplay --pps={rate} h{n}.pcap") for n, rate in ((1, 200.0), (2, 150.04))
    ]
    assert list(replay_lines("aro", planner(replayed=told))) == [
        "aro: 2 pcaps, 20 frames in an iteration, at 150.0 to 200.0 frames/s each: "
        "`tcpreplay --pps=200.0 h1.pcap` in h1"
    ]
    untold = [replace(each, command=None, rate_fps=9.0) for each in told]
    assert list(replay_lines("aro", planner(replayed=untold))) == [
        "aro: 2 pcaps, 20 frames in an iteration, at 9.0 frames/s each: by no program, in virtual time"
    ]


def preset_table() -> RenderableType:
    return comparison(PRESETS["inart"], {"LSTM": record(1)})


def emulated_table() -> RenderableType:
    return emulated_figure.table_of(
        [emulated_figure.RateRow("fat-tree", name, 1e6, 1e6, True, "VALID") for name in NAMES]
    )


TABLES: dict[str, Callable[[], RenderableType]] = {
    "the report of one job": lambda: planners_report(record(1)),
    "the report of three jobs": lambda: planners_report(record(3)),
    "a preset": preset_table,
    "reproduce aro emulated": emulated_table,
}


@pytest.mark.parametrize("table", TABLES)
def test_names_are_whole_at_80_columns(table: str) -> None:
    text = printed(TABLES[table]())
    whole = "".join(line.rstrip("\n") for line in text.splitlines(keepends=True))
    for name in NAMES:
        assert name in whole
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_comparison_of_plans_has_whole_names() -> None:
    problem = build_problem(FabricChoice("aro-figure1"), JobChoice())
    run = plan_to_run(problem, "lbmm", 0)
    console = Console(file=StringIO(), width=80)
    print_comparison(console, dict.fromkeys(NAMES[:3], run))
    assert isinstance(console.file, StringIO)
    assert all(name in console.file.getvalue() for name in NAMES[:3])
    assert "…" not in console.file.getvalue()


def test_a_table_that_fits_is_not_changed() -> None:
    table = Table("planner", "rate")
    table.add_row("aro", "1.000")
    assert printed(NamedTable(table)) == printed(table)


def test_figures_stand_below_their_headings_and_rows_stay_with_their_names() -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("planner", no_wrap=True)
    for heading in ("planned", "measured"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in NAMES[2:]:
        table.add_row(name, "1.0", "1.1")
        table.add_row("", "22.0", "22.2")
    console = Console(file=StringIO(), width=40)
    console.print(NamedTable(table))
    assert isinstance(console.file, StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]
    figures = ["    1.0       1.1", "   22.0      22.2"]
    assert lines[:4] == ["planned  measured", NAMES[2], *figures]
    assert lines[-2:] == figures
    assert "".join(lines[4:-2]) == NAMES[3]


def test_a_single_job_has_the_columns_of_the_readme() -> None:
    text = printed(planners_report(record(1, ("aro",), OF_README)))
    assert "job" not in text
    assert "aro      planned" in text
    assert "total" not in text


def test_every_job_has_its_rows_and_the_totals_are_last() -> None:
    text = printed(planners_report(record(3, ("aro",), OF_README)))
    rows = [line.split()[:3] for line in text.splitlines() if "planned" in line]
    assert [row[:2] for row in rows] == [["aro", "1"], ["2", "planned"], ["3", "planned"], ["total", "planned"]]
    assert "The total is the rate of all workers together" in " ".join(text.split())
    assert text.count("OVERLOADED") == text.count("sums exact") == 1


def test_a_planner_that_was_not_measured_has_its_planned_rows() -> None:
    made = record(3, ("aro",), OF_README)
    made.planners["aro"] = planner(OF_README, 3)
    lines = [line.split() for line in printed(planners_report(made)).splitlines() if "measured" in line]
    assert len(lines) == 4
    assert all(line[-4:] == ["-"] * 4 for line in lines)
