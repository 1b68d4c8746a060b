"""GOAT's Figure 2, its example of four workers, and the overloads of KRGS beside the bounds of Theorems 6 and 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, log

import numpy as np
from rich.console import Console

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel
from inakit.experiments.papers.common.estimates import Estimate, estimate, exact
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure, present
from inakit.experiments.papers.common.figure_registry import COMPARES_VARIANTS, Request, Run, leave_out
from inakit.experiments.papers.common.statements import value_table
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.goat.simulation import Reading, draw
from inakit.experiments.papers.goat.testbed import GOAT
from inakit.experiments.report.method_styles import categories
from inakit.planner.methods.goat.krgs import Gina, KrgsOptions, knapsacks, krgs, overloads, theorem_6, value
from inakit.planner.methods.goat.shared_slots import PS, Sharing, Slots, SlotTree

LEDGER = read_ledger("goat")

# -- Figure 2: four workers, three switches with memory for one fragment each, and three fragments.

RACKS = np.array([0, 0, 1, 1])
"""The switch above each worker; both send on to the third switch, which is that of the PS."""
ORDER = [(worker, fragment) for pair in ((0, 2), (1, 3)) for fragment in range(3) for worker in pair]
"""Workers and fragments in the figure's order: A1 A3 B1 B3 C1 C3 A2 A4 B2 B4 C2 C4."""
LINKS = np.array([[1.0, 2.0, 2.0, 3.0], [2.0, 1.0, 2.0, 3.0]])
"""The distances of both racks' workers to the switches and the PS; the switches are a triangle."""
TO_PS = np.array([2.0, 2.0, 1.0, 0.0])


def by_atp() -> tuple[float, float]:
    """The fragments that reach the PS, and those that switches send, where slots are taken until the result returns."""
    none = np.zeros(len(RACKS), np.int64)
    tree = SlotTree(RACKS, none, np.array([2, 2, PS]), np.ones(3, np.int64))
    slots = Slots.of(tree, Sharing("atp", flushed=False), lanes=1, fragments=3)
    slots.received -= len(RACKS)  # no result returns before the last fragment has been sent
    for worker, fragment in ORDER:
        slots.send(*(np.array([number]) for number in (worker, 0, fragment)))
    slots.drain()
    return slots.counts.ingress, slots.counts.transfers


def by_goat() -> tuple[float, float]:
    """The same for KRGS, with a fragment a sub-model and Eq. (1); workers' own links are not counted."""
    gina = Gina(np.ones(3), np.array([1.0, 1.0, 1.0, inf]), np.array([2, 2]), LINKS, TO_PS)
    found, _ = krgs(gina, KrgsOptions(objective="traffic"))
    at_server = found.x[:, :3].sum() + (found.y == gina.server).sum()
    return float(at_server), value(gina, found) - found.y.size


def run_example(console: Console, request: Request) -> str:
    """Compare ATP and GOAT on the example."""
    found = {"ATP": by_atp(), GOAT: by_goat()}
    (atp_ps, atp_sent), (goat_ps, goat_sent) = found.values()
    evidence = {
        "fig2-ps-atp": atp_ps, "fig2-ps-goat": goat_ps, "fig2-sent-atp": atp_sent, "fig2-sent-goat": goat_sent,
        "fig2-less-ps": 1 - goat_ps / atp_ps, "fig2-less-sent": 1 - goat_sent / atp_sent,
    }  # fmt: skip
    places = ("to the PS", "sent by switches")
    parts = (
        value_table("GOAT, fig2 (fragments)", "", places, found),
        [LEDGER.judge(name, number) for name, number in evidence.items()],
        Picture([Panel(BARS, places, {name: [*map(exact, own)] for name, own in found.items()}, "", "fragments")]),
    )
    judged = present(console, request.results / "goat-fig2", parts)
    leave_out(console, "it compares two algorithms on the order of packets of the paper's figure")
    return request.settle(console, judged)


# -- Theorems 6 and 7: the loads of one rounding over what switches hold, and over the linear program.

WORKERS = 35
NETWORK = "leaf-spine"
COUNTS = (4, 7, 14, 28, 55, 110)
"""The numbers of equal sub-models; 110 have the 2 MB of the text below Eq. (17)."""
SEEDS = (30, 10)
FULLEST, SENT, AT_PS, TRAFFIC, BOUND = (
    "fullest switch's memory",
    "most to a switch",
    "to the PS",
    "traffic",
    "Theorem 6",
)


def measure(trial: Trial) -> Result:
    """The overloads of one rounding for a draw of hosts and switches, and the smallest knapsack of the rounding."""
    reading, count, seed = Reading(), int(trial["sub_models"]), int(trial["seed"])
    drawn = draw(NETWORK, WORKERS, seed, reading.share)
    gina = drawn.gina(np.full(count, reading.model_bytes / count), reading.memory_bytes)
    found = overloads(gina, KrgsOptions(seed))
    rows = found.fractions.x[:, : gina.server]
    sacks = [float(row[sack].sum()) for row in rows for sack in knapsacks(row)]
    return {
        FULLEST: float(found.memory.max()),
        SENT: float(found.switches.max()),
        AT_PS: found.server,
        TRAFFIC: found.traffic,
        BOUND: theorem_6(gina),
        "sack": min(sacks, default=1.0),
        "nu": float(2 * reading.memory_bytes / gina.sizes.max()),
        "switches": gina.server,
    }


def cells(_: Request) -> list[Trial]:
    return [{"sub_models": count} for count in COUNTS]


def show(found: Findings) -> Iterator[Part]:
    """Overloads over the number of sub-models; the fullest switch's is that of the worst draw."""
    every = {count: [found.result(trial) for trial in found.trials({"sub_models": count})] for count in COUNTS}

    def over_counts(key: str, of: str = "mean") -> list[Estimate]:
        draws = [[float(result[key]) for result in results] for results in every.values()]
        return [exact(max(own)) if of == "max" else estimate(own) for own in draws]

    series = {
        f"{FULLEST}, worst draw": over_counts(FULLEST, "max"), f"{FULLEST}, mean": over_counts(FULLEST),
        SENT: over_counts(SENT), AT_PS: over_counts(AT_PS), TRAFFIC: over_counts(TRAFFIC), BOUND: over_counts(BOUND),
    }  # fmt: skip
    rows = {name: [point.value for point in points] for name, points in series.items()}
    nus = {"nu": [float(results[0]["nu"]) for results in every.values()]}
    yield value_table(f"overloads of KRGS, {NETWORK}, {WORKERS} workers", "sub-models", COUNTS, {**nus, **rows})
    switches = int(every[COUNTS[0]][0]["switches"])
    few = [number for number, nu in enumerate(nus["nu"]) if nu >= 3 * log(switches)]
    worst = series[f"{FULLEST}, worst draw"]
    within = all(point.value <= bound for point, bound in zip(worst, rows[BOUND], strict=True))
    enough = f"3 log |S| = {3 * log(switches):.2f} from {COUNTS[few[0]]} sub-models on"
    yield f"{switches} programmable switches: nu is at least {enough}"
    yield [
        LEDGER.judge("lemma4", min(float(result["sack"]) for results in every.values() for result in results)),
        LEDGER.judge("theorem6-bound", [worst[number] for number in few]),
        LEDGER.judge("theorem6-factor", within),
        LEDGER.judge("theorem6-nu", 2 * 64 / 2),
        LEDGER.judge("theorem6-log", 3 * log(20)),
        LEDGER.judge("theorem7", max(rows[TRAFFIC]) <= log(WORKERS * switches)),
        LEDGER.judge("theorem7-mean", series[SENT]),
    ]
    yield Picture([
        Panel(LINES, COUNTS, series, "sub-models", "over memory, or over the linear program", log="x",
              styles=categories(series))
    ])  # fmt: skip


FIGURES: Mapping[str, Run] = {
    "fig2": run_example,
    "theorems": SweptFigure(
        "goat-theorems", "goat-theorem-trials", measure, cells, show, SEEDS, processes=2, leaves_out=COMPARES_VARIANTS
    ),
}
