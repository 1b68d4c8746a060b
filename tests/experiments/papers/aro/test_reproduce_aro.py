"""ARO's figures on small networks: their settings, going on after an interruption, and the judging of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tiers import long_unless

from inakit.experiments.papers.aro import efficiency as aro_efficiency
from inakit.experiments.papers.aro.setting import (
    CAPACITY_BPS,
    EXACT,
    LEVELS,
    MJMT,
    SCHEMES,
    SJST,
    AroSetting,
    Ask,
    Found,
    aro_figure,
    gbps,
    measure,
    points,
    quantised,
    scheme_of,
)
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, SweptFigure
from inakit.experiments.papers.common.figure_registry import FIGURES, Request, find_figure
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.methods.aro.accelerations import PRINTED, SEARCH, AcceleratedOptions
from inakit.planner.methods.aro.leaf_spine import leaf_spine as recognise
from inakit.planner.methods.aro.task_graphs import tasks_of
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError
from inakit.traffic.measure.verdict import Verdict

LITTLE = AroSetting(workers=16, leaves=4, share=0.7)
FILES = {".csv", ".png", ".svg"}


def silent() -> Console:
    return Console(file=StringIO(), width=160)


def printed(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make networks and time limits small; what the figures draw and print stays the same."""
    from inakit.experiments.papers.aro import effectiveness as aro  # noqa: PLC0415

    for module, name in [
        *((aro, name) for name in ("SJST", "SHARES", "SIZES", "PIPELINES", "TASKS", "JOBS", "FLAT")),
        *((aro_efficiency, name) for name in ("SJST", "FIVE_JOBS", "SMALL")),
    ]:
        found = getattr(module, name)
        monkeypatch.setattr(module, name, shrunk(found) if isinstance(found, AroSetting) else [*map(shrunk, found)])
    monkeypatch.setattr("inakit.experiments.papers.aro.setting.QUICK_LIMIT_S", 2.0)


def shrunk(setting: AroSetting) -> AroSetting:
    return replace(setting, jobs=min(2, setting.jobs), workers=max(4, setting.workers // 12), leaves=5, share=0.7)


LASTING = ("fig10", "fig11")
"""Figures that take longest. Their tables and pictures are tested with made-up results as well."""


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(
    "figure", [long_unless(name not in LASTING, name) for name, figure in FIGURES["aro"].items() if figure.simulated]
)
def test_every_figure_is_drawn_and_its_text_is_judged(figure: str, tmp_path: Path) -> None:
    console = silent()
    verdict = find_figure("aro", figure).run(console, Request(tmp_path, quick=True))
    assert verdict in ("VALID", Verdict.CHANGED), "the claims are about larger settings"
    assert {path.suffix for path in tmp_path.glob(f"aro-{figure}.*")} == FILES
    judged = any(word in printed(console) for word in ("holds", "differs"))
    assert judged == bool(read_ledger("aro").of_figure(figure))


def test_the_default_setting_is_the_papers() -> None:
    problem = SJST.problem(0)
    assert sum(switch.ina for switch in problem.fabric.switches) == 9
    assert problem.fabric.switch_by_name["leaf1"].ina
    assert len(problem.fabric.hosts) == 576
    assert len(problem.jobs[0].workers) == 200
    assert {len(switch.pipelines) for switch in problem.fabric.switches} == {4}


def test_tasks_have_servers_under_leaves_of_their_own_and_jobs_workers_of_their_own() -> None:
    problem = replace(MJMT, jobs=4).problem(3)
    servers = [server for job in problem.jobs for server in job.servers]
    assert [problem.fabric.tor_of(server) for server in servers] == [f"leaf{i}" for i in range(1, 9)]
    workers = [worker for job in problem.jobs for worker in job.workers]
    assert len(set(workers)) == len(workers) == 400
    assert not set(workers) & set(servers)


class Counted:
    """A measurement with made-up results, which records its seeds and is interrupted at the seed `breaks_at`."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.seeds: list[int] = []
        self.breaks_at = breaks_at

    def __call__(self, trial: Trial) -> Result:
        if trial["seed"] == self.breaks_at:
            raise KeyboardInterrupt
        self.seeds.append(int(trial["seed"]))
        return {"least_bps": 1e9 * int(trial["seed"]), "gap": 0.0005 if trial["seed"] != 3 else 0.01}


def little_figure(measuring: Callable[[Trial], Result], lines: dict[str, Trial], seeds: int = 4) -> SweptFigure:
    """A figure of one chart in the little setting, by the schemes of the lines."""
    chart = Chart(gbps("least_bps", "Gbit/s"), points({"": LITTLE}), lines, heading="little")

    def show(found: Findings) -> Iterator[Part]:
        yield found.table(chart)

    return replace(aro_figure("little", lambda _: [chart], show, (seeds, seeds)), measure=measuring)


def schemes(*names: str) -> dict[str, Trial]:
    return {name: {"scheme": name} for name in names}


def test_an_interrupted_figure_goes_on_with_the_seeds_that_are_missing(tmp_path: Path) -> None:
    lines = schemes(EXACT, "RANDOM")
    with pytest.raises(KeyboardInterrupt):
        little_figure(Counted(breaks_at=2), lines)(silent(), Request(tmp_path))
    again, console = Counted(), silent()
    little_figure(again, lines)(console, Request(tmp_path))
    assert again.seeds == [2, 2, 3, 3]
    assert [line.split() for line in printed(console).splitlines()[-2:]] == [[EXACT, "1.5"], ["RANDOM", "1.5"]]


def test_a_figure_with_an_optimum_that_is_not_proven_is_not_valid(tmp_path: Path) -> None:
    verdicts = [
        little_figure(Counted(), schemes(name))(silent(), Request(tmp_path / name)) for name in ("RANDOM", EXACT)
    ]
    assert verdicts == ["VALID", Verdict.UNPROVEN]


def test_what_is_asked_beside_the_setting_makes_another_trial(tmp_path: Path) -> None:
    rates: dict[int, list[float]] = {10: [], 1000: []}

    def measuring(trial: Trial) -> Result:
        found = measure(trial)
        rates[int(trial["levels"])].append(float(found["least_bps"]) / 1e9)
        return found

    lines: dict[str, Trial] = {str(levels): {"scheme": EXACT, "levels": levels} for levels in rates}
    little_figure(measuring, lines, seeds=2)(silent(), Request(tmp_path))
    assert [one % 10 for one in rates[10]] == pytest.approx([0, 0])
    assert all(other - 10 < one <= other for one, other in zip(rates[10], rates[1000], strict=True))


def test_one_tasks_rate_is_rounded_down_to_a_level() -> None:
    third = CAPACITY_BPS / 3
    assert quantised(Found({1: [third]}, 0), LEVELS).rates_bps == {1: [33e9]}
    assert quantised(Found({1: [third, third]}, 0), LEVELS).rates_bps == {1: [third, third]}


@pytest.mark.parametrize("seed", range(6))
def test_the_fast_prunings_are_those_of_the_published_model(seed: int) -> None:
    """With APP both plan on the same network. With SRO each may keep another optimal set of aggregators."""
    problem = LITTLE.problem(seed)
    (task,) = tasks_of(problem)
    assert recognise(problem.fabric, task) is not None
    rates = {
        (name, model): METHODS[name].plan(problem, AcceleratedOptions(seed, model=model)).trees[0].rate_bps
        for name in ("aro-app", "aro-acc")
        for model in (SEARCH, PRINTED)
    }
    assert rates["aro-app", SEARCH] == pytest.approx(rates["aro-app", PRINTED])
    assert rates["aro-acc", SEARCH] == pytest.approx(rates["aro-acc", PRINTED])
    assert rates["aro-acc", SEARCH] <= rates["aro-app", SEARCH] * (1 + 1e-9)


def test_several_tasks_are_pruned_too() -> None:
    problem = AroSetting(jobs=2, workers=12, leaves=5, share=0.8).problem(1)
    plans = [METHODS["aro"].plan(problem)]
    for alpha in (1.0, 0.3):
        plans.append(METHODS["aro-app"].plan(problem, AcceleratedOptions(time_limit_s=5, levels=1000, alpha=alpha)))
    best, all_of_them, pruned = (sum(planned.rate_bps for planned in plan.trees) for plan in plans)
    assert best * 0.99 < all_of_them <= best * (1 + 1e-9)
    assert 0 < pruned <= all_of_them * (1 + 1e-9)


def test_any_planner_is_a_scheme() -> None:
    found = scheme_of("lbmm")(LITTLE.problem(0), Ask())
    assert found.rates_bps[1] == [pytest.approx(CAPACITY_BPS / 16)]


def judged() -> Iterator[tuple[statements.Statement, bool]]:
    yield statements.is_about("", 1.75, 1.75), True
    yield statements.is_about("", 3.66, 1.75), False
    yield statements.is_below("", 0.08, 0.07), False
    yield statements.is_above("", 2.1, 2), True
    yield statements.spans("", [2.2, 3.0, 4.0], 2.2, 4.0), True
    yield statements.spans("", [2.2, 3.0, 5.0], 2.2, 4.0), False
    yield statements.rises("", [1, 2, 2]), True
    yield statements.rises("", [1, 3, 2]), False
    yield statements.rises("", [2, 2]), False
    yield statements.falls("", [3, 2, 1]), True
    yield statements.falls("", [1, 2]), False
    yield statements.is_level("", [1.0, 1.1, 1.2]), True
    yield statements.is_level("", [1.0, 1.3]), False


@pytest.mark.parametrize(("statement", "holds"), list(judged()))
def test_statements_compare(statement: statements.Statement, holds: bool) -> None:
    assert statement.holds is holds
    console = silent()
    console.print(statements.table_of([statement]))
    assert ("holds" in printed(console)) is holds
    assert ("differs" in printed(console)) is not holds


@pytest.mark.parametrize("scheme", ["ARO-SRO", "literal aro-acc"])
def test_a_search_that_finds_nothing_in_its_time_has_a_rate_of_zero(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_short(_: Callable[[], object]) -> Found:
        raise SolverError("no routes were found in time")

    monkeypatch.setattr("inakit.experiments.papers.aro.setting.timed", too_short)
    assert SCHEMES[scheme](LITTLE.problem(0), Ask()).rates_bps == {1: [0.0]}
