"""What a person sees of P4INC-AOI's testbed: its scenarios, the reductions that the paper states, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.papers.common import statements as text
from experiments.papers.common.estimates import MISSING, exact
from experiments.papers.common.method_styles import categories
from experiments.papers.common.panels import BARS, Panel, Printed
from experiments.papers.common.statements import Statement
from experiments.run.report import VERDICT_STYLES

MOST_DEVIATION = 0.1
"""Of the measured total JCT from the schedule's."""


@dataclass(frozen=True)
class Totals:
    """Over all jobs: completion times by model, and connections set up anew."""

    jct_s: Mapping[str, float]
    connections: int

    @property
    def total_jct_s(self) -> float:
        return sum(self.jct_s.values())

    @staticmethod
    def sum(parts: Iterable[Totals]) -> Totals:
        """Of several runs."""
        found = list(parts)
        jct_s = {model: sum(part.jct_s[model] for part in found) for model in found[0].jct_s}
        return Totals(jct_s, sum(part.connections for part in found))


@dataclass(frozen=True)
class Row:
    """A scenario. `lost` packets met a dark port."""

    scenario: str
    planned: Totals
    measured: Totals
    lost: int
    retransmissions: int
    exact: bool
    verdict: str

    @property
    def ratio(self) -> float:
        """Of the measured total JCT to the planned."""
        return self.measured.total_jct_s / self.planned.total_jct_s

    def cells(self) -> dict[str, object]:
        """For CSV."""
        both = {"planned": self.planned, "measured": self.measured}
        jct = {f"{kind}_jct_{model}_s": s for kind, totals in both.items() for model, s in totals.jct_s.items()}
        connections = {f"{kind}_connections": totals.connections for kind, totals in both.items()}
        rest = {name: getattr(self, name) for name in ("lost", "retransmissions", "exact", "verdict")}
        return {"scenario": self.scenario} | jct | connections | rest


# ---- tables ------------------------------------------------------------------------------------


def rows_table(rows: Sequence[Row]) -> Table:
    """Connections and JCT as planned and as measured; packets lost in the dark, and sent again."""
    table = Table(title="P4INC-AOI's testbed: Figures 6 and 7", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
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


ByScenario = Mapping[str, Totals]


@dataclass(frozen=True)
class Reduction:
    """By how much of `value` each scenario of `pairs` has less than the one before it, on average (per cent)."""

    what: str
    paper: float
    value: Callable[[Totals], float]
    pairs: tuple[tuple[str, str], ...]

    def ours(self, totals: ByScenario) -> float | None:
        """None where a scenario is missing, or has nothing to save."""
        if not all(name in totals for pair in self.pairs for name in pair):
            return None
        values = [(self.value(totals[one]), self.value(totals[other])) for one, other in self.pairs]
        return fmean(100 * (1 - after / before) for before, after in values) if all(b for b, _ in values) else None


def jct_of(model: str) -> Callable[[Totals], float]:
    return lambda totals: totals.jct_s[model]


INC = (("noINC-FCFS", "INC-FCFS"), ("noINC-TW", "INC-TW"))
TW = (("noINC-FCFS", "noINC-TW"), ("INC-FCFS", "INC-TW"))
REDUCTIONS = (
    Reduction("connections, by INC", 48.8, lambda totals: totals.connections, INC),
    Reduction("connections, by TW", 47.5, lambda totals: totals.connections, TW),
    Reduction("ResNet50's JCT, by INC with FCFS", 33.57, jct_of("ResNet50"), INC[:1]),
    Reduction("VGG16's JCT, by INC with FCFS", 43.96, jct_of("VGG16"), INC[:1]),
    Reduction("ResNet50's JCT, by INC with TW", 46.66, jct_of("ResNet50"), INC[1:]),
    Reduction("VGG16's JCT, by INC with TW", 56.34, jct_of("VGG16"), INC[1:]),
    Reduction("ResNet50's JCT, by TW without INC", 12.34, jct_of("ResNet50"), TW[:1]),
    Reduction("VGG16's JCT, by TW without INC", 12.7, jct_of("VGG16"), TW[:1]),
    Reduction("ResNet50's JCT, by TW with INC", 29.62, jct_of("ResNet50"), TW[1:]),
    Reduction("VGG16's JCT, by TW with INC", 32.0, jct_of("VGG16"), TW[1:]),
)
"""Section VII-B: averages over 10 to 60 jobs."""


def reductions_table(rows: Sequence[Row], many: ByScenario, draws: int) -> Table:
    """What the paper says of each reduction, and ours: of the schedules of so many draws, and as measured in one."""
    measured = {row.scenario: row.measured for row in rows}
    table = Table(title="reductions (%)", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("of what", no_wrap=True)
    for heading in ("\npaper", f"planned,\n{draws} draws", "\nratio", "measured,\none draw", "\nratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in REDUCTIONS:
        cells = (cell for totals in (many, measured) for cell in beside(each.ours(totals), each.paper))
        table.add_row(each.what, f"{each.paper:.1f}", *cells)
    return table


def beside(ours: float | None, paper: float) -> tuple[str, str]:
    return ("-", "-") if ours is None else (f"{ours:.1f}", f"{ours / paper:.2f}")


# ---- what is claimed ---------------------------------------------------------------------------


def claims(rows: Sequence[Row]) -> Iterator[Statement]:
    """What these runs have to show."""
    named = {row.scenario: row.measured for row in rows}
    jct = {name: [totals.total_jct_s] for name, totals in named.items()}
    connections = {name: [float(totals.connections)] for name, totals in named.items()}
    pair, where = ("noINC-FCFS", "INC-TW"), ["all jobs"]
    yield from text.in_order("total JCT (s)", pair, jct, where)
    yield from text.in_order("reconfigured connections", pair, connections, where)
    inexact = sum(not row.exact for row in rows)
    yield text.is_below("runs with a sum that is not exact, also in the dark", inexact, 0)
    furthest = max(abs(row.ratio - 1) for row in rows)
    yield text.is_below("measured total JCT, furthest from planned", furthest, MOST_DEVIATION)


# ---- the figures -------------------------------------------------------------------------------

MADE = "reconfigured"


def panels(rows: Sequence[Row]) -> list[Panel]:
    """Figure 6, and Figure 7, with a line across each bar where the schedule has it."""
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


def reductions_panel(rows: Sequence[Row], many: ByScenario, draws: int) -> Panel:
    """The reductions that the text gives, beside those of many schedules and of the runs."""
    measured = {row.scenario: row.measured for row in rows}
    kinds = {f"planned, {draws} draws": many, "measured, one draw": measured}
    names = [each.what for each in REDUCTIONS]
    series = {
        kind: [MISSING if (ours := each.ours(totals)) is None else exact(ours) for each in REDUCTIONS]
        for kind, totals in kinds.items()
    }
    paper: Printed = {kind: {name: each.paper for name, each in zip(names, REDUCTIONS, strict=True)} for kind in kinds}
    return Panel(BARS, names, series, "", "reduction (%)", "what the text gives", paper, styles=categories(kinds))
