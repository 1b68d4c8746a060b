"""ARO's Figures 1, 3 and 6: the states that the paper draws, run by packets, and APP's choice between two switches.

A state has the spine that each leaf's traffic takes and the switches that sum, as the paper draws them; ARO's plan of
the network of Figure 1 runs beside them. In Figure 3b all gradients are summed at L1, which GRID's first program may
choose among all aggregators; two of the three ways there descend and climb again. That state is evaluated and does not
run: w4's gradients and the sum pass S0 by the same label, once downwards and once upwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.emulated_figure import EmulatedFigure, EmulatedRun, EmulatedRuns, bytes_of
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Part, Picture
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import beside_paper
from inakit.experiments.report.method_styles import categories
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro.accelerations import pre_pruned, unevenness
from inakit.planner.methods.aro.task_graphs import TaskGraph, task_graph
from inakit.planner.methods.grid import PS, GridOptions, choose_places
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths, plan_of_trees
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import Cable, aro_figure1, aro_figure3a, wire
from inakit.traffic.wire.packet_format import FRAGMENT

LEDGER = read_ledger("aro")
LINK_BPS = 2e6
LEAVES = {"w0": "l1", "w1": "l1", "w2": "l2", "w3": "l2", "w4": "l3"}


@dataclass(frozen=True)
class State:
    """The spine that each leaf's traffic takes, the switches that sum, and the paper's rate as a share of a link's."""

    fabric: Fabric
    spines: Mapping[str, str]
    summed_at: Collection[str]
    share: float
    claim: str

    def planned(self, gradient_bytes: int) -> tuple[Problem, Plan]:
        """The job of five workers with the state's plan."""
        problem = job_of_five(self.fabric, gradient_bytes)
        paths = [(worker, leaf, self.spines[leaf], "l0", "ps") for worker, leaf in LEAVES.items()]
        return problem, plan_from_paths(problem, {1: paths}, self.summed_at, method="state")


STATES = {
    "1a, no INA": State(aro_figure1(LINK_BPS), {"l1": "s0", "l2": "s1", "l3": "s1"}, (), 1 / 5, "fig1-without-ina"),
    "3a, ATP": State(
        aro_figure3a(LINK_BPS), {"l1": "s0", "l2": "s1", "l3": "s1"}, ("l0", "l1", "l2", "l3"), 1 / 2, "fig3a-atp"
    ),
    "3c, AggTree": State(
        aro_figure1(LINK_BPS), {"l1": "s0", "l2": "s1", "l3": "s0"}, ("l1", "l2", "s1"), 1 / 3, "fig3c-aggtree"
    ),
}
ARO, GRID = "1b, ARO", "3b, GRID"
PRINTED = {ARO: 1.0, GRID: 1 / 2, **{name: state.share for name, state in STATES.items()}}


def job_of_five(fabric: Fabric, gradient_bytes: int) -> Problem:
    return Problem(fabric, (Job(1, tuple(LEAVES), ("ps",), gradient_bytes),), FRAGMENT)


def grid_at_l1(problem: Problem) -> Plan:
    """Figure 3b: w0 and w1 are under L1; w2 and w3 reach it over S1 and w4 over S0; the sum takes S0 to the PS."""
    ways = {"l1": (), "l2": ("l2", "s1"), "l3": ("l3", "s0")}
    branches = [Branch(label, 6, (worker, *ways[LEAVES[worker]], "l1")) for label, worker in enumerate(LEAVES, 1)]
    summing = Aggregator(6, "l1", 0, (1, 2, 3, 4, 5), 0, 0)
    workers = dict(enumerate(LEAVES, 1))
    tree = AggregationTree(1, "ps", workers, (summing,), (*branches, Branch(6, 0, ("l1", "s0", "l0", "ps"))))
    return plan_of_trees("state", problem, [(1, 1.0, tree)])


def broken_rule(problem: Problem, plan: Plan) -> str:
    """The rule that the checker finds broken, or an empty string."""
    try:
        check(problem, plan)
    except PlanError as error:
        return str(error)
    return ""


def runs(request: Request) -> Sequence[EmulatedRun]:
    """Every state, and ARO's own plan."""
    size = bytes_of(request)
    problem = job_of_five(aro_figure1(LINK_BPS), size)
    found = {name: state.planned(size) for name, state in STATES.items()}
    found[ARO] = problem, METHODS["aro"].plan(problem)
    return [EmulatedRun(name, *found[name], {"state": name}) for name in sorted(found)]


def show(_: Request, done: EmulatedRuns) -> Iterator[Part]:
    """Each state's rate as a share of a link's, the rule that GRID's state breaks, and APP's choice in Figure 6."""
    measured = {
        run.name: outcome.measured.sending_rate_bps / LINK_BPS
        for run, outcome in zip(done.runs, done.outcomes, strict=True)
    }
    problem = job_of_five(aro_figure1(LINK_BPS), 4 * FRAGMENT.values)
    descending = grid_at_l1(problem)
    measured[GRID] = evaluate(problem, descending).sending_rate_bps / LINK_BPS
    broken = {run.name: broken_rule(run.problem, run.plan) for run in done.runs}
    broken[GRID] = broken_rule(problem, descending)
    graph = figure6()
    (pruned,) = pre_pruned([graph], 0.6)
    yield beside_paper(
        "ARO, Figures 1 and 3 (share of a link's rate, measured; 3b by the model)",
        [(name, PRINTED[name], share) for name, share in measured.items()],
        heading="state",
    )
    yield f"GRID's first program, with all aggregators for every worker, sums at {', '.join(grids_places(problem))}"
    yield f"the state of Figure 3b: {broken[GRID]}"
    series = {name: [exact(share)] for name, share in measured.items()}
    paper: Printed = {name: {"": PRINTED[name]} for name in measured}
    yield Picture([Panel(BARS, [""], series, "", "share of a link's rate", paper=paper, styles=categories(series))])
    yield [
        *(LEDGER.judge(state.claim, measured[name]) for name, state in STATES.items()),
        LEDGER.judge("fig1-with-ina", measured[ARO]),
        LEDGER.judge("fig3b-grid", measured[GRID]),
        LEDGER.judge("fig3b-breaks-updown", [name for name, why in broken.items() if "up-down" in why] == [GRID]),
        LEDGER.judge("fig6-aa0", unevenness(graph, "aa0")),
        LEDGER.judge("fig6-aa1", unevenness(graph, "aa1")),
        LEDGER.judge("fig6-choice", "aa1" in pruned.into and "aa0" not in pruned.into),
    ]


def figure6() -> TaskGraph:
    """Figure 6: two spines that both sum, with two pipelines each; three leaves with seven workers, one for the PS."""
    racks = {"l0": ("w0", "w1", "w2"), "l1": ("w3", "w4", "w5"), "l2": ("w6",), "l3": ("ps",)}
    cables = [Cable(host, leaf, LINK_BPS) for leaf, rack in racks.items() for host in rack]
    cables += [Cable(leaf, spine, LINK_BPS) for leaf in racks for spine in ("aa0", "aa1")]
    tiers = dict.fromkeys(racks, 1) | {"aa0": 2, "aa1": 2}
    fabric = wire("figure6", [host for rack in racks.values() for host in rack], tiers, cables)
    groups = {"l0": ((1, 2), (3, 4, 5)), "aa0": ((1, 2, 4), (3,)), "aa1": ((1, 4), (2, 3))}
    switches = [replace(s, ina=s.name in groups, pipelines=groups.get(s.name, s.pipelines)) for s in fabric.switches]
    return task_graph(replace(fabric, switches=tuple(switches)), [f"w{number}" for number in range(7)], "ps")


def grids_places(problem: Problem) -> list[str]:
    """The switches where GRID's first program sums if each worker can use every aggregator."""
    names = [PS, *sorted(problem.fabric.ina_names)]
    rates = choose_places(dict.fromkeys(LEAVES, names), GridOptions())
    return sorted({name or "the PS" for (_, name), rate in rates.items() if rate > 0})


FIGURES = {
    "examples": EmulatedFigure("aro-examples", runs, show, leaves_out="it compares the plans that the paper draws")
}
