"""P4INC-AOI's Figure 2 by real packets: what crosses between units when a job's workers share one, and otherwise.

A unit is a programmable switch and its servers; an all-optical interconnect (AOI) joins units (section III). For jobs
whose workers share a unit the switch replaces the PS, "thus no connection needs to be set up through the AOI". So not
a byte of them may cross here, gradients, results and notices included, although each job's PS stands by in another
unit.
"""

from __future__ import annotations

from dataclasses import asdict, fields

from rich.console import Console

from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.emulated_runs import run_emulated
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.own_planners import leave_out
from inakit.experiments.papers.p4inc_aoi.crossings import Crossing, crossing, crossings_table, judgement, panel
from inakit.experiments.papers.p4inc_aoi.placements import (
    GRADIENT_BYTES,
    QUICK_GRADIENT_BYTES,
    QUICK_SCENES,
    SCENES,
    emulated_runs,
)
from inakit.traffic.measure.verdict import VALID, Verdict


def run(console: Console, request: Request) -> str:
    """Run every part of Figure 2, and print what crossed between units and whether the claim holds."""
    planned = list(
        emulated_runs(QUICK_SCENES, QUICK_GRADIENT_BYTES) if request.quick else emulated_runs(SCENES, GRADIENT_BYTES)
    )
    done = run_emulated("p4inc-aoi-locality", planned, request, console)
    found = [crossing(*each) for each in zip(planned, done.outcomes, strict=True)]
    names = [column.name for column in fields(Crossing)]
    done.folder.write_rows("locality.csv", names, [list(asdict(each).values()) for each in found])
    console.print(crossings_table(found))
    save(done.folder.path / "figure", panel(found))
    leave_out(console, "it compares placements of jobs")
    crossed = sum(each.measured_bytes for each in found if SCENES[each.scene].claim)
    console.print(judgement(crossed, done.verdict))
    done.tell(console)
    return Verdict.WRONG if crossed and done.verdict == VALID else done.verdict
