"""The report on P4INC-AOI's emulated testbed: a table of its scenarios, what they have to show, and the figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.panels import BARS, Panel
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.run.printed.report import VERDICT_STYLES
from inakit.experiments.run.printed.tables import NARROW
from inakit.experiments.styles.method_styles import categories


@dataclass(frozen=True)
class Totals:
    """Over all jobs: the sums of completion times by model, and the number of reconfigured connections."""

    jct_s: Mapping[str, float]
    connections: int

    @property
    def total_jct_s(self) -> float:
        """The sum of the completion times of all jobs."""
        return sum(self.jct_s.values())

    @staticmethod
    def sum(parts: Iterable[Totals]) -> Totals:
        """The totals of several runs together."""
        found = list(parts)
        jct_s = {model: sum(part.jct_s[model] for part in found) for model in found[0].jct_s}
        return Totals(jct_s, sum(part.connections for part in found))


@dataclass(frozen=True)
class ScenarioRow:
    """A scenario that was run. `lost` is the number of packets that met a port during its reconfiguration."""

    scenario: str
    planned: Totals
    measured: Totals
    lost: int
    retransmissions: int
    exact: bool
    verdict: str

    @property
    def ratio(self) -> float:
        """The measured total JCT over the planned one."""
        return self.measured.total_jct_s / self.planned.total_jct_s

    def cells(self) -> dict[str, object]:
        """The row of the CSV, by column."""
        both = {"planned": self.planned, "measured": self.measured}
        jct = {f"{kind}_jct_{model}_s": s for kind, totals in both.items() for model, s in totals.jct_s.items()}
        connections = {f"{kind}_connections": totals.connections for kind, totals in both.items()}
        rest = {name: getattr(self, name) for name in ("lost", "retransmissions", "exact", "verdict")}
        return {"scenario": self.scenario} | jct | connections | rest


def rows_table(rows: Sequence[ScenarioRow]) -> Table:
    """Connections and JCT as planned and as measured; packets lost in the dark, and sent again."""
    table = Table(title="P4INC-AOI's testbed: Figures 6 and 7", **NARROW)
    table.add_column("", no_wrap=True)
    connections, jct = ("connec-\nplanned", "tions\nmade"), ("total\nplanned", "JCT (s)\nmeasured", "\nratio")
    for heading in (*connections, *jct, "lost,\ndark", "sent\nagain"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("\nverdict", no_wrap=True)
    for row in rows:
        style = VERDICT_STYLES.get(row.verdict, "bold yellow")
        connected = (str(totals.connections) for totals in (row.planned, row.measured))
        jct_s = (f"{totals.total_jct_s:.2f}" for totals in (row.planned, row.measured))
        packets = (f"{count:,}" for count in (row.lost, row.retransmissions))
        table.add_row(row.scenario, *connected, *jct_s, f"{row.ratio:.3f}", *packets, f"[{style}]{row.verdict}[/]")
    return table


def claims(rows: Sequence[ScenarioRow]) -> Iterator[Statement]:
    """The statements that these runs have to bear out."""
    named = {row.scenario: row.measured for row in rows}
    jct = {name: [totals.total_jct_s] for name, totals in named.items()}
    connections = {name: [float(totals.connections)] for name, totals in named.items()}
    pair, where = ("noINC-FCFS", "INC-TW"), ["all jobs"]
    yield from statements.in_order("total JCT (s)", pair, jct, where)
    yield from statements.in_order("reconfigured connections", pair, connections, where)
    inexact = sum(not row.exact for row in rows)
    yield statements.is_below("runs with a sum that is not exact, also in the dark", inexact, 0)
    furthest = max(abs(row.ratio - 1) for row in rows)
    yield statements.is_below("measured total JCT, furthest from planned", furthest, statements.ABOUT)


MADE = "reconfigured"


def panels(rows: Sequence[ScenarioRow]) -> list[Panel]:
    """Figure 6 and Figure 7 as bars, with a line across each bar at the schedule's value."""
    scenarios, models = [row.scenario for row in rows], list(rows[0].measured.jct_s)
    made = {MADE: [exact(row.measured.connections) for row in rows]}
    planned = {MADE: [float(row.planned.connections) for row in rows]}
    jct = {model: [exact(row.measured.jct_s[model]) for row in rows] for model in models}
    jct_planned = {model: [row.planned.jct_s[model] for row in rows] for model in models}
    styles = categories([MADE, *models])
    return [
        Panel(BARS, scenarios, made, "", "connections", "Fig. 6", planned=planned, styles=styles),
        Panel(BARS, scenarios, jct, "", "total JCT (s)", "Fig. 7", planned=jct_planned, styles=styles),
    ]
