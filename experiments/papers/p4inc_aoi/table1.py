"""P4INC-AOI's Table I: the heuristics against the MILP on 8 units, in the setting of all figures.

A gap is 1 - MILP / heuristic, as in the text. The MILP's CT-BTI is `milp`'s, which is proven; its time is that of the
program itself as printed, Eqs. (1) to (11), which HiGHS solves instead of Gurobi. What decides the absolute values is
measured beside them: fewer ports, links without limit, and T as long as the paper's schedules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from math import ceil

from rich.table import Table

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import Estimate, estimate
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import Points, Statement
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.p4inc_aoi.setting import DEFAULTS, OURS, PAPER, drawn, scheme_of
from inakit.experiments.papers.p4inc_aoi.simulation import GAPS, SMALL
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.milp import optimise_printed
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.topo.errors import SolverError

SEEDS = (5, 1)
MILP, PRINTED = "milp", "printed"
TABLE_SCHEMES = (MILP, *GAPS, OURS)
PROVABLE, LARGER = (40, 50, 60), (80, 100)
TABLE_SETTING: Trial = {**DEFAULTS, **SMALL}
TIME_LIMIT_S = 60.0
"""The time limit of a program; the paper's Gurobi took 85 to 358 s."""
FEWER_PORTS = (12, 8, 4, 2)
SOME = ("INC-FCFS", "INC-TW", OURS)
DECIDING: tuple[tuple[str, Trial, tuple[str, ...]], ...] = (
    ("24 ports", {}, (*GAPS, OURS)),
    ("24 ports, links without limit", {"links": "none"}, ("INC-FCFS",)),
    *((f"{ports} ports", {"ports": ports}, (*GAPS, OURS) if ports >= int(SMALL["units"]) - 1 else SOME)
      for ports in FEWER_PORTS),
)  # fmt: skip
"""What decides the absolute values, and the schemes that it concerns; NoRecon needs a port for each pair of units."""


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """The trials of a scheme and a number of jobs; a seed gives other jobs for another number of jobs.

    The program as printed runs for the first draw only.
    """
    count = 1 if cell["scheme"] == PRINTED else seeds
    return [{**TABLE_SETTING, **cell, "seed": seed + 100 * int(cell["jobs"])} for seed in range(count)]


def cells(request: Request) -> Iterator[Trial]:
    """Every scheme for every number of jobs; the MILP only where its optimum can be proven."""
    for jobs, name in product((*PROVABLE, *LARGER), TABLE_SCHEMES):
        if name != MILP or jobs in PROVABLE:
            yield {"jobs": jobs, "scheme": name}
    if not request.quick:
        for jobs in PROVABLE:
            yield {"jobs": jobs, "scheme": PRINTED}
            yield {"jobs": jobs, "scheme": PRINTED, "slots": slots_in_paper(jobs)}
        for _, choice, schemes in DECIDING[1:]:
            yield from ({"jobs": jobs, "scheme": name, **choice} for jobs in (*PROVABLE, *LARGER) for name in schemes)


def measure(trial: Trial) -> Result:
    """Measure a trial: CT-BTI, connections, seconds, and the MILP's remaining gap."""
    problem, options = drawn(trial), SolverOptions(time_limit_s=TIME_LIMIT_S)
    if trial["scheme"] == PRINTED:
        slots = int(trial.get("slots", 0)) or len(scheme_of({**trial, "scheme": MILP}).schedule(problem, options).slots)
        started = time.monotonic()
        try:
            schedule = optimise_printed(problem, slots, options)
        except SolverError:
            return {"seconds": time.monotonic() - started, "solved": 0}
        return {"seconds": time.monotonic() - started, "solved": int(schedule.outcome.gap == 0)}
    schedule = scheme_of(trial).schedule(problem, options)
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "connections": found.connections,
        "reconfigurations": found.reconfigurations,
        "seconds": schedule.outcome.seconds,
        "proven_gap": schedule.outcome.gap or 0.0,
    }


def show(found: Findings) -> Iterator[Part]:
    """Table I for our draws, the MILP's proofs, and the paper's gaps beside ours."""
    yield absolute(found)
    yield proofs(found)
    if not found.request.quick:
        yield deciding(found)
    shown = {scheme: [gap(found, scheme, jobs) for jobs in PROVABLE] for scheme in (*GAPS, OURS)}
    places = [f"{jobs} jobs" for jobs in PROVABLE]
    paper: Printed = {
        scheme: {place: in_paper(f"gap-{end}-{jobs}") for place, jobs in zip(places, PROVABLE, strict=True)}
        for scheme, end in GAPS.items()
    }
    yield Picture([Panel(BARS, places, shown, "", "gap to the MILP (%)", "Table I", paper)])
    yield list(said(found, shown))


def slots_in_paper(jobs: int) -> int:
    """T that the paper's MILP needs for its CT-BTI in slots of 1 s."""
    return ceil(in_paper(f"ct-milp-{jobs}"))


def in_paper(end: str) -> float:
    """A value of the printed table, from the ledger."""
    return float(str(read_ledger(PAPER).claims[f"table1-{end}"].paper))


COLUMNS = {MILP: "milp", **GAPS}
KEYS = {"ct": "ct_bti_s", "aoi": "connections", "time": "seconds"}


def said(found: Findings, gaps: dict[str, list[Estimate]]) -> Iterator[Statement]:
    """All values of the table, and the text's sentences about it."""
    ledger = read_ledger(PAPER)
    for scheme, (kind, key) in product(COLUMNS, KEYS.items()):
        for jobs in PROVABLE if scheme == MILP else (*PROVABLE, *LARGER):
            if (scheme, kind) == (MILP, "time"):
                if not found.request.quick:
                    seconds = found.mean({"jobs": jobs, "scheme": PRINTED}, "seconds")
                    yield ledger.judge(f"table1-time-milp-{jobs}", seconds)
                continue
            value = estimate(found.of({"jobs": jobs, "scheme": scheme}, key))
            yield ledger.judge(f"table1-{kind}-{COLUMNS[scheme]}-{jobs}", value)
    for scheme, end in GAPS.items():
        for jobs, value in zip(PROVABLE, gaps[scheme], strict=True):
            yield ledger.judge(f"table1-gap-{end}-{jobs}", value)

    def lines(key: str, *schemes: str) -> dict[str, Points]:
        return {name: [estimate(found.of({"jobs": n, "scheme": name}, key)) for n in PROVABLE] for name in schemes}

    yield ledger.judge("table1-milp-shortest", lines("ct_bti_s", MILP, *GAPS), PROVABLE)
    connections: dict[str, Points] = {
        name: [found.mean({"jobs": jobs, "scheme": name}, "connections") for jobs in PROVABLE]
        for name in (MILP, "INC-FCFS", "INC-TW")
    }
    yield ledger.judge("table1-milp-fewest", connections, PROVABLE)
    yield ledger.judge("table1-tw-nearer", {name: gaps[name] for name in ("INC-FCFS", "INC-TW")}, PROVABLE)
    yield ledger.judge("table1-tw-fewer", {name: connections[name] for name in GAPS if name in connections}, PROVABLE)
    yield ledger.judge("table1-fcfs-range", gaps["INC-FCFS"])
    yield ledger.judge("table1-tw-range", gaps["INC-TW"])
    ends = lines("ct_bti_s", "INC-TW", "INC-TW-NoRecon")
    yield ledger.judge("table1-norecon", ends, PROVABLE)
    between = (
        estimate([100 * (1 - low / high) for low, high in zip(tw.draws, fixed.draws, strict=True)])
        for tw, fixed in zip(*(
            [estimate(found.of({"jobs": n, "scheme": name}, "ct_bti_s")) for n in (*PROVABLE, *LARGER)]
            for name in ("INC-TW", "INC-TW-NoRecon")
        ), strict=True)
    )  # fmt: skip
    yield ledger.judge("table1-norecon-range", list(between))


def absolute(found: Findings) -> Table:
    """A table of seconds to schedule, CT-BTI and connections: means over the seeds."""
    table = Table("jobs", *TABLE_SCHEMES, title="time (s) / CT-BTI (s) / connections")
    keys = ("seconds", "ct_bti_s", "connections")
    for jobs in (*PROVABLE, *LARGER):
        known = [name for name in TABLE_SCHEMES if name != MILP or jobs in PROVABLE]
        cells = {
            name: " / ".join(f"{found.mean({'jobs': jobs, 'scheme': name}, key):.3g}" for key in keys) for name in known
        }
        table.add_row(str(jobs), *(cells.get(name, "-") for name in TABLE_SCHEMES))
    return table


def deciding(found: Findings) -> Table:
    """A table of CT-BTI, connections, and slots with a reconfiguration, under what decides the absolute values."""
    counts = (*PROVABLE, *LARGER)
    table = Table(
        "", "", *(f"{jobs} jobs" for jobs in counts), title="CT-BTI (s) / connections / slots with a reconfiguration"
    )
    for name, choice, schemes in DECIDING:
        for scheme in schemes:
            cells = ({"jobs": jobs, "scheme": scheme, **choice} for jobs in counts)
            keys = ("ct_bti_s", "connections", "reconfigurations")
            table.add_row(name, scheme, *(" / ".join(f"{found.mean(each, key):.3g}" for key in keys) for each in cells))
    return table


def proofs(found: Findings) -> Table:
    """A table of the MILP's proofs, and of the time of the program as printed."""
    table = Table(
        "jobs",
        "milp, longest (s)",
        "proven optimal",
        "largest gap left (%)",
        "as printed (s)",
        "solved",
        "with the paper's T (s)",
    )
    for jobs in PROVABLE:
        cell: Trial = {"jobs": jobs, "scheme": MILP}
        seconds, left = max(found.of(cell, "seconds")), found.of(cell, "proven_gap")
        printed: Trial = {"jobs": jobs, "scheme": PRINTED}
        ran = ["-", "-", "-"]
        if not found.request.quick:
            slots = slots_in_paper(jobs)
            longer: Trial = {**printed, "slots": slots}
            ran = [f"{found.mean(printed, 'seconds'):.0f}", "yes" if found.mean(printed, "solved") else "no"]
            solved = "" if found.mean(longer, "solved") else ", not solved"
            ran.append(f"T = {slots}: {found.mean(longer, 'seconds'):.0f}{solved}")
        table.add_row(
            str(jobs), f"{seconds:.1f}", f"{left.count(0.0)} of {len(left)}", f"{100 * max(left):.1f}", *ran
        )  # fmt: skip
    return table


def gap(found: Findings, scheme: str, jobs: int) -> Estimate:
    """The mean over the seeds of a scheme's gap, 1 - MILP / scheme, in percent."""
    best, own = (found.of({"jobs": jobs, "scheme": name}, "ct_bti_s") for name in (MILP, scheme))
    return estimate([100 * (1 - low / high) for low, high in zip(best, own, strict=True)])


FIGURES = {
    "table1": SweptFigure(
        f"{PAPER}-table1", "aoi-table1-trials", measure, cells, show, SEEDS, draws, leaves_out=COMPARES_SCHEDULERS
    )
}
