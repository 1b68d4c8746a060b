"""P4INC-AOI's Figure 2: what may cross between units, by plan and by real packets."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from closed_loops import NEVER_AGAIN
from command import inakit, nothing_left
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import Request
from inakit.topo.fabric.generators import units
from inakit.traffic.measure.verdict import VALID
from inakit.traffic.wire.packet_format import FRAGMENT


def test_only_the_circuits_are_between_units() -> None:
    from inakit.experiments.papers.p4inc_aoi.locality import between_units  # noqa: PLC0415

    found = list(between_units(units(4)))
    assert len(found) == len(set(found)) == 12
    assert all(a in units(4).switch_by_name and b in units(4).switch_by_name for a, b in found)


def test_by_plan_nothing_crosses_where_the_claim_says_so() -> None:
    from inakit.experiments.papers.p4inc_aoi.locality import (  # noqa: PLC0415
        SCENES,
        emulated_runs,
        planned_crossing,
    )

    crossing = {run.name: planned_crossing(run) // FRAGMENT.wire_bytes for run in emulated_runs(SCENES, 256 * 10)}
    # For ten fragments: two sums and two copies of the results of job 3; without sums each worker's own gradient.
    assert crossing == {
        "compact": 0,
        "fragmented": 10 * (2 + 2),
        "compact-no-inc": 10 * (8 + 3),
        "fragmented-no-inc": 10 * (8 + 4),
    }


def test_what_the_bytes_say() -> None:
    from inakit.experiments.papers.p4inc_aoi.locality import judgement  # noqa: PLC0415

    assert "the claim holds" in judgement(0, VALID)
    assert "does not hold" in judgement(1, VALID)
    assert "no result" in judgement(1, "OVERLOADED")


@pytest.mark.parametrize(
    "switch",
    [
        pytest.param("virtual", marks=pytest.mark.compiler),
        pytest.param("fast", marks=(pytest.mark.root, pytest.mark.long)),
        pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
    ],
)
def test_of_jobs_inside_units_not_a_byte_crosses(switch: str, tmp_path: Path) -> None:
    """Packets of a job over two units do cross. With long timeouts no worker sends again, even on a busy machine."""
    from inakit.experiments.papers.common.emulated_figure import run_emulated  # noqa: PLC0415
    from inakit.experiments.papers.p4inc_aoi.locality import (  # noqa: PLC0415
        SCENES,
        crossing,
        emulated_runs,
    )

    chosen = [
        replace(t, options=NEVER_AGAIN) for t in emulated_runs(SCENES, 12_800) if t.name in ("compact", "fragmented")
    ]
    with nothing_left():
        done = run_emulated("locality", chosen, Request(tmp_path, switch=switch), Console(quiet=True))
    inside, over = (crossing(*each) for each in zip(chosen, done.outcomes, strict=True))
    assert all(outcome.measured.exact for outcome in done.outcomes)
    assert (inside.measured_bytes, inside.circuits) == (0, ())
    assert over.measured_bytes >= over.planned_bytes > 0
    assert over.circuits == ("u1-u4", "u2-u4")


@pytest.mark.compiler
def test_the_command_leaves_a_table(tmp_path: Path) -> None:
    answer = inakit("reproduce", "p4inc-aoi", "locality", "--quick", "--switch", "virtual", at=tmp_path)
    assert answer.code == 0, answer
    with (tmp_path / "results" / "latest" / "locality.csv").open() as file:
        rows = {row["scene"]: row for row in csv.DictReader(file)}
    assert rows["compact"]["measured_bytes"] == "0"
    assert int(rows["fragmented"]["measured_bytes"]) >= int(rows["fragmented"]["planned_bytes"]) > 0
    assert "between units" in answer.output
