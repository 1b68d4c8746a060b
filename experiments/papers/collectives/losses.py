"""`inakit reproduce losses`: the time of an all-reduce over the packets that links lose, by packets in virtual time.

Beside every curve stands a bound on any recovery: the same plan, with its slots, windows, links and queues, on links
that send a lost packet again at once. There a loss costs its time on the link and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.table import Table

from inakit.experiments.papers.collectives.all_reduce_times import COLLECTIVE_STYLES
from inakit.experiments.papers.collectives.by_packets import in_virtual_time
from inakit.experiments.papers.common.drawing import Place
from inakit.experiments.papers.common.estimates import Estimate, estimate
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Findings,
    Part,
    Picture,
    Quantity,
    SweptFigure,
    by_seed,
)
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.statements import Statement, all_of, are_below, exceeds, is_over, is_true, ratio
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.report.method_styles import DOTTED, INK, MINT, MUSTARD, NAVY, PLUM, RED, SKY, Style
from inakit.experiments.run.interference import Interference, Scene
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.record import InterferenceRecord
from inakit.experiments.worlds.virtual import LiveVirtualNetwork
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import by_timeouts
from inakit.planner.prepared import Prepared, prepare
from inakit.planner.trees.headroom import with_policy
from inakit.topo.fabric.fabric import DirectedLink, Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_capacity
from inakit.traffic.closed_loop import ClosedLoop
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

# -- What is measured.

POLICIES = {
    "shadow-copy": Style(RED, "o"), "switchml": Style(NAVY, "s"), "p4inc-aoi": Style(SKY, "D"),
    "panama": Style(PLUM, "P"), "shadow-copy-timeout": Style(MUSTARD, "o"), "switchml-timeout": Style(NAVY, "s", "--"),
    "p4inc-aoi-timeout": Style(SKY, "D", "--"), "goat": Style(MINT, "v"),
    "atp": Style(MUSTARD, "^", "--"), "esa": Style(NAVY, "X", "--"),
}  # fmt: skip
"""The slot policies, and with them the ways of recovery, under which plans of `aro` run."""
STYLES = POLICIES | COLLECTIVE_STYLES
INA, ROOTED, OLD = "shadow-copy", "switchml", "shadow-copy-timeout"
"""Of these, what stands for INA in all charts: the default, a root in a switch, and recovery by timeouts of workers."""
PLANNERS = ("aro", "sharp", "soar", "inarouting", "panama")
COLLECTIVES = ("ring", "double-tree", "halving-doubling")
"""The last only stands in charts of where INA wins."""
LOSSES = (1e-5, 1e-4, 1e-3, 1e-2)
MIDDLE, WORST = LOSSES[-2:]
BURSTS = (1, 4, 16, 64)
"""The mean numbers of packets that a link loses in a row."""
LINK_BPS, LONG_BYTES, SHORT_BYTES = 100e9, 4_000_000, 1_000_000
EVERYWHERE, WORKER, CORE = "all links", "a worker's link", "the busiest link between switches"
MOST_RANKS = 127
"""Collectives of more workers are not run: their planned times without losses stand for them. INA is drawn once."""
LOSS_AXIS, GAIN = "loss", "quickest collective over INA"
SEEDS, PROCESSES = (3, 1), 2

FABRICS: dict[str, Callable[[], Fabric]] = {
    "one switch": partial(leaf_spine, 1, 1, 16),
    "leaf-spine 4x2": partial(leaf_spine, 4, 2, 4),
    "fat-tree 4": partial(fat_tree, 4),
    "fat-tree 8": partial(fat_tree, 8),
    "fat-tree 16": partial(fat_tree, 16),
}
"""Networks with one, two and three levels of switches that sum."""


def network(fabric: str, workers: int, gradient_bytes: int = LONG_BYTES) -> Trial:
    return {"fabric": fabric, "workers": workers, "bytes": gradient_bytes}


def losing(loss: float, burst: float = 1, at: str = EVERYWHERE) -> Trial:
    return {"loss": loss, "burst": burst, "at": at}


NO_LOSS = losing(0.0)


def line(planner: str, policy: str = "", *, bound: bool = False) -> Trial:
    """A planner, the slot policy of its plan (empty: the planner's own), and whether the bound is measured."""
    return {"planner": planner, "policy": policy, "bound": int(bound)}


# -- The measurement of a trial.


@dataclass
class Losses(Interference):
    """Links that lose a share of all packets in bursts, or, with `bound`, send each lost packet again at once."""

    links: Mapping[DirectedLink, float]
    burst: float
    bound: bool
    seed: int

    def excuses(self, scene: Scene) -> Excuses:
        """Excuse unplanned rates, and queues that fill because packets are sent again."""
        _ = scene
        return Excuses(rates=True, congestion=True)

    def begin(self, loop: ClosedLoop) -> None:
        """Let links lose packets from now on."""
        _, live = loop, self.scene.network
        assert isinstance(live, LiveVirtualNetwork)
        live.network.lose(self.links, burst=self.burst, repeats=self.bound, seed=self.seed)

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The number of lost packets."""
        _, live = monitor, self.scene.network
        assert isinstance(live, LiveVirtualNetwork)
        lost = int(live.engine.links["lost"].sum())
        return InterferenceRecord(kind="losses", said=[f"links lost {lost:,} packets"], counts={"lost": lost})


def problem_of(trial: Trial) -> Problem:
    """One job on the first hosts after the PS."""
    fabric = with_capacity(FABRICS[str(trial["fabric"])](), LINK_BPS)
    server, *others = (host.name for host in fabric.hosts)
    job = Job(1, tuple(others[: int(trial["workers"])]), (server,), int(trial["bytes"]))
    return Problem(fabric, (job,), FRAGMENT)


def lossy_links(prepared: Prepared, at: str) -> list[DirectedLink]:
    """The links at a place, in both directions."""
    problem = prepared.problem
    fabric, worker = problem.fabric, problem.jobs[0].workers[0]
    if at == EVERYWHERE:
        return list(fabric.capacities_bps)
    loads = prepared.prediction.link_loads_bps
    between = [link for link in loads if not fabric.host_names & set(link)]
    one = (worker, fabric.tor_of(worker)) if at == WORKER else max(between, key=lambda link: (loads[link], link))
    return [one, one[::-1]]


def is_planned_only(trial: Trial) -> bool:
    """Whether the planned time of a collective without losses stands for its runs."""
    return trial["planner"] in COLLECTIVES and int(trial["workers"]) > MOST_RANKS


def measure(trial: Trial) -> Result:
    """The time of a plan, planned and measured, and what its run was."""
    problem, policy = problem_of(trial), str(trial["policy"])
    plan = make_plan(problem, str(trial["planner"]), 0)
    if trial["bound"]:  # nothing is lost, so that what is asked for is only late
        policy = by_timeouts(policy or plan.trees[0].tree.policy)
    prepared = prepare(problem, with_policy(problem, plan, policy) if policy else plan)
    if is_planned_only(trial):
        return {"measured_s": prepared.prediction.communication_time_s, "over_plan": 1.0, "exact": 1, "judged": VALID}
    links = dict.fromkeys(lossy_links(prepared, str(trial["at"])), float(trial["loss"]))
    losses = Losses(links, float(trial["burst"]), bool(trial["bound"]), int(trial["seed"]))
    found = in_virtual_time(prepared, (losses,) if trial["loss"] else ())
    return {**found, "over_plan": float(found["measured_s"]) / float(found["planned_s"])}


def draws(cell: Trial, seeds: int) -> Sequence[Trial]:
    """A trial for each seed of the losses; one where they hardly matter: none, the bound, or very many workers."""
    if is_planned_only(cell):
        cell = {**cell, **NO_LOSS}
    one = not cell["loss"] or cell["bound"] or int(cell["workers"]) > MOST_RANKS
    return by_seed(cell, 1 if one else seeds)


# -- Charts, and what both figures show of them.

TIMES = Quantity("over_plan", "time over plan")
BOUND = " bound"
"""The end of the name of a line's bound."""
SMALL, MEDIUM = network("fat-tree 4", 15), network("fat-tree 8", 127)
SHORT = {workers: network(f"fat-tree {k}", workers, SHORT_BYTES) for k, workers in ((4, 15), (8, 127), (16, 1023))}
INA_LINES = {policy: line("aro", policy) for policy in (INA, ROOTED, OLD)}
INA_BOUND = {INA + BOUND: line("aro", INA, bound=True)}
BEST = {policy: INA_LINES[policy] for policy in (INA, ROOTED)}
OF_COLLECTIVES = {name: line(name) for name in COLLECTIVES}


def chart(
    title: str, fixed: Trial, places: Iterable[tuple[Place, Trial]], lines: Mapping[str, Trial], axis: str
) -> Chart:
    """The times of lines over their plans', at places that differ from `fixed`."""
    styles = {name: STYLES[name.removesuffix(BOUND)] for name in lines if name.removesuffix(BOUND) in STYLES}
    styles |= {name: Style(INK, ",", DOTTED) for name in lines if name.endswith(BOUND)}
    points = {at: {**fixed, **own} for at, own in places}
    return Chart(TIMES, points, lines, axis, title=title, log="xy", styles=styles)


def over_losses(title: str, fixed: Trial, lines: Mapping[str, Trial], at: str = EVERYWHERE) -> Chart:
    return chart(title, fixed, ((loss, losing(loss, at=at)) for loss in LOSSES), lines, LOSS_AXIS)


def lossless(shown: Chart, line: str) -> Trial:
    """The cell of a line of a chart over losses without them."""
    return {**shown.cell(line, shown.places[0]), **NO_LOSS}


def cells(charts: Sequence[Chart]) -> Iterator[Trial]:
    """The cells of charts, and for those over losses those without losses."""
    for each in charts:
        yield from each.cells
        yield from (lossless(each, line) for line in each.lines if each.axis == LOSS_AXIS)


def table(found: Findings, shown: Chart) -> Table:
    """A row for each line, a column for each place."""
    over = [0.0] if shown.axis == LOSS_AXIS else []
    made = Table(shown.axis, *(f"{place:g}" for place in (*over, *shown.places)), title=f"{TIMES.label}, {shown.title}")
    for name in shown.lines:
        row = [lossless(shown, name)] * len(over) + [shown.cell(name, place) for place in shown.places]
        made.add_row(name, *(said(found.estimate(cell, TIMES)) for cell in row))
    return made


def said(value: Estimate) -> str:
    """A value with half its interval, if it has one: "1.015 ± 0.002"."""
    half = "" if value.low is None else f" ± {value.value - value.low:.3f}"
    return f"{value.value:.3f}{half}"


def verdict(found: Findings, judged: Sequence[Statement]) -> str:
    """VALID if every run is VALID with exact sums and every statement holds."""
    runs = all(result["exact"] and result["judged"] == VALID for result in found.results.values())
    return VALID if runs and all(statement.holds for statement in judged) else Verdict.DIFFERS


# -- `inakit reproduce losses bound`: planners beside their bounds, and the limits that recovery hop by hop is to keep.

LIMITS = {1e-4: 1.02, 1e-3: 1.04, 1e-2: 1.15}
"""By loss, what `aro` takes at most with the slot policies `INA` and `ROOTED`, with 15 and 127 workers."""
OVER_BOUND, AT_WORST = 1.1, 1.5
"""What they take at most over the bound, and what each other planner takes with 127 workers and the highest loss."""
MONTE_CARLO = {1e-4: 1.003, 1e-3: 1.005, 1e-2: 1.024}
"""What a simulation of recovery hop by hop without slots and queues takes at most, with 16 and 128 workers."""
LIMITED = ("fat-tree 4, 15 workers", "fat-tree 8, 16 workers", "fat-tree 8, 127 workers")


def with_bounds(lines: Mapping[str, Trial]) -> dict[str, Trial]:
    return {name + end: {**own, "bound": int(bool(end))} for name, own in lines.items() for end in ("", BOUND)}


def bound_charts(request: Request) -> dict[str, Chart]:
    """By network. With 127 workers there are all planners, as their policies are."""
    others = {planner: line(planner) for planner in (*PLANNERS, *own_planners())}
    networks = {
        LIMITED[0]: (SMALL, BEST),
        LIMITED[1]: (network("fat-tree 8", 16), BEST),
        LIMITED[2]: (MEDIUM, BEST | others),
        "fat-tree 16, 1,023 workers, 1 MB": (SHORT[1023], BEST),
    }
    kept = LIMITED[:1] if request.quick else networks
    return {name: over_losses(name, networks[name][0], with_bounds(networks[name][1])) for name in kept}


def show_bound(found: Findings) -> Iterator[Part]:
    charts = bound_charts(found.request)
    for each in charts.values():
        yield table(found, each)
    yield Picture(found.panel(each) for each in charts.values())
    yield list(bound_statements(found, charts))


def bound_statements(found: Findings, charts: Mapping[str, Chart]) -> Iterator[Statement]:
    for name, each in charts.items():
        at = {loss: number for number, loss in enumerate(each.places)}
        lines = found.series(each)
        for policy in (INA, ROOTED) if name in LIMITED else ():
            limited = [lines[policy][at[loss]] for loss in LIMITS]
            yield are_below(f"{name}, {policy}, at {', '.join(map(str, LIMITS))}", limited, list(LIMITS.values()))
            over = [ratio(*pair) for pair in zip(lines[policy], lines[policy + BOUND], strict=True)]
            yield are_below(f"{name}, {policy}, over its bound", over, [OVER_BOUND] * len(over))
            bound = [lines[policy + BOUND][at[loss]] for loss in MONTE_CARLO]
            yield are_below(f"{name}, {policy}, the bound", bound, list(MONTE_CARLO.values()))
        for planner in [planner for planner in PLANNERS[1:] if planner in lines]:
            yield are_below(f"{name}, {planner}, at {WORST:g}", [lines[planner][at[WORST]]], [AT_WORST])
        below = [
            policy for policy in lines if not policy.endswith(BOUND)
            for pair in zip(lines[policy + BOUND], lines[policy], strict=True) if exceeds(*pair)
        ]  # fmt: skip
        yield is_true(f"{name}: no line is below its bound", not below)


# -- `inakit reproduce losses curves`: recoveries, numbers of workers and of levels, bursts, losses on one link, and
# where INA stops winning.


def curve_charts(request: Request) -> list[Chart]:
    policies = {policy: line("aro", policy) for policy in POLICIES} | INA_BOUND
    chosen = INA_LINES | INA_BOUND | {name: OF_COLLECTIVES[name] for name in COLLECTIVES[:2]}
    levels = [network(fabric, 15) for fabric in ("one switch", "leaf-spine 4x2", "fat-tree 4")]
    small = [
        over_losses("15 workers, all policies", SMALL, policies),
        chart(f"15 workers, bursts, loss {MIDDLE:g}", SMALL, ((burst, losing(MIDDLE, burst)) for burst in BURSTS),
              chosen, "packets lost in a row, mean"),
        over_losses("15 workers, loss on a worker's link", SMALL, chosen, WORKER),
        over_losses("15 workers, loss on a link between switches", SMALL, chosen, CORE),
        chart(f"15 workers, loss {WORST:g}", losing(WORST), enumerate(levels, start=1), chosen,
              "levels of switches"),
    ]  # fmt: skip
    large = [
        over_losses("127 workers, 1 MB", SHORT[127], INA_LINES | INA_BOUND),
        *(
            chart(f"1 MB, loss {loss:g}", losing(loss), SHORT.items(), BEST | INA_BOUND, "workers")
            for loss in (MIDDLE, WORST)
        ),
    ]
    return small if request.quick else small + large


def duels(request: Request) -> list[Chart]:
    """INA and collectives over losses. With the most workers collectives are only planned, without losses."""
    all_lines, most = INA_LINES | OF_COLLECTIVES, BEST | OF_COLLECTIVES
    small = over_losses("15 workers, 4 MB", SMALL, all_lines)
    large = over_losses("127 workers, 1 MB", SHORT[127], all_lines)
    largest = over_losses("1,023 workers, 1 MB, collectives planned", SHORT[1023], most)
    return [small] if request.quick else [small, large, largest]


def gain(found: Findings, policy: str, cells: Mapping[str, Trial]) -> Estimate:
    """The time of the quickest collective over that of INA, given each line's cell; the interval is over seeds."""
    own, *others = (found.of(cells[name], "measured_s") for name in (policy, *COLLECTIVES))
    return estimate([min(times) / mine for mine, *times in zip(own, *others, strict=True)])


def show_curves(found: Findings) -> Iterator[Part]:
    charts = curve_charts(found.request)
    for each in charts:
        yield table(found, each)
    yield Picture(found.panel(each) for each in charts)
    yield from show_duels(found)


def show_duels(found: Findings) -> Iterator[Part]:
    """Where INA stops winning."""
    panels, statements = [], []
    for duel in duels(found.request):
        yield table(found, duel)
        columns = [{name: lossless(duel, name) for name in duel.lines}]
        columns += [{name: duel.cell(name, at) for name in duel.lines} for at in duel.places]
        gains = {
            policy: [gain(found, policy, cells) for cells in columns] for policy in INA_LINES if policy in duel.lines
        }
        made = Table(LOSS_AXIS, "0", *(f"{loss:g}" for loss in duel.places), title=f"{GAIN}, {duel.title}")
        for policy, values in gains.items():
            made.add_row(policy, *map(said, values))
        yield made
        of_losses = {policy: values[1:] for policy, values in gains.items()}
        panels.append(replace(found.panel(duel), series=of_losses, ylabel=GAIN))
        for policy in (INA, ROOTED):
            by_loss = list(zip(LOSSES, of_losses[policy], strict=True))
            won = [is_over(f"{loss:g}", ([gained], [1.0]), [loss]) for loss, gained in by_loss]
            statements.append(all_of(f"{duel.title}: {policy} is quicker than every collective", won))
    yield Picture(panels, "losses-winning")
    yield statements


FIGURES = {
    "bound": SweptFigure(
        "losses-bound", "losses-trials", measure, lambda request: cells([*bound_charts(request).values()]), show_bound,
        SEEDS, draws, verdict, PROCESSES,
    ),
    "curves": SweptFigure(
        "losses-curves", "losses-trials", measure, lambda request: cells(curve_charts(request) + duels(request)),
        show_curves, SEEDS, draws, verdict, PROCESSES,
        leaves_out="planners are beside their bounds in `inakit reproduce losses bound`",
    ),
}  # fmt: skip
