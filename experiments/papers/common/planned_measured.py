"""Plans on emulated networks: every plan's planned sending rate beside its measured one, as a table and as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.emulated_runs import EmulatedRun, run_emulated
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import BARS, Panel
from inakit.experiments.papers.common.value_tables import number
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.printed.report import VERDICT_STYLES
from inakit.experiments.run.printed.tables import NamedTable
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.headroom import with_room_for_results
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of

GRADIENT_BYTES, QUICK_GRADIENT_BYTES = 102_400, 51_200

NEAR = 0.05
"""A measured rate bears out the planned one if it differs by at most this share of it."""

Planned = tuple[Problem, Mapping[str, Plan]]
"""A problem, and plans for it by the names of their planners."""


def is_near(measured: float, planned: float) -> bool:
    """Whether a measured rate bears out the planned one."""
    return abs(measured / planned - 1) <= NEAR


@dataclass(frozen=True)
class RateRow:
    """One plan on one network: its sending rate as planned and as measured, and whether all sums were exact."""

    network: str
    planner: str
    planned_bps: float
    measured_bps: float
    exact: bool
    verdict: str

    @property
    def ratio(self) -> float:
        """The measured rate over the planned one."""
        return self.measured_bps / self.planned_bps

    @property
    def holds(self) -> bool:
        """Whether all sums were exact and the measured rate bears out the planned one."""
        return self.exact and is_near(self.measured_bps, self.planned_bps)


def bytes_of(request: Request) -> int:
    """The gradient's size for a request; a quick one has half of it."""
    return QUICK_GRADIENT_BYTES if request.quick else GRADIENT_BYTES


def run_plans(
    figure: str, planned: Mapping[str, Planned], console: Console, request: Request
) -> tuple[list[RateRow], str]:
    """Run all plans, which are given by network, and print their rates; the rows, and the worst verdict."""
    rows, verdicts = [], []
    for network, (problem, plans) in planned.items():
        runs = [EmulatedRun(name, problem, with_room_for_results(problem, plan)) for name, plan in plans.items()]
        done = run_emulated(f"{figure}-{network.replace(' ', '-')}", runs, request, console)
        own = [row_of(network, *each) for each in zip(runs, done.outcomes, strict=True)]
        done.folder.write_rows(
            "rates.csv", [f.name for f in fields(RateRow)], [list(asdict(row).values()) for row in own]
        )
        done.tell(console)
        rows += own
        verdicts += [done.verdict, VALID if all(row.holds for row in own) else Verdict.DIFFERS]
        save(done.folder.path / "figure", panel(own))
    console.print(table_of(rows))
    return rows, worst_of(verdicts)


def panel(rows: Sequence[RateRow]) -> Panel:
    """Bars of the measured rates on one network, with the planned ones."""
    places = list(dict.fromkeys(row.network for row in rows))
    unit, bps = unit_of(rows)
    series = {row.planner: [exact(row.measured_bps / bps)] for row in rows}
    planned = {row.planner: [row.planned_bps / bps] for row in rows}
    return Panel(BARS, places, series, "", f"sending rate ({unit})", planned=planned)


def unit_of(rows: Sequence[RateRow]) -> tuple[str, float]:
    """The unit in which the rates are shown, and how many bit/s it is."""
    return ("Gbit/s", 1e9) if max(row.planned_bps for row in rows) >= 1e9 else ("kbit/s", 1e3)


def row_of(network: str, run: EmulatedRun, outcome: Outcome) -> RateRow:
    """The row of one run."""
    planned_bps = evaluate(run.problem, run.plan).sending_rate_bps
    measured = outcome.measured
    return RateRow(network, run.name, planned_bps, measured.sending_rate_bps, bool(measured.exact), outcome.verdict)


def table_of(rows: Sequence[RateRow]) -> NamedTable:
    """A row for each plan on each network, rates in the unit that fits the fastest."""
    unit, bps = unit_of(rows)
    table = Table(title=f"sending rate ({unit})", box=SIMPLE_HEAD)
    for heading in ("network", "planner"):
        table.add_column(heading, no_wrap=True)
    for heading in ("planned", "measured", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("sums")
    table.add_column("verdict")
    for row in rows:
        style = VERDICT_STYLES.get(row.verdict, "bold yellow")
        figures = number(row.planned_bps / bps), number(row.measured_bps / bps), f"{row.ratio:.3f}"
        exact = "exact" if row.exact else "[red]wrong[/]"
        table.add_row(row.network, row.planner, *figures, exact, f"[{style}]{row.verdict}[/]")
    return NamedTable(table, names=2)
