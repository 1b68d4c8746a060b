"""What a person sees of P4INC-AOI's testbed: its scenarios, the reductions that the paper states, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.papers.drawing import Draw, bars, save
from experiments.report import VERDICT_STYLES
from topo.draw import TREE_COLORS

MOST_DEVIATION = 0.1
"""Of the measured total JCT from the schedule's."""


@dataclass(frozen=True)
class Row:
    """A scenario. JCTs are totals by model; `connections` were set up anew; `lost` packets met a dark port."""

    scenario: str
    simulated_jct_s: Mapping[str, float]
    measured_jct_s: Mapping[str, float]
    simulated_connections: int
    connections: int
    lost: int
    retransmissions: int
    exact: bool
    verdict: str

    @property
    def simulated(self) -> float:
        return sum(self.simulated_jct_s.values())

    @property
    def measured(self) -> float:
        return sum(self.measured_jct_s.values())

    def cells(self) -> dict[str, object]:
        """For CSV."""
        jct = {
            f"{kind}_jct_{model}_s": value
            for kind, found in (("simulated", self.simulated_jct_s), ("measured", self.measured_jct_s))
            for model, value in found.items()
        }
        names = ("simulated_connections", "connections", "lost", "retransmissions", "exact", "verdict")
        return {"scenario": self.scenario} | jct | {name: getattr(self, name) for name in names}


# ---- tables ------------------------------------------------------------------------------------


def rows_table(rows: Sequence[Row]) -> Table:
    table = Table(title="P4INC-AOI's testbed: Figures 6 and 7", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    headings = (
        "connections\nplanned",
        "\nmade",
        "total JCT\nplanned (s)",
        "\nmeasured",
        "\nratio",
        "lost in\nthe dark",
    )
    for heading in (*headings, "sent\nagain"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("sums", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        style = VERDICT_STYLES.get(row.verdict, "bold yellow")
        table.add_row(
            row.scenario, str(row.simulated_connections), str(row.connections), f"{row.simulated:.2f}",
            f"{row.measured:.2f}", f"{row.measured / row.simulated:.3f}", f"{row.lost:,}", f"{row.retransmissions:,}",
            "exact" if row.exact else "WRONG", f"[{style}]{row.verdict}[/]",
        )  # fmt: skip
    return table


@dataclass(frozen=True)
class Reduction:
    """By how much of `value` each scenario of `pairs` has less than the one before it, on average (per cent)."""

    what: str
    paper: float
    value: Callable[[Row], float]
    pairs: tuple[tuple[str, str], ...]

    def ours(self, rows: Mapping[str, Row]) -> float | None:
        """None where a scenario is missing, or all of what it could save is 0."""
        if not all(name in rows for pair in self.pairs for name in pair):
            return None
        values = [(self.value(rows[one]), self.value(rows[other])) for one, other in self.pairs]
        return fmean(100 * (1 - after / before) for before, after in values) if all(b for b, _ in values) else None


def jct_of(model: str) -> Callable[[Row], float]:
    return lambda row: row.measured_jct_s[model]


INC = (("noINC-FCFS", "INC-FCFS"), ("noINC-TW", "INC-TW"))
TW = (("noINC-FCFS", "noINC-TW"), ("INC-FCFS", "INC-TW"))
REDUCTIONS = (
    Reduction("connections, by INC", 48.8, lambda row: row.connections, INC),
    Reduction("connections, by TW", 47.5, lambda row: row.connections, TW),
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


def reductions_table(rows: Sequence[Row]) -> Table:
    """What the paper says of each reduction, ours as measured, and their ratio."""
    named = {row.scenario: row for row in rows}
    table = Table(title="reductions (%)", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("of what", no_wrap=True)
    for heading in ("paper", "ours", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in REDUCTIONS:
        ours = each.ours(named)
        shown = ("-", "-") if ours is None else (f"{ours:.1f}", f"{ours / each.paper:.2f}")
        table.add_row(each.what, f"{each.paper:.1f}", *shown)
    return table


# ---- what is claimed ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    says: str
    holds: bool

    def line(self) -> str:
        return f"{self.says}: [green]holds[/]" if self.holds else f"{self.says}: [bold red]does not hold[/]"


def claims(rows: Sequence[Row]) -> Iterator[Claim]:
    """What these runs have to show."""
    named = {row.scenario: row for row in rows}
    plain, best = named["noINC-FCFS"], named["INC-TW"]
    yield Claim("INC-TW has a shorter total JCT than noINC-FCFS", best.measured < plain.measured)
    yield Claim("INC-TW reconfigures fewer connections than noINC-FCFS", best.connections < plain.connections)
    yield Claim("every sum is exact, also where packets met a dark port", all(row.exact for row in rows))
    yield Claim(
        f"measured and simulated JCTs are within {MOST_DEVIATION:.0%}",
        all(abs(row.measured / row.simulated - 1) <= MOST_DEVIATION for row in rows),
    )


# ---- the figures -------------------------------------------------------------------------------


def draw(rows: Sequence[Row], path: Path) -> None:
    """Figure 6, and Figure 7 with a line across each bar where the schedule has it."""
    scenarios = [row.scenario for row in rows]
    models = list(rows[0].measured_jct_s)
    colors = dict(zip(("made", *models), TREE_COLORS, strict=False))
    connections = bars(
        scenarios,
        {"made": [row.connections for row in rows]},
        colors,
        "connections",
        "Fig. 6: reconfigured connections",
    )
    jct = {model: [row.measured_jct_s[model] for row in rows] for model in models}
    totals = bars(scenarios, jct, colors, "total JCT (s)", "Fig. 7: measured (bars), planned (lines)")
    save(path, connections, with_marks(totals, [[row.simulated_jct_s[model] for row in rows] for model in models]))


def with_marks(panel: Draw, values: Sequence[Sequence[float]]) -> Draw:
    """A black line across every bar of a panel."""

    def both(axes: Axes) -> None:
        panel(axes)
        width = 0.8 / len(values)
        for position, found in enumerate(values):
            for group, value in enumerate(found):
                middle = group + (position - (len(values) - 1) / 2) * width
                axes.plot([middle - width / 2, middle + width / 2], [value, value], color="black")

    return both
