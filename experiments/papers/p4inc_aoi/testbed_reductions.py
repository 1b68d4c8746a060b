"""The reductions that section VII-B states of P4INC-AOI's testbed: the paper's, those of schedules, measured ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.table import Table

from inakit.experiments.papers.common.estimates import MISSING, exact
from inakit.experiments.papers.common.panels import BARS, Panel, Printed
from inakit.experiments.papers.p4inc_aoi.testbed_report import ScenarioRow, Totals
from inakit.experiments.run.printed.tables import NARROW
from inakit.experiments.styles.method_styles import categories

ByScenario = Mapping[str, Totals]


@dataclass(frozen=True)
class Reduction:
    """The percentage by which `value` of the second scenario of each pair is below that of the first, on average."""

    what: str
    paper: float
    value: Callable[[Totals], float]
    pairs: tuple[tuple[str, str], ...]

    def ours(self, totals: ByScenario) -> float | None:
        """Our percentage; None where a scenario is missing, or has nothing to save."""
        if not all(name in totals for pair in self.pairs for name in pair):
            return None
        values = [(self.value(totals[one]), self.value(totals[other])) for one, other in self.pairs]
        return fmean(100 * (1 - after / before) for before, after in values) if all(b for b, _ in values) else None


def jct_of(model: str) -> Callable[[Totals], float]:
    """A function that gives a model's JCT of totals."""
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


def reductions_table(rows: Sequence[ScenarioRow], many: ByScenario, draws: int) -> Table:
    """A table of the paper's reductions and ours: of the schedules of so many draws, and as measured in one draw."""
    measured = {row.scenario: row.measured for row in rows}
    table = Table(title="reductions (%)", **NARROW)
    table.add_column("of what", no_wrap=True)
    for heading in ("\npaper", f"planned,\n{draws} draws", "\nratio", "measured,\none draw", "\nratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in REDUCTIONS:
        cells = (cell for totals in (many, measured) for cell in beside(each.ours(totals), each.paper))
        table.add_row(each.what, f"{each.paper:.1f}", *cells)
    return table


def beside(ours: float | None, paper: float) -> tuple[str, str]:
    """Our percentage and its ratio to the paper's, for a table."""
    return ("-", "-") if ours is None else (f"{ours:.1f}", f"{ours / paper:.2f}")


def reductions_panel(rows: Sequence[ScenarioRow], many: ByScenario, draws: int) -> Panel:
    """Bars of the reductions of many schedules and of the runs, with those that the text gives."""
    measured = {row.scenario: row.measured for row in rows}
    kinds = {f"planned, {draws} draws": many, "measured, one draw": measured}
    names = [each.what for each in REDUCTIONS]
    series = {
        kind: [MISSING if (ours := each.ours(totals)) is None else exact(ours) for each in REDUCTIONS]
        for kind, totals in kinds.items()
    }
    paper: Printed = {kind: {name: each.paper for name, each in zip(names, REDUCTIONS, strict=True)} for kind in kinds}
    return Panel(BARS, names, series, "", "reduction (%)", "what the text gives", paper, styles=categories(kinds))
