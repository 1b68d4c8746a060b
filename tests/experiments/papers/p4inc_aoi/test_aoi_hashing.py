"""P4INC-AOI's hashed slots: without redirecting, a packet meets older fragments; with it, none ever does."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import Request, find_figure
from inakit.planner.core.slot_policies import POLICIES, policy_of
from inakit.traffic.measure.verdict import VALID


def test_only_hashed_slots_bring_fragments_of_one_window_together() -> None:
    from inakit.experiments.papers.p4inc_aoi.hashing import SCHEMES, Place, emulated_run  # noqa: PLC0415
    from inakit.traffic.endpoints.streams import tree_arrays, tree_parts  # noqa: PLC0415

    least: dict[str, int] = {}
    for scheme in SCHEMES:
        run = emulated_run(Place(scheme, 32, 0.0), 400)
        (part,) = tree_parts(run.problem, run.plan)
        seq = np.arange(400)
        slots = tree_arrays([part], {"u2h1": 0}).slot(np.zeros(400, np.int64), seq)
        assert set(slots) <= set(range(32))
        apart = [np.diff(np.flatnonzero(slots == slot)).min() for slot in set(slots)]
        least[SCHEMES[scheme]] = int(min(apart))
        assert part.tree.window == 32 // policy_of(SCHEMES[scheme]).versions
    assert least["p4inc-aoi-timeout"] == 32, "two windows apart"
    assert least["p4inc-aoi-hash"] < 16
    assert POLICIES["p4inc-aoi-hash"].notifies


@pytest.mark.compiler
def test_losses_make_asynchronous_errors_and_halve_windows_where_nothing_redirects(tmp_path: Path) -> None:
    console = Console(quiet=True)
    request = Request(tmp_path, quick=True, switch="virtual")
    assert find_figure("p4inc-aoi", "hashing").run(console, request) == VALID
    (file,) = tmp_path.rglob("hashing.csv")
    rows = {(row["scheme"], row["loss"]): row for row in csv.DictReader(file.open(encoding="utf-8"))}
    assert {row["exact"] for row in rows.values()} == {"True"}
    errors = {place: float(row["errors"]) for place, row in rows.items()}
    assert errors["hashed only", "0.01"] > 0 == errors["redirected", "0.01"]
    lossy = (rows["redirected", "0.01"], rows["hashed only", "0.01"])
    few, many = (float(row["window_cuts"]) for row in lossy)
    assert few < many
    assert 2 * float(lossy[0]["over_plan"]) < float(lossy[1]["over_plan"])
