"""`inakit validate`: what a failure leaves, what the verdict says, what is kept, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inakit.experiments.cli.main import main
from inakit.experiments.hardware.failures import (
    ANEW,
    AS_BEFORE,
    NO_PLAN,
    NOTHING,
    PARTLY_ANEW,
    Failure,
    after,
    links_of_jobs,
    save_problem,
    single_failures,
)
from inakit.experiments.hardware.site_file import Margins, Simulate, Site, Withstand, load_site, write_starter
from inakit.experiments.hardware.validation import (
    PlannerResult,
    Validation,
    Weathered,
    Work,
    all_failures,
    emulate,
    folder_of,
    is_of_machine,
    one_validation,
    packed,
    plan_of,
    program_reasons,
    reasons_of,
    simulated,
    unpacked,
    unproven,
    validate_site,
    weathered_of,
)
from inakit.experiments.run.scenario import FabricChoice
from inakit.experiments.sweeps.trial import Finished, Trial
from inakit.experiments.sweeps.trial_engines import Loky
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.traffic.wire.packet_format import FRAGMENT

Command = Callable[..., tuple[int, str]]
QUIET = Console(quiet=True)
SITE = """\
version: 1
fabric: "leafspine:leaves=2,spines=2,hosts_per_leaf=2"
jobs: jobs.yml
planners: [atp]
withstand: {links: [[leaf1, spine1], [leaf1, spine2]], switches: [spine2], hosts_cut_off: accepted}
simulate: {worst: 1, fragments: 8}
"""
JOBS = "version: 1\njobs:\n  - {workers: [h1, h2], servers: [h4], gradient_bytes: 4096}\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command, and returns its exit code and its output."""

    def command(*words: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["inakit", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out + printed.err

    return command


def two_jobs() -> Problem:
    """Four leaves, two spines, two hosts under each leaf; job 1 is under leaves 1 and 2, job 2 under leaves 3 and 4."""
    fabric = FabricChoice("leafspine:leaves=4,spines=2,hosts_per_leaf=2").build()
    jobs = Job(1, ("h1", "h3"), ("h4",), 4096), Job(2, ("h5", "h7"), ("h8",), 4096)
    return Problem(fabric, jobs, FRAGMENT)


def site(**changes: Any) -> Site:
    """A site whose plans are ATP's, that simulates little."""
    given = {"name": "small", "problem": two_jobs(), "planners": ("atp",), "simulate": Simulate(worst=1, fragments=8)}
    return Site(**given | changes)  # type: ignore[arg-type]


def validated(given: Site, results: Path) -> Validation:
    return validate_site(given, results, Loky(1), QUIET)


# what a failure leaves


def test_a_leaf_takes_the_jobs_with_hosts_under_it() -> None:
    problem = two_jobs()
    plan = METHODS["atp"].plan(problem)
    found = after(problem, links_of_jobs(plan), Failure(("leaf1",)))
    assert found.lost == {1: "cut off: h1 (leaf1)"}
    assert found.problem is not None
    assert [job.number for job in found.problem.jobs] == [2]
    assert found.problem.fabric.host_names == {"h3", "h4", "h5", "h6", "h7", "h8"}
    assert not found.touched


def test_a_job_without_an_up_down_path_is_named() -> None:
    problem = two_jobs()
    failures = [Failure(("leaf1", "spine1")), Failure(("leaf1", "spine2"))]
    left = after(problem, links_of_jobs(METHODS["atp"].plan(problem)), failures[0]).problem
    assert left is not None
    plan = METHODS["atp"].plan(left)
    assert after(left, links_of_jobs(plan), failures[1]).lost == {1: "no up-down path to h4 from h1"}


def test_every_link_and_every_switch_fails_unless_the_file_names_some() -> None:
    fabric = two_jobs().fabric
    failures = single_failures(fabric, Withstand())
    assert len(failures) == len(fabric.switches) + len(fabric.links) == 6 + 16
    some = single_failures(fabric, Withstand(links=(("leaf1", "spine1"),), switches=()))
    assert [(each.kind, each.name) for each in some] == [("link", "leaf1-spine1")]


def failures_of(given: Site, results: Path) -> dict[str, Weathered]:
    """What every failure does to the plan of the site's planner, by its name."""
    folder = folder_of(given, results)
    save_problem(folder, given.problem)
    plan_of(Work(given, folder, results, Loky(1), QUIET), given.planners[0])
    found = all_failures(Work(given, folder, results, Loky(1), QUIET), given.planners[0])
    return {each.failure.name: each for each in found}


def test_jobs_that_a_failure_touches_are_planned_anew_and_a_plan_that_it_does_not_touch_stays(tmp_path: Path) -> None:
    core = tuple((link.a, link.b) for link in two_jobs().fabric.links if link.b.startswith("spine"))
    found = failures_of(site(withstand=Withstand((*core, ("h6", "leaf3")), ())), tmp_path)
    plan = METHODS["atp"].plan(two_jobs())
    used = {frozenset(link) for links in links_of_jobs(plan).values() for link in links}
    for one, other in core:
        assert found[f"{one}-{other}"].state == (PARTLY_ANEW if frozenset((one, other)) in used else AS_BEFORE)
    assert {each.state for each in found.values()} == {PARTLY_ANEW, AS_BEFORE}
    assert found["h6-leaf3"].state == AS_BEFORE


def test_planners_with_a_second_phase_keep_what_each_server_has(tmp_path: Path) -> None:
    problem = two_jobs()
    jobs = (replace(problem.jobs[0], servers=("h4", "h2"), gradient_bytes=8192),)
    links = (("leaf1", "spine1"), ("leaf1", "spine2"))
    given = site(problem=replace(problem, jobs=jobs), planners=("inart",), withstand=Withstand(links, ()))
    found = failures_of(given, tmp_path)
    assert {each.state for each in found.values()} <= {PARTLY_ANEW, ANEW, AS_BEFORE}, found
    assert {each.state for each in found.values()} & {PARTLY_ANEW, ANEW}


# the verdict


def test_a_site_holds_and_what_it_does_is_kept(tmp_path: Path) -> None:
    given = site(withstand=Withstand((("leaf1", "spine1"),), ("spine2",), hosts_may_be_cut_off=True))
    found = validated(given, tmp_path)
    assert (found.verdict, found.holding, found.reasons) == ("HOLDS", ["atp"], {"atp": []})
    assert found.left_out == ("no emulation: the site's file has no key `emulate`",)
    runs = found.results[0].virtual
    assert [run["verdict"] for run in runs.values()] == ["VALID", "VALID"]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "studies" / "kept").rglob("*.json")}
    assert len(kept) == 2 + 2
    assert validated(given, tmp_path) == found
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_the_plan_that_was_judged_is_the_one_that_is_run(tmp_path: Path) -> None:
    """A solver that is short of time may give another plan when it is asked again."""
    plan = METHODS["atp"].plan(two_jobs())
    used = next(pair for pair in (("leaf1", "spine1"), ("leaf1", "spine2")) if frozenset(pair) in core_links(plan))
    given = site(withstand=Withstand((used,), ()))
    work = Work(given, folder_of(given, tmp_path), tmp_path, Loky(1), QUIET)
    save_problem(work.folder, given.problem)
    result = plan_of(work, "atp")
    result = replace(result, weathered=all_failures(work, "atp"))
    (found,) = result.weathered
    assert found.state in (PARTLY_ANEW, ANEW) and found.plan is not None
    slower = unpacked(found.plan).with_rates_times(0.5)
    told = simulated(work, replace(result, weathered=(replace(found, plan=packed(slower)),)))
    assert told[found.failure.name]["planned_bps"] == {
        str(job): pytest.approx(rate / 2) for job, rate in found.rates_bps.items()
    }


def test_plans_that_are_not_proven_are_told() -> None:
    """The time limit of a solver depends on the machine, and so may the verdict."""
    proven = PlannerResult("aro", weathered=(weathered(), weathered()))
    assert unproven(proven) == []
    late = replace(proven, unproven=True, weathered=(weathered(), replace(weathered(), unproven=True)))
    (told,) = unproven(late)
    assert told.startswith(
        "aro: not proven optimal: the plan without failures, those under 1 of 2 failures; the solver's time"
    )
    assert weathered_of(Failure(("s1",)), row_under_failure(unproven=True), None).unproven


def row_under_failure(**more: Any) -> dict[str, Any]:
    """The row of a trial under a failure that costs no job anything."""
    return {"state": ANEW, "lost": {}, "rates_bps": {"1": 1e9}, "error": None} | more


def core_links(plan: Plan) -> set[frozenset[str]]:
    """The links that a plan uses."""
    return {frozenset(link) for links in links_of_jobs(plan).values() for link in links}


def test_hosts_that_are_cut_off_fail_the_site_unless_it_accepts_that(tmp_path: Path) -> None:
    given = site(withstand=Withstand(links=(("h1", "leaf1"),), switches=()), simulate=Simulate(worst=0, fragments=8))
    assert validated(given, tmp_path).reasons["atp"] == ["link h1-leaf1 fails: job 1 stops (cut off: h1 (leaf1))"]


def weathered(state: str = ANEW, lost: dict[int, str] | None = None, error: str | None = None, **rates: float) -> Any:
    return Weathered(Failure(("s1",)), state, lost or {}, {int(job[1:]): rate for job, rate in rates.items()}, error)


@pytest.mark.parametrize(
    ("margins", "found", "reason"),
    [
        (
            Margins(keeps=0.5),
            weathered(j1=4e9, j2=2e9),
            "switch s1 fails: job 1 keeps 40% of its rate, 50% is required",
        ),
        (
            Margins(keeps=0, least_rate=2e9),
            weathered(j1=1e9, j2=2e9),
            "switch s1 fails: job 1 sends at 1 Gbit/s, at least 2 Gbit/s is required",
        ),
        (Margins(), weathered(NO_PLAN, error="too small"), "switch s1 fails: no plan for the other jobs (too small)"),
        (Margins(), weathered(lost={2: "cut off"}, j1=1e10), "switch s1 fails: job 2 stops (cut off)"),
        (Margins(keeps=1), weathered(NOTHING, {1: "a", 2: "b"}), "switch s1 fails: job 1 stops (a)"),
    ],
)
def test_each_requirement_that_is_not_met_is_named(margins: Margins, found: Weathered, reason: str) -> None:
    result = PlannerResult("atp", {1: 1e10, 2: 2e9}, weathered=(found,))
    assert reasons_of(site(margins=margins), result)[0].startswith(reason)


def test_virtual_time_and_links_without_room_are_named() -> None:
    row = {"verdict": "VALID", "reasons": [], "planned_bps": {"1": 1e9}, "measured_bps": {"1": 9e8}}
    broken = {"error": "a switch died"}
    result = PlannerResult("atp", {1: 1e9}, virtual={"": row, "s1": broken, "s2": row | {"verdict": "WRONG"}})
    assert reasons_of(site(), result) == [
        "virtual time: job 1 sends at 900 Mbit/s, -10.0% of the plan (within 5%)",
        "virtual time, s1 fails: a switch died",
        "virtual time, s2 fails: WRONG: sums are not exact",
        "virtual time, s2 fails: job 1 sends at 900 Mbit/s, -10.0% of the plan (within 5%)",
    ]


def test_links_that_are_fuller_than_asked_for_are_named(tmp_path: Path) -> None:
    given = site(margins=Margins(free=0.2), withstand=Withstand((), ()), simulate=Simulate(worst=0, fragments=8))
    reasons = validated(given, tmp_path).reasons["atp"]
    assert "link h1-leaf1: 100% of it is used, 20% must stay free" in reasons


def test_a_planner_without_a_plan_is_told_and_others_are_judged(tmp_path: Path) -> None:
    given = site(planners=("ring", "atp"), withstand=Withstand((), ()))
    alone = replace(given.problem.jobs[0], workers=("h1",))
    found = validated(replace(given, problem=replace(given.problem, jobs=(alone,))), tmp_path)
    assert found.reasons["ring"] == ["no plan: job 1 has one worker: a collective needs at least two"]
    assert found.holding == ["atp"]


# the command


def test_the_command_writes_the_verdict_and_the_page(run: Command, tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(SITE)
    (tmp_path / "jobs.yml").write_text(JOBS)
    command = ("validate", tmp_path / "site.yml", "--processes", "1", "--results", tmp_path / "results")
    code, told = run(*command)
    assert code == 0, told
    assert f"{tmp_path.name} holds with atp" in told
    folder = tmp_path / "results" / "sites" / tmp_path.name
    assert f"<title>{tmp_path.name} holds with atp" in (folder / "report.html").read_text()
    (tmp_path / "site.yml").write_text(SITE.replace("accepted", "fails").replace("[spine2]", "[leaf2]"))
    code, told = run(*command)
    assert code == 1
    assert "atp: switch leaf2 fails: job 1 stops (cut off: h4 (leaf2))" in told
    document = json.loads((folder / "validation.json").read_text())
    assert document["verdict"] == "DOES NOT HOLD"
    found = next(each for each in document["planners"][0]["failures"] if each["name"] == "leaf2")
    assert (found["plan"], found["lost"]) == ("no job goes on", {"1": "cut off: h4 (leaf2)"})


def test_the_starter_is_a_site_and_is_never_written_over(run: Command, tmp_path: Path) -> None:
    code, told = run("validate", "--starter", tmp_path / "new")
    assert (code, told.count("wrote")) == (0, 3)
    found = load_site(tmp_path / "new" / "site.yml")
    assert found.planners == ("aro", "atp")
    assert found.withstand == Withstand(hosts_may_be_cut_off=True)
    with pytest.raises(InputError, match=r"site\.yml already exists"):
        write_starter(tmp_path / "new")


def test_a_site_is_called_like_its_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text(JOBS)
    for file in ("site.yml", "east.yml"):
        (tmp_path / file).write_text(SITE)
    assert [load_site(tmp_path / file).name for file in ("site.yml", "east.yml")] == [tmp_path.name, "east"]


@pytest.mark.parametrize(
    ("keys", "program"),
    [("", "ina"), ("chip: generic", "ina"), ("chip: tofino1", "ina_hw"), ("chip: tofino1\nprogram: ina", "ina")],
)
def test_without_a_program_the_first_that_the_chip_can_run_is_taken(tmp_path: Path, keys: str, program: str) -> None:
    (tmp_path / "jobs.yml").write_text(JOBS)
    (tmp_path / "site.yml").write_text(f"{SITE}{keys}\n")
    found = load_site(tmp_path / "site.yml")
    assert found.program == program
    assert [*program_reasons(found)] == (
        ["program ina sums 64 values of up to 64 children in a pass, and chip tofino1 has 32 and 32: it cannot run "
         "there"] if "program: ina" in keys else []
    )  # fmt: skip


def test_two_validations_do_not_write_into_one_folder(run: Command, tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(SITE)
    (tmp_path / "jobs.yml").write_text(JOBS)
    results = tmp_path / "results"
    with one_validation(results / "sites" / tmp_path.name):
        code, told = run("validate", tmp_path / "site.yml", "--results", results)
    assert code == 2
    assert "another validation is writing there: wait until it ends, or choose another --results" in told
    assert not list(results.rglob("*.json"))


@pytest.mark.parametrize(
    ("row", "again"),
    [(None, True), ({"verdict": "OVERLOADED"}, True), ({"verdict": "VALID"}, False)],
)
def test_what_the_machine_spoilt_is_tried_again(row: dict[str, Any] | None, again: bool) -> None:
    trial = Trial("key", emulate, {}, "emulation", alone=True)
    assert is_of_machine(trial, Finished("key", row, None, 1.0, "here", "now")) is again


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("version: 1", "version: 2"),
            "line 1: key 'version' 2 is not a version that this kit reads: write .version: 1.",
        ),
        (("jobs: jobs.yml", "jbs: jobs.yml"), "line 3: jbs: unknown key, did you mean 'jobs'"),
        (("jobs: jobs.yml\n", ""), "key 'jobs' is missing"),
        (("jobs: jobs.yml", "jobs: other.yml"), "line 3: jobs: .*other.yml: No such file"),
        (('"leafspine:leaves=2', '"leafspine:leavs=2'), "line 2: fabric: .*leavs"),
        (("[atp]", "[]"), r"planners: \[\]: expected a list of planners"),
        (("[atp]", "[atpp]"), r"planners\[0\]: unknown planner 'atpp': did you mean 'atp'"),
        (("[atp]", "[atp, atp]"), "planners: a planner is listed twice"),
        (("[leaf1, spine1]", "[leaf1, leaf2]"), r"withstand.links\[0\]: leaf1, leaf2: .* has no such link"),
        (("[leaf1, spine1]", "[leaf1]"), r"withstand.links.*: expected all, none, or a list of pairs"),
        (("[spine2]", "[spine9]"), r"withstand.switches\[0\]: unknown switch .* 'spine9': did you mean"),
        (("[[leaf1, spine1]", "[[leaf1, spine1], [spine1, leaf1]"), "withstand.links: a link is listed twice"),
        (("[spine2]", "[spine2, spine2]"), "withstand.switches: a switch is listed twice"),
        (("[spine2]", "some"), "withstand.switches: 'some': expected all, none, or a list"),
        (("accepted", "ignored"), "hosts_cut_off: 'ignored': expected fails"),
        (("worst: 1", "worst: -1"), "simulate.worst: -1: expected a whole number"),
        (("version: 1", "version: 1\nmargins: {keeps: 2}"), "margins.keeps: 2: expected a share"),
        (("version: 1", "version: 1\nmargins: {least_rate: 0}"), "margins.least_rate: 0: expected a rate"),
        (("version: 1", "version: 1\nemulate: 2"), "emulate: 2: expected a fraction above 0"),
        (("version: 1", "version: 1\nemulate: fast"), "emulate: scale 'fast': expected a fraction"),
        (("version: 1", "version: 1\nmode: quick"), "mode: unknown mode 'quick'"),
        (("version: 1", "version: 1\nchip: tofno1"), "line 2: chip: .*tofno1"),
        (("version: 1", "version: 1\nchip: Tofino1"), "line 2: chip: .* did you mean 'tofino1'"),
        (("version: 1", "version: 1\ncapacity: fast"), "line 2: capacity: 'fast': expected a rate"),
        (("version: 1", "version: 1\nina: h1"), "line 2: ina: unknown switch 'h1'"),
        (("version: 1", "version: 1\nchip: tofino1\ncapacity: 400G"), "line 2: chip: .* 400 Gbit/s"),
        ((SITE, ""), "expected the keys version, fabric, jobs"),
        ((SITE, "- 1"), "expected the keys version, fabric, jobs"),
        ((SITE, "a: [1"), "line"),
        ((SITE, "\0"), "^[^\n]*not YAML: [^\n]*$"),
    ],
)
def test_a_wrong_file_gets_one_line_with_the_place_and_the_remedy(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "site.yml").write_text(SITE.replace(*change))
    (tmp_path / "jobs.yml").write_text(JOBS)
    with pytest.raises(InputError, match=message):
        load_site(tmp_path / "site.yml")


def test_a_command_without_a_site_or_with_too_much_is_told_what_to_give(run: Command, tmp_path: Path) -> None:
    assert run("validate") == (2, "inakit: give a site's file; or --starter FOLDER, which writes a starter\n")
    code, told = run("validate", tmp_path / "none.yml")
    assert (code, "--starter" in told) == (2, True)


def test_an_interrupted_validation_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("inakit.experiments.hardware.validation.simulated", interrupted)
    with pytest.raises(KeyboardInterrupt) as ended:
        validated(site(withstand=Withstand((("h1", "leaf1"),), ())), tmp_path)
    assert ended.value.__notes__ == ["the results of site small so far are kept: the same command continues"]
    assert len(list((tmp_path / "studies" / "kept").rglob("*.json"))) == 1


def test_a_validation_that_goes_on_keeps_its_plan_though_planning_takes_another_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = site(planners=("aro",), withstand=Withstand((("h1", "leaf1"),), ()))
    first = validated(given, tmp_path)
    kept = sorted((tmp_path / "studies" / "kept").rglob("*.json"))
    monkeypatch.setattr("inakit.experiments.hardware.validation.plan_to_run", None)
    second = validated(given, tmp_path)
    assert second.results == first.results
    assert sorted((tmp_path / "studies" / "kept").rglob("*.json")) == kept
