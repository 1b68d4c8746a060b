"""The time of SOAR's dynamic program over the size of the tree, for several k."""

from __future__ import annotations

import time

from rich.console import Console

from inakit.experiments.papers.common import statements, value_tables
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import exact, means
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import LINES, Panel
from inakit.experiments.papers.soar.setting import binary_tree
from inakit.experiments.styles.method_styles import categories
from inakit.planner.methods.soar.optimum import best_switches
from inakit.traffic.measure.verdict import VALID, Verdict

SIZES, BUDGETS = (255, 511, 1023, 2047, 4095, 8191, 16383), (4, 16, 64, 128)
MOST_SECONDS = 1.0
"""For the largest tree with up to 10,000 switches, and any k of these."""


def run(console: Console, request: Request) -> str:
    """Print and draw processor seconds; VALID if 8,191 switches take less than a second for every k."""
    found = {f"k = {k}": [exact(seconds(size, k)) for size in SIZES] for k in BUDGETS}
    console.print(value_tables.table_of("SOAR: processor seconds", "switches", SIZES, means(found)))
    slowest = max(points[SIZES.index(8191)].value for points in found.values())
    said = statements.is_below("8,191 switches take less than 1 s", slowest, MOST_SECONDS)
    console.print(statements.table_of([said]))
    panel = Panel(LINES, SIZES, found, "switches", "processor seconds", log="xy", styles=categories(found))
    save(request.results / "soar-time", panel)
    return VALID if said.holds else Verdict.SLOW


def seconds(size: int, k: int) -> float:
    """The processor seconds of the best k switches of a tree of that size."""
    tree = binary_tree("uniform", "constant", 0, size)
    _ = tree.order, tree.children
    started = time.process_time()
    best_switches(tree, k)
    return time.process_time() - started
