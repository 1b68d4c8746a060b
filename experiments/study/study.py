"""A study as data: its settings in order, the trial of each, and one run: plan, run in a world, figures as a row."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import Field, StrictStr
from rich.console import Console

from inakit.experiments.emulate.emulate import Emulation, ended_early, make_plans, measure
from inakit.experiments.run.faults_file import load_faults
from inakit.experiments.run.outcome import planned_figures
from inakit.experiments.run.pace import TooSlowError
from inakit.experiments.run.run import Run
from inakit.experiments.run.scenario import parse_scale
from inakit.experiments.run.scheduled import CenterChanges, Scheduled, read_problem
from inakit.experiments.study.setting import KEYS, PLANS_ONLY, Block, Setting, combined
from inakit.experiments.sweeps.run_trials import run_trials
from inakit.experiments.sweeps.trial import ROOT, Finished, Kept, Trial, code_version, key_of
from inakit.experiments.sweeps.trial_engines import Engine
from inakit.experiments.worlds.registry import find_world, is_virtual
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.job_traces import TraceReading
from inakit.planner.own_planners import name_of
from inakit.planner.prepared import Prepared
from inakit.planner.registry import find_own
from inakit.topo.files.reader import Record

COMPARED = (
    "sending_rate_bps",
    "ps_ingress_bytes",
    "communication_time_s",
    "aggregation_ratio",
    "aggregated_bytes",
    "overhead_bytes",
)
"""The figures that are both planned and measured."""
PLANNED = tuple(f"planned_{name}" for name in (*COMPARED, "network_throughput_bps"))
MEASURED = (*(f"measured_{name}" for name in COMPARED), "retransmissions", "collisions")
COMPARED_SCHEDULES = ("mean_jct_s", "connections")
"""The figures of schedules that are both planned and measured."""
OF_SCHEDULES = (
    *(f"{kind}_{name}" for kind in ("planned", "measured") for name in COMPARED_SCHEDULES),
    *("mean_wait_s", "ct_bti_s", "reconfigurations"),
)
QUIET = Console(quiet=True)


def measure_setting(given: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a setting: planned figures and, unless the world is `none`, measured ones. Raises `InakitError`."""
    setting = Setting(**given)
    if setting.center is not None:
        return scheduled_row(setting, Path(setting.center))
    emulation = emulation_of(setting)
    prepared = make_plans(emulation, QUIET)[name_of(setting.planner)]
    row = planned_row(prepared)
    return row if setting.world == PLANS_ONLY else row | measured_row(emulation, setting, prepared)


def emulation_of(setting: Setting) -> Emulation:
    problem = setting.problem
    return Emulation(
        problem,
        (setting.planner,),
        setting.world,
        setting.mode,
        setting.seed,
        faults=None if setting.faults is None else load_faults(Path(setting.faults), problem),
        policies=(setting.policy,) if setting.policy else (),
        headroom=setting.headroom,
        sample=setting.sample,
    )


def scheduled_row(setting: Setting, center: Path) -> dict[str, Any]:
    """The row of a schedule: its figures and, unless the world is `none`, those of its run by packets."""
    iterations = setting.iterations if "iterations" in setting.model_fields_set else None
    reading = TraceReading(setting.gradient_bytes, iterations=iterations, jobs=setting.first_jobs, seed=setting.seed)
    changes = CenterChanges(setting.optical_ports, setting.slot_s, setting.reconfiguration_s)
    problem, _ = read_problem(center, None if setting.trace is None else Path(setting.trace), reading, changes)
    made = Scheduled.by(setting.planner, problem, SolverOptions(seed=setting.seed))
    found = made.figures
    row: dict[str, Any] = {
        "planned_mean_jct_s": made.mean_jct_s,
        "planned_connections": found.connections,
        "mean_wait_s": made.mean_wait_s,
        "ct_bti_s": found.ct_bti_s,
        "reconfigurations": found.reconfigurations,
        "solved": str(made.schedule.outcome.status),
        "gap": made.schedule.outcome.gap,
    }
    if setting.world == PLANS_ONLY:
        return row
    ran = made.run(find_world(setting.world), parse_scale(setting.scale), None, QUIET, quiet=True).ran
    assert ran is not None
    measured = ran.outcome.measured
    return row | {
        "measured_mean_jct_s": fmean(ran.jct_s.values()),
        "measured_connections": ran.connections,
        "retransmissions": measured.retransmissions,
        "exact": measured.exact,
        "verdict": str(ran.outcome.verdict),
        "reasons": "; ".join(ran.outcome.reasons),
    }


def planned_row(prepared: Prepared) -> dict[str, Any]:
    plan, prediction = prepared.plan, prepared.prediction
    figures = planned_figures(prediction).as_json() | {"network_throughput_bps": prediction.network_throughput_bps}
    row: dict[str, Any] = {name: figures[name.removeprefix("planned_")] for name in PLANNED}
    return row | {"solved": str(plan.outcome.status), "gap": plan.outcome.gap}


def measured_row(emulation: Emulation, setting: Setting, prepared: Prepared) -> dict[str, Any]:
    """The measured figures and the verdict. A run that is ended early has no figures, but the cause in words."""
    try:
        run = Run(prepared, interferences=emulation.interferences)
        entry = measure(emulation, name_of(setting.planner), run, find_world(setting.world), QUIET).results
    except TooSlowError as slow:
        entry = ended_early(slow, emulation)
    measured = entry.measured
    figures = {} if measured is None else measured.as_json() | {"collisions": entry.collisions}
    row = {name: figures.get(name.removeprefix("measured_")) for name in MEASURED}
    reasons, sampled = "; ".join(entry.reasons), entry.sampled
    row["by_packets"] = None if sampled is None else f"{sampled.by_packets} of {sampled.fragments}"
    return row | {"exact": figures.get("exact"), "verdict": str(entry.verdict), "reasons": reasons}


FOLDER, KEPT = "studies", "kept"
PLANNING = (
    *("topo/errors.py", "topo/fabric", "topo/files", "planner", "traffic/wire"),
    *("experiments/study/study.py", "experiments/study/setting.py"),
    *("experiments/run/scenario.py", "experiments/run/scheduled.py", "experiments/emulate/emulate.py"),
)
"""The code on which plans depend, without `planner/own`: of user-defined planners only that of the run counts."""
RUNNING = ("topo", "switch", "traffic", "p4/build", "experiments/run", "experiments/worlds")
"""The code on which runs depend in addition."""


class FigureAsked(Record):
    """A figure that a study file requests: a line for each `colour`, a panel for each `facet`."""

    x: StrictStr = Field(description=f"one of {', '.join(KEYS)}")
    y: StrictStr = Field(description="a figure such as sending_rate_bps")
    colour: StrictStr = Field("planner", description=f"one of {', '.join(KEYS)}")
    facet: StrictStr | None = Field(None, description=f"one of {', '.join(KEYS)}")
    kind: Literal["lines", "bars"] = Field("lines", description="lines or bars")
    size: Literal["column", "page"] = Field("column", description="column or page: the width in a paper")
    log: Literal["", "x", "y", "xy"] = Field("", description="the logarithmic axes: x, y or xy")


@dataclass(frozen=True)
class Study:
    """The settings that stay, those that vary, and how results are shown: keys of groups, figures, the comparison.

    `labels` are shorter names of values, such as fabrics, for tables and figures.
    """

    name: str
    stays: Setting
    varies: tuple[Block, ...]
    groups: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    against: str | None = None
    figures: tuple[FigureAsked, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> list[Setting]:
        """The setting of every run, in order. Varying values override those that stay."""
        stays = {name: getattr(self.stays, name) for name in self.stays.model_fields_set}
        return [Setting(**stays | varied) for varied in combined(self.varies)]

    @property
    def trials(self) -> list[Trial]:
        """The trial of every run, in order."""
        return [trial_of(setting) for setting in self.settings]

    def folder(self, results: Path) -> Path:
        """The folder of the study's table, summaries and figures."""
        return results / FOLDER / self.name


def kept_in(results: Path) -> Kept:
    """The results of all studies in a folder: a run of one study is not repeated by another."""
    return Kept(results / FOLDER / KEPT)


def trial_of(setting: Setting) -> Trial:
    """The trial that runs a setting. Its key is the hash of the setting, of the files it names, and of the code."""
    given = setting.model_dump(mode="json")
    files = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in setting.files}
    emulated = setting.world != PLANS_ONLY and not is_virtual(setting.world)
    kind = f"{setting.world} {setting.center or setting.fabric} {setting.workers} {setting.planner}"
    key = key_of(setting=given, files=files, code=code_of(setting))
    return Trial(key, measure_setting, given, kind, emulated)


def code_of(setting: Setting) -> list[str]:
    """The versions of the code on which a run of the setting depends."""
    parts: Sequence[str] = PLANNING if setting.world == PLANS_ONLY else (*PLANNING, *RUNNING)
    kit = code_version(*(ROOT / part for part in parts), without=(ROOT / "planner" / "own",))
    own = find_own(setting.planner)
    return [kit] if own is None else [kit, own.sha256]


def run_study(study: Study, results: Path, engine: Engine, console: Console) -> list[Finished]:
    """Run the trials without a kept result; return the results of all, in order. Raises `OutputError`."""
    return list(run_trials(study.trials, kept_in(results), engine, console, study.name).values())
