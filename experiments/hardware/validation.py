"""`inakit validate`: judges a network before it is bought, and writes the verdict and its page.

A validation makes plans, fails every single link and switch, runs the worst cases in virtual time, and emulates. The
result of a trial keeps the judged plan as a short text, and later runs use that plan: a planner whose solver reaches
its time limit can find another one when it is called again.

Only one validation at a time runs in a site's folder: its trials read the network, the jobs and the plans there.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from inakit.experiments.hardware.failures import (
    AS_BEFORE,
    FABRIC,
    JOBS,
    NO_PLAN,
    NOTHING,
    Failure,
    for_jobs,
    keep_plan,
    kept_plan,
    load_planned,
    load_problem,
    load_remains,
    plan_file,
    plan_under,
    save_problem,
    single_failures,
)
from inakit.experiments.hardware.fit import ChipFit, amount, chips_fit
from inakit.experiments.hardware.site_file import Margins, Site, load_site, write_starter
from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import made_by
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.report.write import PAGE, write_page
from inakit.experiments.run.console import NamedTable, names
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.study.study import PLANNING, RUNNING, kept_in
from inakit.experiments.sweeps.run_trials import run_trials
from inakit.experiments.sweeps.trial import ROOT, Finished, Given, Row, Trial, code_version, key_of
from inakit.experiments.sweeps.trial_engines import Engine, find_engine
from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.plan import FEASIBLE, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import find_program
from inakit.planner.own_planners import name_of
from inakit.planner.prepared import Prepared
from inakit.planner.registry import find_own
from inakit.topo.errors import InakitError, MachineError, RunError, as_root, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_scale
from inakit.topo.files.quantities import in_words
from inakit.topo.files.reader import write_whole
from inakit.traffic.measure.verdict import VALID

# -- The reasons why a site does not hold: the unmet requirements, by failure and job.

ROUNDING = 1e-9
HOLDS, DOES_NOT_HOLD = "HOLDS", "DOES NOT HOLD"


@dataclass(frozen=True)
class Weathered:
    """The effect of one failure on the plan of one planner.

    `plan`: the packed plan under the failure, if it changed. `unproven`: its solver stopped before it proved the plan
    optimal.
    """

    failure: Failure
    state: str
    lost: Mapping[int, str]
    rates_bps: Mapping[int, float]
    error: str | None
    plan: str | None = None
    unproven: bool = False

    def kept(self, before_bps: Mapping[int, float]) -> dict[int, float]:
        """The share of its rate that each job keeps; 0 for jobs that are lost or have no plan."""
        return {number: self.rates_bps.get(number, 0.0) / rate for number, rate in before_bps.items()}

    def severity(self, before_bps: Mapping[int, float]) -> tuple[bool, float, float]:
        """The sort key of failures, worst first: no plan, then the least share of a job that goes on, then the sum."""
        shares = self.kept(before_bps)
        going_on = [share for number, share in shares.items() if number not in self.lost]
        return self.state != NO_PLAN, min(going_on, default=1.0), sum(shares.values())


def weathered_of(failure: Failure, row: Mapping[str, Any] | None, error: str | None) -> Weathered:
    """The effect that a trial found; an error of the trial counts as no plan."""
    if row is None:
        return Weathered(failure, NO_PLAN, {}, {}, error)
    rates = {int(number): rate for number, rate in row["rates_bps"].items()}
    lost = {int(number): why for number, why in row["lost"].items()}
    unproven = row.get("unproven", False)
    return Weathered(failure, row["state"], lost, rates, row["error"], row.get("plan"), unproven)


@dataclass(frozen=True)
class PlannerResult:
    """The results of one planner. `failed`: why it has no plan at all; the other fields then have their defaults.

    `unproven`: the solver stopped before it proved the plan without failures optimal. `virtual`: the runs in virtual
    time, by the name of the failure, "" for none; `emulated`: the emulation.
    """

    planner: str
    rates_bps: Mapping[int, float] = field(default_factory=dict)
    prediction: Prediction | None = None
    said: str = ""
    fits: tuple[ChipFit, ...] = ()
    weathered: tuple[Weathered, ...] = ()
    virtual: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    emulated: Mapping[str, Any] | None = None
    failed: str | None = None
    unproven: bool = False

    @property
    def name(self) -> str:
        """The planner's name; `planner` can be the path of its file."""
        return name_of(self.planner)

    @property
    def worst(self) -> tuple[Weathered, ...]:
        return tuple(sorted(self.weathered, key=lambda each: each.severity(self.rates_bps)))


def reasons_of(site: Site, result: PlannerResult) -> list[str]:
    """Every requirement that the planner's plans do not meet, in words; empty if the site holds."""
    if result.failed is not None:
        return [f"no plan: {result.failed}"]
    found = [*nominal_reasons(site, result)]
    for each in result.worst:
        found += failure_reasons(site, result.rates_bps, each)
    return found


def nominal_reasons(site: Site, result: PlannerResult) -> Iterator[str]:
    """Yield the unmet requirements without failures: of the plan, its fit, virtual time, and the emulation."""
    yield from program_reasons(site)
    for fit in result.fits:
        yield from fit.reasons
    yield from rate_reasons(site.margins, result.rates_bps, "while nothing fails")
    if result.prediction is not None:
        yield from load_reasons(site.problem.fabric, result.prediction, site.margins.free)
    for name, row in result.virtual.items():
        where = f"virtual time, {name} fails" if name else "virtual time"
        yield from run_reasons(row, where, site.margins.within)
    emulated = result.emulated or {}
    if emulated.get("exact") is False and not emulated["reasons"]:
        yield "emulation: sums are not exact"


def program_reasons(site: Site) -> Iterator[str]:
    """Yield the reasons why chips cannot run the site's program."""
    for chip in dict.fromkeys(switch.chip for switch in site.problem.fabric.switches if switch.chip):
        reason = find_program(site.program).unfit_for(chip)
        if reason is not None:
            yield reason


def rate_reasons(margins: Margins, rates_bps: Mapping[int, float], when: str) -> Iterator[str]:
    least = margins.least_rate or 0.0
    for number, rate in rates_bps.items():
        if rate < least * (1 - ROUNDING):
            found, needed = in_words(rate, "bit/s"), in_words(least, "bit/s")
            yield f"{when}: job {number} sends at {found}, at least {needed} is required"


def load_reasons(fabric: Fabric, prediction: Prediction, free: float) -> Iterator[str]:
    """Yield the links with less free capacity than required."""
    for link, load in prediction.loads_with_results_bps.items():
        share = load / fabric.capacities_bps[link]
        if share > 1 - free + ROUNDING:
            yield f"link {'-'.join(link)}: {share:.0%} of it is used, {free:.0%} must stay free"


def run_reasons(row: Mapping[str, Any], where: str, within: float) -> Iterator[str]:
    """Yield the contradictions of a run in virtual time to the plan: an error, a verdict not VALID, other rates."""
    if row.get("error") is not None:
        yield f"{where}: {row['error']}"
        return
    if row["verdict"] != VALID:
        yield f"{where}: {row['verdict']}: {'; '.join(row['reasons'][:3]) or 'sums are not exact'}"
    for number, planned in row["planned_bps"].items():
        measured = row["measured_bps"][number]
        if abs(measured - planned) > within * planned:
            off = f"{in_words(measured, 'bit/s')}, {measured / planned - 1:+.1%}"
            yield f"{where}: job {number} sends at {off} of the plan (within {within:.0%})"


def failure_reasons(site: Site, before_bps: Mapping[int, float], found: Weathered) -> Iterator[str]:
    """Yield the unmet requirements under one failure."""
    when = f"{found.failure.kind} {found.failure.name} fails"
    if not site.withstand.hosts_may_be_cut_off:
        yield from (f"{when}: job {number} stops ({why})" for number, why in found.lost.items())
    if found.state == NO_PLAN:
        yield f"{when}: no plan for the other jobs ({found.error})"
        return
    if found.state == NOTHING:
        return
    yield from rate_reasons(site.margins, found.rates_bps, when)
    for number, share in found.kept(before_bps).items():
        if number not in found.lost and share < site.margins.keeps * (1 - ROUNDING):
            yield f"{when}: job {number} keeps {share:.0%} of its rate, {site.margins.keeps:.0%} is required"


# -- The trials of a validation, and the verdict.

PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


def packed(plan: Plan) -> str:
    """Encode the plan as a text of some kilobytes."""
    return base64.b64encode(zlib.compress(PLAN.dump_json(plan))).decode()


def unpacked(text: str) -> Plan:
    return PLAN.validate_json(zlib.decompress(base64.b64decode(text)))


def withstand(given: Given) -> Row:
    """Plan under a failure: the state of the plan, the lost jobs with reasons, and the rates of the others.

    The row of a changed plan has the packed plan, and whether the solver stopped before it proved it optimal.
    """
    folder, planner, failure = Path(given["folder"]), given["planner"], Failure(tuple(given["failure"]))
    lost = {str(number): why for number, why in load_remains(folder, planner, failure).lost.items()}
    try:
        found = plan_under(folder, planner, failure, given["mode"], given["seed"])
    except InakitError as error:
        return {"state": NO_PLAN, "lost": lost, "rates_bps": {}, "error": str(error)}
    if found is None:
        return {"state": NOTHING, "lost": lost, "rates_bps": {}, "error": None}
    left, made, state = found
    row = {"state": state, "lost": lost, "rates_bps": rates_of(left, made), "error": None}
    if state == AS_BEFORE:
        return row
    return row | {"plan": packed(made), "unproven": made.outcome.status == FEASIBLE}


def rates_of(problem: Problem, plan: Plan) -> dict[str, float]:
    return {str(number): job.sending_rate_bps for number, job in evaluate(problem, plan).jobs.items()}


def simulate(given: Given) -> Row:
    """Run in virtual time, at true rates, a plan without a failure (`failure` None) or under one.

    `plan` is the packed plan under the failure; None for an unchanged one.
    """
    folder, planner = Path(given["folder"]), given["planner"]
    problem, plan = load_problem(folder), load_planned(folder, planner)
    if given["failure"] is not None:
        left = load_remains(folder, planner, Failure(tuple(given["failure"]))).problem
        assert left is not None, "only failures under which jobs go on are simulated"
        problem, plan = left, for_jobs(plan, {job.number for job in left.jobs})
    if given["plan"] is not None:
        plan = unpacked(given["plan"])
    return ran(cut_short(problem, given["fragments"]), plan, given, "virtual")


def emulate(given: Given) -> Row:
    """Run a plan without failures in the kernel's emulated network, with every rate times `scale`."""
    folder = Path(given["folder"])
    problem, plan = load_problem(folder), load_planned(folder, given["planner"])
    scaled = replace(problem, fabric=with_scale(problem.fabric, given["scale"]))
    slower = plan.with_rates_times(given["scale"])
    return ran(cut_short(scaled, given["fragments"]), slower, given, "fast")


def cut_short(problem: Problem, fragments: int) -> Problem:
    """Return the problem with gradients of at most `fragments` fragments, which all jobs send at once, one time."""
    most = fragments * problem.fragment.values * 4
    jobs = (
        replace(job, gradient_bytes=min(job.gradient_bytes, most), iterations=1, arrival_s=0.0, compute_s=0.0)
        for job in problem.jobs
    )
    return replace(problem, jobs=tuple(jobs))


def ran(problem: Problem, plan: Plan, given: Given, world: str) -> Row:
    """The result of running a plan in a world: the verdict, its reasons, and rates by job."""
    return run_row(
        run_plan(Run(Prepared(problem, plan, given["mode"])), find_world(world, find_program(given["program"])))
    )


def run_row(outcome: Outcome) -> Row:
    """An outcome in JSON's types: planned and measured rates by job number as text."""
    jobs = [pair for pair in outcome.pairs if pair.job is not None]
    return {
        "verdict": str(outcome.verdict),
        "reasons": list(outcome.reasons),
        "exact": outcome.measured.exact,
        "planned_bps": {pair.name: pair.planned.sending_rate_bps for pair in jobs},
        "measured_bps": {pair.name: pair.measured.sending_rate_bps for pair in jobs},
    }


FOLDER = "sites"
OWN = "experiments/hardware"


@dataclass(frozen=True)
class Validation:
    """The findings about a site. `left_out`: the steps that were not done, and why."""

    site: Site
    results: tuple[PlannerResult, ...]
    left_out: tuple[str, ...]

    @cached_property
    def reasons(self) -> dict[str, list[str]]:
        """The reasons why the site does not hold with a planner's plans, by planner."""
        return {result.name: reasons_of(self.site, result) for result in self.results}

    @property
    def holding(self) -> list[str]:
        return [planner for planner, reasons in self.reasons.items() if not reasons]

    @property
    def verdict(self) -> str:
        """HOLDS if the plans of one planner meet every requirement."""
        return HOLDS if self.holding else DOES_NOT_HOLD

    @property
    def finding(self) -> str:
        """The verdict as a sentence, which is the title of the page."""
        with_whom = f" with {', '.join(self.holding)}" if self.holding else ""
        return f"{self.site.name} {self.verdict.lower()}{with_whom}"


@dataclass(frozen=True)
class Work:
    """The trials of a site: the places of their files, their engine, and the versions of their inputs.

    `known`: the `hashes` that were read, by planner.
    """

    site: Site
    folder: Path
    results: Path
    engine: Engine
    console: Console
    known: dict[str, dict[str, str]] = field(default_factory=dict)

    def trial(self, function: Any, planner: str, failure: Failure | None, kind: str, **more: object) -> Trial:
        """A trial of a planner under a failure. Its key depends on the site's content, not on paths."""
        failed = None if failure is None else list(failure.nodes)
        given: dict[str, Any] = {**self.asked(planner), "failure": failed, **more}
        key = self.key(planner, function=function.__name__, given=given, files=self.hashes(planner))
        return Trial(key, function, {**given, "folder": str(self.folder)}, kind, kind == "emulation")

    def hashes(self, planner: str) -> dict[str, str]:
        """The SHA-256 of the files of the network, its jobs, and the planner's plan, by their names.

        They are written before the first trial, and read once for thousands of them.
        """
        if planner not in self.known:
            self.known[planner] = hashes_of(*self.problem_files, plan_file(self.folder, planner))
        return self.known[planner]

    @property
    def problem_files(self) -> tuple[Path, Path]:
        return self.folder / FABRIC, self.folder / JOBS

    def asked(self, planner: str) -> dict[str, Any]:
        """The request to a planner, besides the network and its jobs."""
        return {"planner": planner, "mode": self.site.mode, "program": self.site.program, "seed": self.site.seed}

    def key(self, planner: str, given: Mapping[str, Any], **parts: object) -> str:
        """The key of the inputs `given` to a planner; the planner's code counts, its path does not."""
        own = find_own(planner)
        code = [self.code] if own is None else [self.code, own.sha256]
        return key_of(given={**given, "planner": name_of(planner)}, code=code, **parts)

    @cached_property
    def code(self) -> str:
        """The version of the code on which trials depend."""
        parts = (ROOT / part for part in (*PLANNING, *RUNNING, OWN))
        return code_version(*parts, without=(ROOT / "planner" / "own",))

    def run(self, trials: Sequence[Trial], title: str) -> dict[str, Finished]:
        """Return the results of the trials by key; only missing ones and those that depend on the machine are run."""
        kept = kept_in(self.results)
        for trial in trials:
            if (finished := kept.get(trial.key)) is not None and is_of_machine(trial, finished):
                kept.forget(trial.key)
        return run_trials(trials, kept, self.engine, self.console, title)


def is_of_machine(trial: Trial, finished: Finished) -> bool:
    """Whether another attempt can give another result: a trial that failed, or an emulation that is not VALID."""
    return finished.row is None or (trial.alone and finished.row["verdict"] != VALID)


def hashes_of(*files: Path) -> dict[str, str]:
    """The SHA-256 of files by their names."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def folder_of(site: Site, results: Path) -> Path:
    return results / FOLDER / site.name


def validate_site(site: Site, results: Path, engine: Engine, console: Console) -> Validation:
    """Validate a site. Results are kept: after an interruption the same call continues. Raises `InakitError`."""
    folder = folder_of(site, results)
    save_problem(folder, site.problem)
    work = Work(site, folder, results, engine, console)
    planned = [plan_of(work, planner) for planner in site.planners]
    left_out: list[str] = []
    try:
        found = [result if result.failed else all_of(work, result, left_out) for result in planned]
    except (KeyboardInterrupt, SystemExit) as interrupt:
        interrupt.add_note(f"the results of site {site.name} so far are kept: the same command continues")
        raise
    return Validation(site, tuple(found), tuple(dict.fromkeys(left_out)))


def plan_of(work: Work, planner: str) -> PlannerResult:
    """Make the plan of a planner without failures and keep it in the folder; or return the reason why there is none."""
    site = work.site
    key = work.key(planner, given=work.asked(planner), files=hashes_of(*work.problem_files))
    try:
        kept = kept_plan(work.folder, planner, key)
        if kept is None:
            run = plan_to_run(site.problem, planner, site.seed, site.mode)
            assert run.fitted(find_program(site.program)).entries  # raises an error if the program cannot run the plan
            kept = run.plan, "".join(run.notes)
            keep_plan(work.folder, planner, *kept, key)
    except InakitError as error:
        return PlannerResult(planner, failed=str(error))
    plan, said = kept
    prediction = evaluate(site.problem, plan)
    rates = {number: job.sending_rate_bps for number, job in prediction.jobs.items()}
    installed = find_program(site.program).fitted(plan)
    fits = chips_fit(site.problem, installed) if any(each.chip for each in site.problem.fabric.switches) else []
    unproven = plan.outcome.status == FEASIBLE
    return PlannerResult(planner, rates, prediction, said, tuple(fits), unproven=unproven)


def all_of(work: Work, result: PlannerResult, left_out: list[str]) -> PlannerResult:
    """Complete the planner's result with every failure, the runs in virtual time, and the emulation."""
    result = replace(result, weathered=all_failures(work, result.planner))
    left_out += unproven(result)
    result = replace(result, virtual=simulated(work, result))
    return replace(result, emulated=emulated(work, result.planner, left_out))


def unproven(result: PlannerResult) -> list[str]:
    """A line if solvers stopped before they proved plans optimal: the time limit depends on the machine."""
    under = sum(each.unproven for each in result.weathered)
    plans = ["the plan without failures"] * result.unproven
    plans += [f"those under {under} of {len(result.weathered)} failures"] * (under > 0)
    if not plans:
        return []
    told = "the solver's time limit may have ended the search, and a faster machine may find better ones"
    return [f"{result.name}: not proven optimal: {', '.join(plans)}; {told}"]


def all_failures(work: Work, planner: str) -> tuple[Weathered, ...]:
    failures = single_failures(work.site.problem.fabric, work.site.withstand)
    trials = [work.trial(withstand, planner, failure, failure.kind) for failure in failures]
    found = work.run(trials, f"{name_of(planner)}: single failures") if trials else {}
    pairs = zip(failures, (found[trial.key] for trial in trials), strict=True)
    return tuple(weathered_of(failure, finished.row, finished.error) for failure, finished in pairs)


def simulated(work: Work, result: PlannerResult) -> dict[str, Mapping[str, Any]]:
    """The runs in virtual time: of the plan without a failure, under "", and of the worst failures, by their names."""
    going_on = [each for each in result.worst if each.state not in (NO_PLAN, NOTHING)]
    worst = {each.failure.name: each for each in going_on[: work.site.simulate.worst]}
    more: dict[str, Any] = {"kind": "virtual time", "fragments": work.site.simulate.fragments}
    trials = {"": work.trial(simulate, result.planner, None, plan=None, **more)} | {
        name: work.trial(simulate, result.planner, each.failure, plan=each.plan, **more) for name, each in worst.items()
    }
    found = work.run([*trials.values()], f"{result.name}: virtual time")
    return {name: row_of(found[trial.key]) for name, trial in trials.items()}


def emulated(work: Work, planner: str, left_out: list[str]) -> Mapping[str, Any] | None:
    """Run the emulation with scaled rates; None, and a line in `left_out`, if none is requested or possible."""
    why = why_not_emulated(work.site)
    if why is not None:
        left_out.append(f"no emulation: {why}")
        return None
    given: Given = {"scale": work.site.emulate, "fragments": work.site.simulate.fragments}
    trial = work.trial(emulate, planner, None, "emulation", **given)
    row = row_of(work.run([trial], f"{name_of(planner)}: emulation")[trial.key])
    if row.get("error") or row["verdict"] != VALID:
        why = row.get("error") or f"{row['verdict']}: {'; '.join(row['reasons'][:2])}"
        remedy = "run the same command again, or choose a smaller scale, such as emulate: 1/100000"
        left_out.append(f"{name_of(planner)}: the emulation gave no result ({why}); {remedy}")
    return row


def why_not_emulated(site: Site) -> str | None:
    """The reason why a site is not emulated; None if it is."""
    if site.emulate is None:
        return "the site's file has no key `emulate`"
    if os.geteuid() != 0:
        return f"it needs root: {as_root()}"
    return EmulatedWorld("fast").missing()


def row_of(finished: Finished) -> Mapping[str, Any]:
    return finished.row if finished.row is not None else {"error": finished.error}


LOCK = ".validating"


@contextmanager
def one_validation(folder: Path) -> Iterator[None]:
    """Lock the folder for the block. The system unlocks it if the process dies.

    Raises `RunError` if another validation has locked it, and `OutputError`.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{folder}: another validation is writing there: wait until it ends, or choose another --results"
            ) from error
        yield


VERSION = 1


def verdict_document(found: Validation) -> dict[str, Any]:
    """All findings in JSON's types."""
    site = found.site
    return {
        "version": VERSION,
        "site": site.name,
        "verdict": found.verdict,
        "holds_with": found.holding,
        "reasons": found.reasons,
        "left_out": list(found.left_out),
        "fabric": site.problem.fabric.name,
        "program": site.program,
        "switches": len(site.problem.fabric.switches),
        "links": len(site.problem.fabric.links),
        "jobs": [{"number": job.number, "workers": len(job.workers)} for job in site.problem.jobs],
        "withstand": asdict(site.withstand),
        "margins": {
            "keeps": site.margins.keeps,
            "least_rate_bps": site.margins.least_rate,
            "free": site.margins.free,
            "within": site.margins.within,
        },
        "planners": [planner_document(result) for result in found.results],
    }


def planner_document(result: PlannerResult) -> dict[str, Any]:
    """The findings about one planner: per chip a switch's highest need for each limit; failures, the worst first."""
    return {
        "planner": result.name,
        "color": styles_of([result.name])[result.name].color,
        "failed": result.failed,
        "said": result.said,
        "fits": [
            {
                "chip": fit.chip.name,
                "switches": fit.switches,
                "fits": fit.fits,
                "needs": [
                    {"kind": need.kind, "where": need.where, "share": need.share}
                    | {"needed": amount(need.kind, need.used), "has": amount(need.kind, need.limit)}
                    for need in fit.needs
                ],
            }
            for fit in result.fits
        ],
        "rates_bps": result.rates_bps,
        "virtual": dict(result.virtual),
        "emulated": result.emulated,
        "failures": [
            {
                "name": each.failure.name,
                "kind": each.failure.kind,
                "plan": each.state,
                "error": each.error,
                "lost": each.lost,
                "rates_bps": each.rates_bps,
                "kept": each.kept(result.rates_bps),
            }
            for each in result.worst
        ],
    }


def document_of(found: Validation) -> Document:
    return Document(found.finding, made_by(), site=verdict_document(found))


VERDICT = "validation.json"
SHOWN_REASONS, SHOWN_FAILURES = 8, 5


def start(folder: Path, console: Console) -> None:
    """Write the starter's files, and print the next command. Raises `InakitError`."""
    for file in write_starter(folder):
        console.print(f"wrote {file}", highlight=False, soft_wrap=True)
    console.print(f"validate it: inakit validate {folder / 'site.yml'}", highlight=False, soft_wrap=True)


def validate_file(file: Path, on: str, processes: int | None, results: Path, console: Console) -> bool:
    """Validate the site of a file; return whether it holds. Raises `InakitError`."""
    site = load_site(file)
    engine, folder = find_engine(on, processes, kept_in(results)), folder_of(site, results)
    with one_validation(folder):
        found = validate_site(site, results, engine, console)
        write_validation(found, folder, console)
    return found.verdict == HOLDS


def write_validation(found: Validation, folder: Path, console: Console) -> None:
    """Print the verdict, and write it and the page into the site's folder. Raises `OutputError`."""
    write_whole(folder / VERDICT, json.dumps(verdict_document(found), indent=1, allow_nan=False) + "\n")
    print_validation(console, found)
    console.print(f"wrote {folder / VERDICT}", highlight=False, soft_wrap=True)
    try:
        console.print(f"wrote {write_page(document_of(found), folder / PAGE)}", highlight=False, soft_wrap=True)
    except MachineError as error:
        console.print(f"no page ({error})", highlight=False, markup=False, soft_wrap=True)


def print_validation(console: Console, found: Validation) -> None:
    """Print the verdict, its reasons, the worst failures of each planner, and the omitted steps."""
    for result in found.results:
        if result.weathered:
            console.print(NamedTable(worst_table(result)))
    good = found.verdict == HOLDS
    console.print(f"{found.finding}{'' if good else ', because'}", style="green" if good else "red")
    for planner, reasons in found.reasons.items():
        for line in [] if good else shortened(reasons):
            console.print(f"  {planner}: {line}", highlight=False, markup=False, soft_wrap=True)
    for line in (*stops(found), *found.left_out):
        console.print(f"({line})", highlight=False, markup=False, soft_wrap=True)


def shortened(reasons: list[str]) -> list[str]:
    """The first reasons, and the number of further ones."""
    more = len(reasons) - SHOWN_REASONS
    return [*reasons[:SHOWN_REASONS], *([f"and {more} more, listed in {VERDICT}"] if more > 0 else [])]


def stops(found: Validation) -> list[str]:
    """A line for each planner about failures that cut hosts off, against which no plan helps."""
    return [
        f"{result.name}: {count} of {len(result.weathered)} failures stop a job by cutting off its hosts"
        for result in found.results
        if (count := sum(bool(each.lost) for each in result.weathered))
    ]


def worst_table(result: PlannerResult) -> Table:
    """A table of a planner's worst failures: the state of the plan, and the job that keeps least of its rate."""
    headings = ("plan", "jobs stopped", "job that keeps least", "of its rate", "then")
    title = f"{result.name}: the worst of {len(result.weathered)} single failures"
    table = Table(*names("failure"), *headings, title=title)
    for each in result.worst[:SHOWN_FAILURES]:
        shares = {n: share for n, share in each.kept(result.rates_bps).items() if n not in each.lost}
        least = min(shares, key=lambda number: shares[number], default=None)
        told = (
            ("", "", "")
            if least is None
            else (str(least), f"{shares[least]:.0%}", in_words(each.rates_bps.get(least, 0), "bit/s"))
        )
        table.add_row(f"{each.failure.kind} {each.failure.name}", each.state, ", ".join(map(str, each.lost)), *told)
    return table
