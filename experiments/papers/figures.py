"""The registry of the papers' figures: each is one command, `inakit reproduce PAPER FIGURE`.

A new figure is a module in the paper's room with a function that takes a console and a `Request` and returns a verdict,
and one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

from rich.console import Console

from inakit.experiments.papers.common.figure import Figure, Request
from inakit.experiments.sweeps.trial import tried
from inakit.topo.errors import InputError, unknown_name
from inakit.traffic.measure.verdict import Verdict, worst_of


def module(name: str, function: str = "run", *given: str) -> Callable[[Console, Request], str]:
    """A function of a module in a paper's room, which is imported only when the figure is run.

    `given` are arguments before the console, such as the name of the figure where the function draws several.
    """

    def run(console: Console, request: Request) -> str:
        verdict: str = getattr(import_module(f"inakit.experiments.papers.{name}"), function)(*given, console, request)
        return verdict

    return run


INART_TESTBED = {
    "fig2": "sending rate",
    "fig3": "training throughput",
    "fig4": "time per iteration",
    "fig5": "communication time",
}


INART_FIGURES = {
    "fig8": "sending rate by model",
    "fig9": "sending rate over workers",
    "fig10": "communication time by model",
    "fig11": "communication time over workers",
    "fig12": "network throughput over workers",
    "fig13": "PS ingress by model",
}
"""Each of these figures is there simulated and, as `figN-emulated`, by real packets."""


FIGURES: dict[str, dict[str, Figure]] = {
    "aro": {
        "fig7": Figure(
            "one task: rates by default, over INA switches, over workers",
            module("aro.effectiveness", "fig7"),
            simulated=True,
        ),
        "fig8": Figure(
            "one task: rates over the number of pipelines", module("aro.effectiveness", "fig8"), simulated=True
        ),
        "fig9": Figure(
            "one job of 1 to 4 tasks: least and total rate", module("aro.effectiveness", "fig9"), simulated=True
        ),
        "fig10": Figure(
            "1 to 4 jobs of two tasks: least and total rate", module("aro.effectiveness", "fig10"), simulated=True
        ),
        "fig11": Figure("five jobs: what SRO and APP save and lose", module("aro.efficiency", "fig11"), simulated=True),
        "fig12": Figure("what alpha of APP saves and loses", module("aro.efficiency", "fig12"), simulated=True),
        "fig13": Figure("what N of QSR saves and loses", module("aro.efficiency", "fig13"), simulated=True),
        "emulated": Figure("ARO, baselines, two trees: planned, measured", module("aro.emulated")),
        "fig7-emulated": Figure(
            "one task on the default network, by real packets", module("aro.emulated", "fig7_by_packets")
        ),
    },
    "atro": {
        "fig3": Figure("rates of ATRO, ARO, PARING and SPAR", module("atro.topologies", "fig3"), simulated=True),
        "fig4": Figure("rates over the number of workers", module("atro.topologies", "fig4"), simulated=True),
        "fig5": Figure("rates over the number of aggregators", module("atro.topologies", "fig5"), simulated=True),
        "emulated": Figure("the network for 32 workers: planned, measured", module("atro.topologies", "emulated")),
    },
    "closed-loop": {
        "random": Figure(
            "30 random fabrics: what plans gain that know of results", module("closed_loop.gain", "random_fabrics")
        ),
        "own": Figure(
            "the kit's fabrics: what plans gain that know of results", module("closed_loop.gain", "own_fabrics")
        ),
        "aro": Figure("the settings of ARO's Figures 9 and 10: the same", module("closed_loop.gain", "of_aro")),
    },
    "frontier": {
        "planners": Figure(
            "every planner and a bound of any method, on the kit's fabrics",
            module("closed_loop.frontier"),
            simulated=True,
        ),
    },
    "collectives": {
        "crossover": Figure(
            "INA against ring, halving-doubling, trees, sharded PSs: where it begins to win",
            module("collectives.crossover"),
            simulated=True,
        ),
        "planners": Figure(
            "collectives and the planners beside them by packets: planned, measured, with 1 % loss",
            module("collectives.by_packets"),
        ),
        "scale": Figure(
            "a short message over 16 to 1,024 workers: INA and collectives", module("collectives.scale"), simulated=True
        ),
    },
    "goat": {
        "fig4": Figure("training throughput by model: GOAT, ESA, ATP, Geryon", module("goat.training", "run", "fig4")),
        "fig5": Figure("training throughput over the workers", module("goat.training", "run", "fig5")),
        "fig7": Figure("time per epoch over the workers", module("goat.training", "run", "fig7")),
        "fig8": Figure("communication time over the workers", module("goat.training", "run", "fig8")),
        "fig9": Figure("what comes to the PS over the workers", module("goat.training", "run", "fig9")),
        "fig10": Figure(
            "what comes to the PS over the workers", module("goat.simulation", "run", "fig10"), simulated=True
        ),
        "fig11": Figure(
            "what switches sum over the workers", module("goat.simulation", "run", "fig11"), simulated=True
        ),
        "fig12": Figure(
            "communication overhead over the workers", module("goat.simulation", "run", "fig12"), simulated=True
        ),
        "fig13": Figure("overhead over the spread of rates", module("goat.simulation", "run", "fig13"), simulated=True),
        "fig13-emulated": Figure(
            "communication overhead over the spread of worker rates: ATP, ESA, GOAT", module("goat.asynchrony")
        ),
    },
    "inarouting": {
        "instances": Figure(
            "the two published instances: rounding, re-routing, integer program",
            module("inarouting.instances"),
            simulated=True,
        ),
    },
    "inart": {
        "fig1": Figure("the example: LBMM, ATP, InArt on two switches", module("inart.example"), simulated=True),
        **{
            name: Figure(summary, module("inart.simulated", "run", name), simulated=True)
            for name, summary in INART_FIGURES.items()
        },
        **{
            f"{name}-emulated": Figure(
                f"{summary} on the testbed, by real packets", module("inart.testbed", "run", name)
            )
            for name, summary in INART_TESTBED.items()
        },
        **{
            f"{name}-emulated": Figure(
                f"{summary}, by real packets", module("inart.emulated", "run", name), scales=True
            )
            for name, summary in INART_FIGURES.items()
        },
        "replan": Figure(
            "background traffic comes: the same split, new routes (section 4.1)", module("inart.emulated", "replanned")
        ),
        "lp": Figure(
            "LP-InArt with 200 workers, 8 PSs, 45 switches: its time",
            module("inart.example", "relaxation_time"),
            simulated=True,
        ),
    },
    "p4inc-aoi": {
        "table1": Figure("8 units: the heuristics against the MILP", module("p4inc_aoi.table1"), simulated=True),
        "fig6": Figure(
            "the testbed: reconfigured connections",
            module("p4inc_aoi.simulated_testbed", "run", "fig6"),
            simulated=True,
        ),
        "fig7": Figure("the testbed: total JCT", module("p4inc_aoi.simulated_testbed", "run", "fig7"), simulated=True),
        "fig8": Figure("64 units, 800 to 1,400 jobs", module("p4inc_aoi.simulation", "run", "fig8"), simulated=True),
        "fig9": Figure("64 units, MapReduce jobs", module("p4inc_aoi.simulation", "run", "fig9"), simulated=True),
        "fig10": Figure("16 to 64 units", module("p4inc_aoi.simulation", "run", "fig10"), simulated=True),
        "fig11": Figure("over the INC capacity", module("p4inc_aoi.simulation", "run", "fig11"), simulated=True),
        "fig12": Figure("over the length of a slot", module("p4inc_aoi.simulation", "run", "fig12"), simulated=True),
        "readings": Figure(
            "what FCFS, TW and arrivals may mean", module("p4inc_aoi.simulation", "readings"), simulated=True
        ),
        "fig7-emulated": Figure(
            "four racks and their circuits: connections (Figure 6) and JCT (Figure 7)",
            module("p4inc_aoi.testbed"),
            scales=True,
        ),
        "locality": Figure(
            "traffic between units: jobs inside one, jobs over two, no INC", module("p4inc_aoi.locality")
        ),
    },
    "soar": {
        "utilisation": Figure(
            "how long links are busy over k: SOAR, Top, Max, Level", module("soar.utilisation"), simulated=True
        ),
        "time": Figure(
            "the dynamic program's time over the tree's size",
            module("soar.utilisation", "running_time"),
            simulated=True,
        ),
    },
}


def find_figure(paper: str, figure: str) -> Figure:
    """The figure of that name. Raises `InputError` with the nearest paper or figure for an unknown one."""
    found = figures_of(paper)
    if figure not in found:
        raise unknown_name(f"figure of '{paper}'", figure, found)
    return found[figure]


def figures(paper: str | None = None) -> Iterator[tuple[str, Figure]]:
    """The figures of one paper or of all, each with its name on the command line, such as "aro fig7"."""
    for name in FIGURES if paper is None else [paper]:
        for figure, found in figures_of(name).items():
            yield f"{name} {figure}", found


def run_simulated(paper: str, console: Console, request: Request) -> str:
    """Run all simulated figures of a paper and return their worst verdict. Raises `InputError` if there are none.

    A figure that fails says why, and the others are run.
    """
    verdicts = []
    for name, figure in figures_of(paper).items():
        if figure.simulated:
            figure.check(request)
            console.rule(f"{paper} {name}: {figure.summary}")
            verdict, error = tried(partial(figure.run, console, request))
            verdicts.append(verdict or Verdict.FAILED)
            if error:
                console.print(f"{paper} {name} failed: {error}", highlight=False, markup=False, soft_wrap=True)
    if not verdicts:
        raise InputError(
            f"paper '{paper}' has no simulated figure: name one of its figures, {', '.join(FIGURES[paper])}"
        )
    return worst_of(verdicts)


def figures_of(paper: str) -> dict[str, Figure]:
    """The figures of a paper by name. Raises `InputError` with the nearest name for an unknown paper."""
    if paper not in FIGURES:
        raise unknown_name("paper", paper, FIGURES)
    return FIGURES[paper]
