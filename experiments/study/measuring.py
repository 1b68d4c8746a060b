"""One run of a study: plan, run the plan in a world, and give the figures as a row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from inakit.experiments.emulate.emulate import Emulation, ended_early, make_plans, measure
from inakit.experiments.faults.faults_file import load_faults
from inakit.experiments.run.outcome import planned_figures
from inakit.experiments.run.pace import TooSlowError
from inakit.experiments.run.run import Run
from inakit.experiments.study.setting import PLANS_ONLY, Setting
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.own_planners import name_of

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
QUIET = Console(quiet=True)


def measure_setting(given: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a setting: planned figures and, unless the world is `none`, measured ones. Raises `InakitError`."""
    setting = Setting(**given)
    emulation = emulation_of(setting)
    plan = make_plans(emulation, QUIET)[name_of(setting.planner)]
    row = planned_row(emulation, plan)
    return row if setting.world == PLANS_ONLY else row | measured_row(emulation, setting, plan)


def emulation_of(setting: Setting) -> Emulation:
    """The setting as an emulation of one planner."""
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
    )


def planned_row(emulation: Emulation, plan: Plan) -> dict[str, Any]:
    """The planned figures, and how the plan was found."""
    prediction = evaluate(emulation.problem, plan)
    figures = planned_figures(prediction) | {"network_throughput_bps": prediction.network_throughput_bps}
    row: dict[str, Any] = {name: figures[name.removeprefix("planned_")] for name in PLANNED}
    return row | {"solved": str(plan.outcome.status), "gap": plan.outcome.gap}


def measured_row(emulation: Emulation, setting: Setting, plan: Plan) -> dict[str, Any]:
    """The measured figures and the verdict. A run that is ended early has no figures, and the cause in words."""
    try:
        run = Run(emulation.problem, plan, emulation.mode, faults=emulation.faults)
        entry = measure(emulation, name_of(setting.planner), run, find_world(setting.world), QUIET).as_json()
    except TooSlowError as slow:
        entry = ended_early(slow, emulation)
    figures = entry["measured"] | {"collisions": entry.get("collisions")}
    row = {name: figures.get(name.removeprefix("measured_")) for name in MEASURED}
    reasons = "; ".join(entry["reasons"])
    return row | {"exact": figures.get("exact"), "verdict": str(entry["verdict"]), "reasons": reasons}
