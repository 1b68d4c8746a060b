"""`inakit agree`: runs the same plans in an emulated world and in virtual time, and compares their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from inakit.experiments.calibrate.rate_probe import fastest_bps, scaled
from inakit.experiments.emulate.defaults import Free
from inakit.experiments.emulate.emulate import Emulation, make_plans, measure, settled
from inakit.experiments.run.console import NARROW, NamedTable, figures
from inakit.experiments.run.console import names as names_of
from inakit.experiments.run.outcome import Outcome, collisions, ratio
from inakit.experiments.run.pace import TooSlowError
from inakit.experiments.run.printed_report import styled
from inakit.experiments.run.record import machine, versions
from inakit.experiments.run.run import Run, check_features
from inakit.experiments.run.run_folder import RunFolder, check_results
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.experiments.worlds.world import World
from inakit.planner.core.slot_policies import POLICIES
from inakit.topo.errors import InakitError, InputError, RunError
from inakit.topo.fabric.fabric import DirectedLink
from inakit.topo.kit import this_kit
from inakit.traffic.measure.monitor import link_bytes
from inakit.traffic.measure.verdict import Verdict

ONE_JOB = JobChoice()
"""One parameter server; all other hosts are workers, at most 16."""
INART_JOB = JobChoice(workers=50, servers=4)
"""The job of InArt's emulation (section 5.3)."""


@dataclass(frozen=True)
class Network:
    """A fabric and its jobs. With `patch_panel` the optical links of the fabric go through one circuit switch."""

    fabric: FabricChoice
    jobs: JobChoice = ONE_JOB
    patch_panel: bool = False


NETWORKS = {
    "fattree-4": Network(FabricChoice("fattree", k=4)),
    "fattree-4-mixed": Network(FabricChoice("fattree", k=4, capacity="10M:20M")),
    "fattree-6": Network(FabricChoice("fattree", k=6)),
    "fattree-6-inart": Network(FabricChoice("fattree", k=6, aggregation_rate_bps=9e6), INART_JOB),
    "leafspine-4x2": Network(FabricChoice("leafspine", leaves=4, spines=2)),
    "leafspine-8x8": Network(FabricChoice("leafspine", leaves=8, spines=8)),
    "aro-figure1": Network(FabricChoice("aro-figure1")),
    "aro-figure3a": Network(FabricChoice("aro-figure3a")),
    "pipelines": Network(FabricChoice("pipelines")),
    "inart-testbed": Network(FabricChoice("inart-testbed"), JobChoice(servers=2)),
    "goat-testbed": Network(FabricChoice("goat-testbed")),
    "units": Network(FabricChoice("units")),
    "units-panel": Network(FabricChoice("units"), patch_panel=True),
}


@dataclass(frozen=True)
class Combination:
    """A plan to run: `network` is a name in `NETWORKS`; without `policy` the plan keeps its method's slot policy."""

    network: str
    planner: str
    policy: str = ""
    mode: str = "reliable"

    def __str__(self) -> str:
        policy = f"+{self.policy}" if self.policy else ""
        return f"{self.network} {self.planner}{policy}{' replay' if self.mode == 'replay' else ''}"

    def emulation(self, switch: str) -> Emulation:
        """The emulation on `switch`, with link rates that fit this machine."""
        network = NETWORKS[self.network]
        return Emulation(
            build_problem(network.fabric, network.jobs),
            (self.planner,),
            switch,
            self.mode,
            policies=(self.policy,) if self.policy else (),
            patch_panel=network.patch_panel,
            free=Free(rates=True),
        )


def on(
    network: str, planners: str, policies: Sequence[str] = ("",), modes: Sequence[str] = ("reliable",)
) -> Iterator[Combination]:
    """Yield every combination of planner, policy and mode on a network; `planners` are separated by spaces."""
    for planner, policy, mode in product(planners.split(), policies, modes):
        yield Combination(network, planner, policy, mode)


COMBINATIONS = (
    *on("fattree-4", "aro atp lbmm forest inart inart-forest goat grid-aro paring spar random aggtree geryon"),
    *on("fattree-4", "aro", tuple(POLICIES)),
    *on("fattree-4", "atp", ("goat", "atp", "switchml")),
    *on("fattree-4", "aro atp lbmm", modes=("replay",)),
    *on("fattree-4-mixed", "aro atp forest lbmm"),
    *on("fattree-6", "aro atp aggtree-balanced"),
    *on("fattree-6-inart", "inart atp-tor lbmm"),
    *on("leafspine-4x2", "aro goat spar lbmm"),
    *on("leafspine-4x2", "aro", modes=("replay",)),
    *on("leafspine-8x8", "aro atp forest goat paring"),
    *on("aro-figure1", "aro atp lbmm"),
    *on("aro-figure1", "aro", ("esa", "p4inc-aoi")),
    *on("aro-figure3a", "aro atp"),
    *on("pipelines", "aro aro-unaware"),
    *on("inart-testbed", "inart atp lbmm"),
    *on("inart-testbed", "inart", modes=("replay",)),
    *on("goat-testbed", "goat atp geryon"),
    *on("units", "aro lbmm"),
    *on("units-panel", "aro lbmm"),
    *on("units-panel", "aro", modes=("replay",)),
)
"""The full list."""

SHORT = (*on("aro-figure1", "aro lbmm"), *on("aro-figure1", "aro", modes=("replay",)), *on("units-panel", "aro"))
"""A short list for a first look: each combination takes a few seconds."""


def chosen(pattern: str, *, short: bool) -> tuple[Combination, ...]:
    """Return the combinations of one of the two lists whose names contain `pattern`, with `*` and `?` as wildcards.

    Raises `InputError` if no name matches.
    """
    found = tuple(each for each in (SHORT if short else COMBINATIONS) if fnmatchcase(str(each), f"*{pattern}*"))
    if not found:
        names = "a part of a name is expected, such as 'fattree-4 aro', 'replay' or 'leafspine*forest'"
        raise InputError(f"--only '{pattern}' matches no combination: {names}; networks are {', '.join(NETWORKS)}")
    return found


MEDIAN = 0.005
"""The upper limit of the median of every difference."""


@dataclass(frozen=True)
class Quantity:
    """A compared figure: its name in files, its value, and the largest relative difference that counts as agreement."""

    name: str
    value: Callable[[Outcome], float | None]
    limit: float


def aggregation_ratio(outcome: Outcome) -> float | None:
    """Bytes that workers send for each byte that reaches a PS; None if no byte reaches one."""
    return ratio(outcome.measured.sent_bytes, outcome.measured.ps_ingress_bytes)


QUANTITIES = (
    Quantity("sending_rate_bps", lambda outcome: outcome.measured.sending_rate_bps, 0.02),
    Quantity("communication_time_s", lambda outcome: outcome.measured.communication_time_s, 0.03),
    Quantity("ps_ingress_bytes", lambda outcome: outcome.measured.ps_ingress_bytes, 0.001),
    Quantity("aggregation_ratio", aggregation_ratio, 0.001),
)
LINK_BYTES, LINK_LIMIT = "link_bytes", 0.01
"""The bytes of each directed link as a quantity, and the largest relative difference that counts as agreement."""


def difference(first: float | None, second: float | None) -> float:
    """(second - first) / first; 0 if both are 0 or None, infinite if only the first is or only the second is None."""
    if first == second or not (first or second):
        return 0.0
    return inf if not first or second is None else second / first - 1


@dataclass(frozen=True)
class Differences:
    """The differences between two runs of a plan, those of the second run relative to the first.

    `figures`: by quantity. `links`: in the bytes of each directed link that carried any packet. `collisions`: the
    number of gradient packets of each run that found their slot taken.
    """

    figures: Mapping[str, float]
    links: Mapping[DirectedLink, float]
    collisions: tuple[int, int] = (0, 0)

    @staticmethod
    def of(first: Outcome, second: Outcome) -> Differences:
        one, other = link_bytes(first.monitor), link_bytes(second.monitor)
        used = {link for link in (*one, *other) if one.get(link) or other.get(link)}
        return Differences(
            {each.name: difference(each.value(first), each.value(second)) for each in QUANTITIES},
            {link: difference(one.get(link), other.get(link)) for link in sorted(used)},
            (collisions(first.monitor), collisions(second.monitor)),
        )

    @property
    def worst_link(self) -> DirectedLink | None:
        """The link whose bytes differ most; None if no link carried any packet."""
        return max(self.links, key=lambda link: abs(self.links[link]), default=None)

    @property
    def worst_link_difference(self) -> float:
        """The difference in the bytes of the worst link."""
        return 0.0 if self.worst_link is None else self.links[self.worst_link]

    @property
    def median_link_difference(self) -> float:
        """The median of the absolute differences in the bytes of links."""
        return median(map(abs, self.links.values())) if self.links else 0.0

    @property
    def beyond(self) -> tuple[str, ...]:
        """A text for each difference that exceeds its limit."""
        figures = {each.name: (self.figures[each.name], each.limit) for each in QUANTITIES}
        if self.worst_link is not None:
            figures[f"{LINK_BYTES} of {' → '.join(self.worst_link)}"] = self.worst_link_difference, LINK_LIMIT
        return tuple(
            f"{name} {found:+.2%} (at most {limit:.1%})"
            for name, (found, limit) in figures.items()
            if abs(found) > limit
        )


NOT_RUN = "not run"
"""The word in place of a verdict for a combination that one of the worlds cannot run."""
COUNTED = (Verdict.VALID, Verdict.DIFFERS)
"""The verdicts of combinations whose first run is VALID, so that the second one has to agree with it."""
SILENT = Console(quiet=True)
"""A console that discards the output of planning and running."""


@dataclass(frozen=True)
class Compared:
    """A combination and the comparison of its two runs.

    `verdict`: VALID if both runs are VALID and no difference exceeds its limit; DIFFERS if only the first run is VALID
    or a difference exceeds its limit; the first run's verdict if that is not VALID; `NOT_RUN` if a world cannot run the
    combination. `reasons`: why the verdict is not VALID. `outcomes`: of the runs that ended. `link_bps`: the fastest.
    """

    combination: Combination
    verdict: str
    reasons: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    differences: Differences | None = None
    link_bps: float | None = None

    @property
    def counts(self) -> bool:
        """Whether the first run is VALID, so that the second one has to agree with it."""
        return self.verdict in COUNTED


@dataclass(frozen=True)
class Attempt:
    """A run: its verdict, its reasons and, if it ended without an error, its outcome."""

    verdict: str
    reasons: tuple[str, ...]
    outcome: Outcome | None = None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return () if self.outcome is None else (self.outcome,)


@dataclass(frozen=True)
class Extent:
    """The length of a run: `iteration_s` is the planned time of its one iteration.

    `tries`: the most attempts at a run in real time that is OVERLOADED, for example by other work on the machine.
    """

    iteration_s: float = 3.0
    tries: int = 2


def compare(combination: Combination, worlds: tuple[World, World], extent: Extent) -> Compared:
    """Run a combination in both worlds, at rates that the first world carries on this machine."""
    try:
        emulation, run = prepare(combination, worlds, extent.iteration_s)
    except InakitError as error:
        return Compared(combination, NOT_RUN, (str(error),))
    first, second = worlds
    link_bps = fastest_bps(emulation.problem)

    def attempt_in(world: World) -> Attempt:
        return attempt(world, extent.tries, lambda: measure(emulation, str(combination), run, world, SILENT))

    one = attempt_in(first)
    if one.verdict != Verdict.VALID:
        return Compared(combination, one.verdict, one.reasons, one.outcomes, link_bps=link_bps)
    other = attempt_in(second)
    outcomes = (*one.outcomes, *other.outcomes)
    if second.real_time and other.verdict == Verdict.OVERLOADED:
        return Compared(combination, other.verdict, other.reasons, outcomes, link_bps=link_bps)
    differences = Differences.of(*outcomes) if len(outcomes) == 2 else None
    reasons = (*(f"{second.name}: {reason}" for reason in other.reasons), *(differences.beyond if differences else ()))
    verdict = Verdict.DIFFERS if reasons else Verdict.VALID
    return Compared(combination, verdict, reasons, outcomes, differences, link_bps)


def prepare(combination: Combination, worlds: tuple[World, World], iteration_s: float) -> tuple[Emulation, Run]:
    """Return the combination's emulation at rates that the first world carries, and its run of one iteration.

    The size of the gradient makes the iteration take `iteration_s` by the plan, so that the latency of the last packets
    is the same share of every run, whatever its rate.
    Raises `InakitError` for a combination that a world or this machine cannot run.
    """
    emulation = combination.emulation(worlds[0].name)
    for world in worlds:
        check_features(world, emulation.problem.fabric, emulation.mode, (), (), emulation.interconnect)
    emulation, plans = settled(emulation, make_plans(emulation, SILENT), worlds[0], SILENT)
    (prepared,) = plans.values()
    problem, plan = scaled(emulation.problem, prepared.plan, 1.0, iteration_s)
    emulation = replace(emulation, problem=problem)
    return emulation, Run(replace(prepared, problem=problem, plan=plan), interconnect=emulation.interconnect)


def attempt(world: World, tries: int, run: Callable[[], Outcome]) -> Attempt:
    """Return the outcome of a run, or the reasons of its failure; a run in real time that is OVERLOADED is repeated."""
    for _ in range(tries):
        try:
            outcome = run()
            found = Attempt(outcome.verdict, outcome.reasons, outcome)
        except TooSlowError as slow:
            found = Attempt(Verdict.OVERLOADED, (str(slow), *slow.causes))
        except RunError as error:
            found = Attempt(Verdict.FAILED, (str(error),))
        if not (world.real_time and found.verdict == Verdict.OVERLOADED):
            break
    return found


SHOWN = (("sending_rate_bps", "rate (Mbit/s)", 1e-6, 3), ("communication_time_s", "time (ms)", 1e3, 1))
"""The quantities whose values the table shows: name, heading, factor to the unit, and digits."""


def agreement_table(found: Sequence[Compared], names: tuple[str, str]) -> NamedTable:
    """A row for each combination: rate and time in both worlds, and the differences in percent."""
    first, second = names
    headings = [each for _, heading, _, _ in SHOWN for each in (f"{heading}\n{first}", f"\n{second}", "\n%")]
    columns = figures(*headings, "ingress\n%", "INA\n%", "links\nworst", "\nmedian", no_wrap=True)
    title = f"{second} against {first}, differences in %"
    table = Table(*names_of("combination"), *columns, *names_of(""), title=title, **NARROW)
    for one in found:
        table.add_row(str(one.combination), *cells(one), shown(one.verdict))
    return NamedTable(table)


def cells(one: Compared) -> list[str]:
    values = {each.name: [each.value(outcome) for outcome in one.outcomes] for each in QUANTITIES}
    found: list[str] = []
    for name, _, factor, digits in SHOWN:
        shown = [f"{value * factor:.{digits}f}" for value in values[name] if value is not None]
        found += [*shown, *["-"] * (2 - len(shown)), percent(one, name)]
    links = [one.differences.worst_link_difference, one.differences.median_link_difference] if one.differences else []
    shown = [f"{100 * each:.2f}" for each in links] or ["-", "-"]
    return [*found, percent(one, "ps_ingress_bytes"), percent(one, "aggregation_ratio"), *shown]


def percent(one: Compared, name: str) -> str:
    """A difference in percent with its sign; a dash if there is no comparison."""
    return f"{100 * one.differences.figures[name]:+.2f}" if one.differences else "-"


def shown(verdict: str) -> str:
    """A verdict in colour, pale if nothing was run."""
    return f"[dim]{verdict}[/]" if verdict == NOT_RUN else styled(verdict)


FEW = 10
"""The fewest combinations whose medians are judged."""


@dataclass(frozen=True)
class Summary:
    """Totals over all combinations: how many count, how many of those agree, and the medians of their differences.

    `failed`: the number of combinations that failed in the first world and therefore do not count.
    """

    counted: int
    agreeing: int
    failed: int
    medians: dict[str, float]

    @staticmethod
    def of(found: Sequence[Compared]) -> Summary:
        counted = [one for one in found if one.counts]
        differences = [one.differences for one in counted if one.differences]
        all_of = {each.name: [abs(one.figures[each.name]) for one in differences] for each in QUANTITIES}
        all_of[LINK_BYTES] = [abs(off) for one in differences for off in one.links.values()]
        medians = {name: median(values) for name, values in all_of.items() if values}
        failed = sum(one.verdict == Verdict.FAILED for one in found)
        return Summary(len(counted), sum(one.verdict == Verdict.VALID for one in counted), failed, medians)

    @property
    def agrees(self) -> bool:
        """Whether a combination counts, all that count agree, none failed, and all medians are below `MEDIAN`.

        Medians of fewer than `FEW` combinations are not judged.
        """
        judged = self.medians.values() if self.counted >= FEW else ()
        return not self.failed and 0 < self.counted == self.agreeing and all(found < MEDIAN for found in judged)


def words_of(one: Compared) -> str:
    """A line about a finished combination: its verdict, and its differences in rate and time."""
    off = f" (rate {percent(one, 'sending_rate_bps')} %, time {percent(one, 'communication_time_s')} %)"
    return f"{shown(one.verdict)}{off if one.differences else ''}"


def print_summary(console: Console, found: Sequence[Compared]) -> None:
    """Print the medians, the number of combinations that agree, and the reasons for all others."""
    summary = Summary.of(found)
    told = ", ".join(f"{name} {value:.3%}" for name, value in summary.medians.items())
    if told:
        limit = f" (each must be below {MEDIAN:.1%})" if summary.counted >= FEW else ""
        console.print(f"medians{limit}: {told}", highlight=False, soft_wrap=True)
    others = len(found) - summary.counted
    rest = f"; {others} more have no VALID run to compare with" if others else ""
    console.print(f"{summary.agreeing} of {summary.counted} agree{rest}", highlight=False, soft_wrap=True)
    for one in [one for one in found if one.verdict != Verdict.VALID]:
        more = f" (and {len(one.reasons) - 2} more)" if len(one.reasons) > 2 else ""
        lines = [f"- {one.combination}: {one.verdict}: {'; '.join(one.reasons[:2])}{more}"]
        if one.differences and any(one.differences.collisions):
            both = "{:,} and {:,}".format(*one.differences.collisions)
            lines.append(f"  {both} packets found their slot taken: that depends on the timing of every packet")
        for line in lines:
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def row(one: Compared) -> dict[str, Any]:
    """A row of `agreement.csv`: the figures of both worlds, None for missing ones, and their differences."""
    combination, differences = one.combination, one.differences
    found: dict[str, Any] = {
        "network": combination.network,
        "planner": combination.planner,
        "policy": combination.policy,
        "mode": combination.mode,
        "verdict": one.verdict,
        "link_bps": one.link_bps,
    }
    for each in QUANTITIES:
        values = [each.value(outcome) for outcome in one.outcomes]
        first, second = (*values, None, None)[:2]
        off = differences.figures[each.name] if differences else None
        found |= {f"first_{each.name}": first, f"second_{each.name}": second, f"difference_{each.name}": off}
    worst, middle = (differences.worst_link_difference, differences.median_link_difference) if differences else ("", "")
    found |= {f"worst_{LINK_BYTES}": worst, f"median_{LINK_BYTES}": middle}
    first_collisions, second_collisions = differences.collisions if differences else ("", "")
    return found | {"first_collisions": first_collisions, "second_collisions": second_collisions}


def link_rows(one: Compared) -> Iterator[tuple[str, str, str, float]]:
    """The rows of `links.csv`: combination, the two ends of a directed link, and the difference in its bytes."""
    for (node, peer), off in one.differences.links.items() if one.differences else ():
        yield str(one.combination), node, peer, off


def run_agreement(
    combinations: Sequence[Combination], worlds: tuple[World, World], extent: Extent, results: Path, console: Console
) -> Summary:
    """Run every combination in both worlds, print and write the results, and return the summary.

    The files are written after each combination. After an error or an interrupt the results so far are printed. Raises
    `InakitError` if no folder can be created in `results`.
    """
    check_results(results)
    folder, names = RunFolder(results, "agreement"), (worlds[0].name, worlds[1].name)
    about = {"worlds": names, "extent": asdict(extent)}
    about |= {"source": this_kit().source._asdict(), "versions": versions(), "machine": machine().as_json()}

    def show(rows: Sequence[Row[Combination, Compared]]) -> Summary:
        found = compared(rows)
        if found:
            console.print(agreement_table(found, names))
            print_summary(console, found)
            console.print(f"all files of these runs: {folder.path}", highlight=False)
        return Summary.of(found)

    def keep(rows: Sequence[Row[Combination, Compared]]) -> None:
        write(folder, about, compared(rows))

    return measure_rows(combinations, lambda each: compare(each, worlds, extent), words_of, show, console, keep)


def compared(rows: Sequence[Row[Combination, Compared]]) -> list[Compared]:
    """The comparisons; a combination whose comparison raised an error has verdict FAILED."""
    return [row.found or Compared(row.asked, Verdict.FAILED, (row.error or "",)) for row in rows]


def write(folder: RunFolder, about: dict[str, Any], found: Sequence[Compared]) -> None:
    """Write `agreement.json`, `agreement.csv` with a row for each combination, and `links.csv`."""
    rows = [row(one) for one in found]
    entries = [entry | {"reasons": list(one.reasons)} for entry, one in zip(rows, found, strict=True)]
    summary = Summary.of(found)
    folder.write_json(
        "agreement.json", about | {"summary": asdict(summary) | {"agrees": summary.agrees}, "combinations": entries}
    )
    folder.write_rows("agreement.csv", list(rows[0]), [list(each.values()) for each in rows])
    links = [each for one in found for each in link_rows(one)]
    folder.write_rows("links.csv", ("combination", "node", "peer", "difference"), links)
