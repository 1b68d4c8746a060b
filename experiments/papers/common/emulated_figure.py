"""The runs of an `EmulatedFigure`: each plan runs on a separate network, is judged, and is kept in one run folder.

`run_plans` shows every plan's planned and measured sending rates, as a table and as bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, field, fields, replace
from functools import cached_property, partial
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from inakit.experiments.calibrate.rate_probe import fit, packets
from inakit.experiments.emulate.emulate import overall
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, VIOLINS, Panel
from inakit.experiments.papers.common.estimates import exact, means
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Draws,
    Findings,
    Part,
    Picture,
    Rows,
    SweptFigure,
    by_seed,
    charted,
    present,
    worst_run,
)
from inakit.experiments.papers.common.figure_registry import Request, leave_out
from inakit.experiments.papers.common.statements import Statement, number, value_table
from inakit.experiments.papers.common.sweep import Result
from inakit.experiments.report.write import report_beside
from inakit.experiments.run.console import NamedTable, bar, figures, names
from inakit.experiments.run.dilation import as_described, slowed_options, slowed_problem
from inakit.experiments.run.interference import Interference
from inakit.experiments.run.outcome import Outcome, planned_figures, write_planned_links
from inakit.experiments.run.printed_report import shortened, styled
from inakit.experiments.run.record import Configuration, PlanRecord, RunRecord, begin_record
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.run_folder import RunFolder, check_results
from inakit.experiments.worlds.registry import AUTO, find_world, is_virtual, print_choice
from inakit.experiments.worlds.world import World, in_real_time
from inakit.planner.core.files import save_jobs, save_plan
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import INA, DataPlaneProgram
from inakit.planner.prepared import Prepared, with_headroom
from inakit.topo.errors import writing
from inakit.topo.files.fabrics import save_fabric
from inakit.topo.files.quantities import in_words
from inakit.traffic.closed_loop import Progress, ReliableOptions
from inakit.traffic.endpoints.gradient import Gradients
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of


@dataclass(frozen=True)
class EmulatedRun:
    """One run of a figure. `setting` is its place in the figure, as the run's record keeps it.

    `interferences` disturb the run on purpose. `queue_packets` is the length of every link's queue. `emulate` replaces
    the default run, a network of the problem's fabric with the plan's entries. `gradients` are random unless given. A
    `mode` is reliable or replay, which sends gradients alone. With `replans` a controller plans anew between
    iterations.
    """

    name: str
    problem: Problem
    plan: Plan
    setting: Mapping[str, Any] = field(default_factory=dict)
    options: ReliableOptions | None = None
    interferences: tuple[Interference, ...] = ()
    queue_packets: int | None = None
    emulate: Callable[[EmulatedRun, World, RunFolder, Progress], Outcome] | None = None
    gradients: Gradients | None = None
    mode: str = "reliable"
    replans: Options | None = None

    @cached_property
    def prepared(self) -> Prepared:
        """The plan with its prediction and its entries."""
        return Prepared(self.problem, self.plan, self.mode)


@dataclass(frozen=True)
class EmulatedRuns:
    """All runs, their outcomes in the same order, and the folder that keeps them."""

    folder: RunFolder
    runs: Sequence[EmulatedRun]
    outcomes: tuple[Outcome, ...]
    verdict: str
    reasons: tuple[str, ...]

    def tell(self, console: Console) -> None:
        console.print(f"verdict: {styled(self.verdict)}", highlight=False)
        for reason in shortened(self.reasons):
            console.print(f"  - {reason}", highlight=False, markup=False, soft_wrap=True)
        console.print(f"all files of these runs: {self.folder.path}", highlight=False)
        report_beside(self.folder.path, console)


def kind_of(switch: str) -> str:
    """The kind of a world's runs, as file names and titles state it: "virtual" or "emulated"."""
    return "virtual" if is_virtual(switch) else "emulated"


def name_in_world(name: str, switch: str) -> str:
    """The name of a figure's kept runs in a world; runs in virtual time are kept separately."""
    return f"{name}-virtual" if is_virtual(switch) else name


def run_emulated(
    figure: str, runs: Sequence[EmulatedRun], request: Request, console: Console, program: DataPlaneProgram = INA
) -> EmulatedRuns:
    """Run all, one after another, on the request's target, after writing `run.json`. Raises `InakitError`.

    Each finished run is printed and kept. Where this machine does not carry the rates, all runs are slowed down by one
    factor; outcomes are converted back to the requested rates.
    """
    world = find_world(request.switch, program)
    check_results(request.results)
    print_choice(console, request.switch, world.name)
    scale = scale_of(runs, world, console)
    folder = RunFolder(request.results, figure)
    record = new_record(runs, world, scale)
    outcomes, slower = list[Outcome](), {run.name: slowed(run, scale) for run in runs}
    for run in slower.values():
        keep_plan(run, folder)
    with folder.completing(record), bar(console, f"{figure} on {world.name}") as progress:
        for number, run in enumerate(runs):

            def part_of_all(share: float, number: int = number) -> None:
                progress((number + share) / len(runs))

            outcomes.append(outcome := measured_by(slower[run.name], scale, world, folder, part_of_all))
            record.planners[run.name].take(outcome.results)
            folder.write_record(record)
            line = f"{number + 1} of {len(runs)}: {run.name}: {words_of(outcome)}"
            console.print(line, highlight=False, soft_wrap=True)
        record.finish(*overall(record.planners))
    return EmulatedRuns(folder, runs, tuple(outcomes), record.verdict, tuple(record.reasons))


def run_alone(
    name: str, run: EmulatedRun, switch: str, results: Path, program: DataPlaneProgram = INA
) -> tuple[Outcome, str]:
    """Run a plan by itself, without printing; return its outcome, and the name of its run folder."""
    done = run_emulated(name, [run], Request(results, switch=switch), Console(file=StringIO()), program)
    return done.outcomes[0], done.folder.path.name


def measured_by(run: EmulatedRun, scale: float, world: World, folder: RunFolder, progress: Progress) -> Outcome:
    """Execute a slowed-down run and keep its series; return its outcome at the requested rates."""
    outcome = (run.emulate or measure)(run, world, folder, progress)
    outcome.write(folder, run.name)
    return replace(outcome, measured=as_described(outcome.measured, scale))


def words_of(outcome: Outcome) -> str:
    """A line about a finished run: its verdict, its rate and its time."""
    measured, told = outcome.measured, ""
    if measured.iterations:
        told = f" ({measured.sending_rate_bps / 1e6:.3g} Mbit/s, {measured.communication_time_s:.3g} s)"
    return f"{styled(outcome.verdict)}{told}"


def scale_of(runs: Sequence[EmulatedRun], world: World, console: Console) -> float:
    """The factor on all rates with which this machine carries every run; it is printed unless it is 1.

    It is 1 where a run has its own `emulate`, and in a world whose time is not this machine's.
    """
    if not in_real_time(world) or any(run.emulate for run in runs):
        return 1.0
    heaviest = max((Prepared(run.problem, run.plan) for run in runs), key=packets)
    found = fit({heaviest.plan.method: heaviest}, world, console, panel=False)
    if found.scale < 1:
        slowed, most = f"slowed down to {found.scale:.3g} of their rates", in_words(found.link_bps, "bit/s")
        line = f"{slowed}: links of at most {most} are what {world.name} carries here"
        console.print(line, highlight=False, soft_wrap=True)
    return found.scale


def slowed(run: EmulatedRun, scale: float) -> EmulatedRun:
    """The run with all rates multiplied by `scale`, and its timeouts adapted."""
    if scale == 1:
        return run
    return replace(
        run,
        problem=slowed_problem(run.problem, scale),
        plan=run.plan.with_rates_times(scale),
        options=slowed_options(run.options, scale),
        interferences=tuple(each.slowed(scale) for each in run.interferences),
    )


def measure(run: EmulatedRun, world: World, folder: RunFolder, progress: Progress) -> Outcome:
    """Emulate one run. Raises `RunError` if a switch exits or the traffic stalls."""
    asked = Run(
        run.prepared,
        gradients=run.gradients,
        options=run.options or ReliableOptions(),
        folder=folder.path / run.name,
        queue_packets=run.queue_packets,
        interferences=run.interferences,
        replans=run.replans,
    )
    return run_plan(asked, world, stage=lambda _: nullcontext(progress))


def keep_plan(run: EmulatedRun, folder: RunFolder) -> None:
    """Write a run's inputs and its planned link loads, at the rates of the run. Raises `OutputError`."""
    own = folder.path / run.name
    with writing(own):
        own.mkdir()
    save_plan(run.plan, own / "plan.json")
    save_fabric(run.problem.fabric, own / "fabric.yml")
    save_jobs(run.problem.jobs, own / "jobs.yml")
    write_planned_links(folder, run.name, run.prepared)


def new_record(runs: Sequence[EmulatedRun], world: World, scale: float) -> RunRecord:
    """The record at the start: its fabric is the first run's, its scale the factor that slows down all runs."""
    return begin_record(
        runs[0].problem,
        scale=scale,
        world=world.name,
        mode=runs[0].mode,
        seed=0,
        configuration=Configuration(runs={run.name: dict(run.setting) for run in runs}),
        planners={run.name: PlanRecord(planned=planned_figures(run.prepared.prediction)) for run in runs},
    )


@dataclass(frozen=True)
class EmulatedFigure:
    """A figure of runs in a world. `name` names its run folder, which holds its files.

    `show` yields the parts to present. `verdict` judges the runs; the figure's verdict is the worse of it and of the
    figure's claims. `leaves_out` is the reason why
    user-defined planners are not in the figure.
    """

    name: str
    runs: Callable[[Request], Sequence[EmulatedRun]]
    show: Callable[[Request, EmulatedRuns], Iterator[Part]]
    verdict: Callable[[EmulatedRuns, list[Statement]], str] = lambda done, _: done.verdict
    leaves_out: str = ""

    def __call__(self, console: Console, request: Request) -> str:
        """Run all plans, print and draw the figure, and return its verdict."""
        done = run_emulated(self.name, self.runs(request), request, console)
        judged = present(console, done.folder.path / "figure", self.show(request, done))
        if self.leaves_out:
            leave_out(console, self.leaves_out)
        done.tell(console)
        return worst_of((self.verdict(done, judged), request.settle(console, judged)))


def wrong_unless_all_hold(done: EmulatedRuns, judged: list[Statement]) -> str:
    """The runs' verdict, or WRONG if they are VALID and a statement does not hold."""
    return Verdict.WRONG if done.verdict == VALID and not all(each.holds for each in judged) else done.verdict


GRADIENT_BYTES, QUICK_GRADIENT_BYTES = 102_400, 51_200

NEAR = 0.05
"""A measured rate confirms the planned one if it differs by at most this fraction of it."""

Planned = tuple[Problem, Mapping[str, Plan]]
"""A problem, and plans for it by the names of their planners."""


def is_near(measured: float, planned: float) -> bool:
    """Whether a measured rate confirms the planned one."""
    return abs(measured / planned - 1) <= NEAR


@dataclass(frozen=True)
class RateRow:
    """One plan on one network: its planned and measured sending rates, and whether all sums were exact."""

    network: str
    planner: str
    planned_bps: float
    measured_bps: float
    exact: bool
    verdict: str

    @property
    def ratio(self) -> float:
        return self.measured_bps / self.planned_bps

    @property
    def holds(self) -> bool:
        """Whether all sums were exact and the measured rate confirms the planned one."""
        return self.exact and is_near(self.measured_bps, self.planned_bps)


def bytes_of(request: Request) -> int:
    """The gradient's size for a request; a quick request halves it."""
    return QUICK_GRADIENT_BYTES if request.quick else GRADIENT_BYTES


def run_plans(
    figure: str, planned: Mapping[str, Planned], console: Console, request: Request
) -> tuple[list[RateRow], str]:
    """Run the plans of every network and print their rates; return the rows and the worst verdict."""
    rows, verdicts = [], []
    for network, (problem, plans) in planned.items():
        runs = [EmulatedRun(name, problem, with_headroom(problem, plan).plan) for name, plan in plans.items()]
        done = run_emulated(f"{figure}-{network.replace(' ', '-')}", runs, request, console)
        own = [
            RateRow(
                network, run.name, run.prepared.prediction.sending_rate_bps, outcome.measured.sending_rate_bps,
                bool(outcome.measured.exact), outcome.verdict,
            )
            for run, outcome in zip(runs, done.outcomes, strict=True)
        ]  # fmt: skip
        table = Rows("rates.csv", [field.name for field in fields(RateRow)], [astuple(row) for row in own])
        present(console, done.folder.path / "figure", (table, Picture([panel(own)])))
        done.tell(console)
        rows += own
        verdicts += [done.verdict, VALID if all(row.holds for row in own) else Verdict.DIFFERS]
    console.print(table_of(rows))
    return rows, worst_of(verdicts)


def panel(rows: Sequence[RateRow]) -> Panel:
    places = list(dict.fromkeys(row.network for row in rows))
    series = {row.planner: [exact(row.measured_bps / 1e3)] for row in rows}
    planned = {row.planner: [row.planned_bps / 1e3] for row in rows}
    return Panel(BARS, places, series, "", "sending rate (kbit/s)", planned=planned)


def table_of(rows: Sequence[RateRow]) -> NamedTable:
    columns = [*names("network", "planner"), *figures("planned", "measured", "ratio")]
    table = Table(*columns, "sums", "verdict", title="sending rate (kbit/s)", box=SIMPLE_HEAD)
    for row in rows:
        rates = number(row.planned_bps / 1e3), number(row.measured_bps / 1e3), f"{row.ratio:.3f}"
        exact = "exact" if row.exact else "[red]wrong[/]"
        table.add_row(row.network, row.planner, *rates, exact, styled(row.verdict))
    return NamedTable(table, names=2)


# -- Figures of a sweep whose trials are runs.

PLANNED = "planned_"
"""The prefix that marks the planned value of a quantity in a result."""


@dataclass(frozen=True)
class ByPackets:
    """The charts of a simulated figure by packets: planned rates beside measured ones.

    `measure` runs a trial, given a `switch` and a folder for run folders. Its result has the `verdict`, whether sums
    were `exact`, and for each of the `kinds` of rates, a prefix with its words in tables, the rates measured and, after
    `PLANNED`, planned. A line whose planned rates of a kind are those of the first is not shown again. Charts with a
    title are drawn.

    `simulated` are the parts of the simulated figure: its statements are judged of the measured rates, each claim under
    its name and `-by-packets` if the ledger has it. `verdict` adds to `rates_as_planned`.
    """

    paper: str
    name: str
    measure: Callable[..., Result]
    charts: Callable[[Request], Sequence[Chart]]
    seeds: tuple[int, int]
    kinds: Mapping[str, str] = field(default_factory=lambda: {"": ""})
    simulated: Callable[[Findings], Iterator[Part]] = lambda _: iter(())
    draws: Draws = by_seed
    verdict: Callable[[Findings, list[Statement]], str] = lambda *_: VALID

    def __call__(self, console: Console, request: Request) -> str:
        """Run the missing trials, in virtual time unless the request names a world; print, draw, judge the figure."""
        switch = "virtual" if request.switch == AUTO else request.switch
        figure = SweptFigure(
            name_in_world(f"{self.paper}-{self.name}", switch),
            name_in_world(f"{self.paper}-emulated", switch) + "-trials",
            partial(self.measure, switch=switch, results=request.results / f"{self.paper}-by-packets"),
            charted(self.charts), self.show, self.seeds, self.draws,
            lambda found, judged: worst_of((rates_as_planned(found, judged), self.verdict(found, judged))),
        )  # fmt: skip
        return figure(console, request)

    def show(self, found: Findings) -> Iterator[Part]:
        charts = self.charts(found.request)
        for chart in charts:
            first, rows = found.curves(of_kind(chart, PLANNED)), dict[str, list[float]]()
            for (kind, words), line in product(self.kinds.items(), chart.lines):
                planned, measured = (found.curves(of_kind(chart, each + kind))[line] for each in (PLANNED, ""))
                if not kind or planned != first[line]:
                    rows |= {f"{line}, {words}planned": planned, f"{line}, {words}measured": measured}
            yield value_table(f"{chart.heading}, by packets", chart.column or chart.axis, chart.places, rows)
        yield conclusion(list(found.results.values()))
        yield Picture(
            replace(
                found.panel(chart),
                kind=BARS if chart.kind == VIOLINS else chart.kind,
                planned=means(found.series(of_kind(chart, PLANNED))),
            )
            for chart in charts
            if chart.title
        )
        claims = read_ledger(self.paper).of_figure(self.name)
        for part in self.simulated(found):
            if isinstance(part, list):
                named = [replace(one, claim=one.claim and f"{one.claim}-by-packets") for one in part]
                yield [one for one in named if not one.claim or one.claim in claims]


def of_kind(chart: Chart, prefix: str) -> Chart:
    return replace(chart, quantity=replace(chart.quantity, key=prefix + chart.quantity.key))


def compared_rates(results: Iterable[Result]) -> Iterator[tuple[float, float]]:
    """Every measured rate of the results that was planned above 0, and the planned one."""
    for result in results:
        for key, planned in result.items():
            if key.startswith(PLANNED) and key.endswith("_bps") and float(planned) > 0:
                yield float(result[key.removeprefix(PLANNED)]), float(planned)


def conclusion(results: Sequence[Result]) -> str:
    """A sentence about all runs: the numbers of valid and of exact ones, and the largest deviation of a rate."""
    valid = sum(result["verdict"] == VALID for result in results)
    exact = sum(int(result["exact"]) for result in results)
    farthest = max((measured / planned - 1 for measured, planned in compared_rates(results)), key=abs, default=0.0)
    return (
        f"{len(results)} runs: {valid} valid, {exact} with exact sums; "
        f"the measured rate farthest from the planned one is off by {farthest:+.2%}"
    )


def rates_as_planned(found: Findings, judged: list[Statement]) -> str:
    """The worst verdict of the runs; DIFFERS if all are valid and some rate is not the planned one."""
    near = all(is_near(*pair) for pair in compared_rates(found.results.values()))
    return worst_of((worst_run(found, judged), VALID if near else Verdict.DIFFERS))
