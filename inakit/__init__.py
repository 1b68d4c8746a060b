"""Emulation of in-network aggregation of gradients: one flat interface, `import inakit as ina`.

    fabric = ina.fabric("leafspine", leaves=4)
    plan = ina.plan(fabric, ina.job(fabric, workers=8), "aro")
    ina.run(plan, world="virtual")
    ina.compare(fabric, planners=["aro", "atp"]).to_frame()

The names of `__all__` are stable: a later version keeps their meaning, or warns of a change for a year. All other names
are internal. A name is loaded at its first use, so that the import itself takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inakit.experiments.api.display import Picture
    from inakit.experiments.api.fabrics import fabric, job
    from inakit.experiments.api.plans import PlannedRun, plan
    from inakit.experiments.api.runs import Comparison, Result, compare, run
    from inakit.experiments.api.studies import StudyResults, study
    from inakit.planner.core.check import check
    from inakit.planner.core.evaluate import Prediction, evaluate
    from inakit.planner.core.method import Method, Options
    from inakit.planner.core.plan import Plan
    from inakit.planner.core.problem import Job, Problem
    from inakit.planner.trees.from_paths import plan_from_paths
    from inakit.planner.trees.unfolding import unfold
    from inakit.topo.errors import (
        FabricError,
        InakitError,
        InputError,
        MachineError,
        OutputError,
        PlanError,
        RunError,
        SolverError,
        UnsupportedError,
    )
    from inakit.topo.fabric.fabric import Fabric

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Fabric",
    "FabricError",
    "InakitError",
    "InputError",
    "Job",
    "MachineError",
    "Method",
    "Options",
    "OutputError",
    "Picture",
    "Plan",
    "PlanError",
    "PlannedRun",
    "Prediction",
    "Problem",
    "Result",
    "RunError",
    "SolverError",
    "StudyResults",
    "UnsupportedError",
    "check",
    "compare",
    "evaluate",
    "fabric",
    "job",
    "plan",
    "plan_from_paths",
    "run",
    "study",
    "unfold",
]

_HOMES = {
    "inakit.experiments.api.fabrics": ("fabric", "job"),
    "inakit.experiments.api.display": ("Picture",),
    "inakit.experiments.api.plans": ("PlannedRun", "plan"),
    "inakit.experiments.api.runs": ("Comparison", "Result", "compare", "run"),
    "inakit.experiments.api.studies": ("StudyResults", "study"),
    "inakit.planner.core.check": ("check",),
    "inakit.planner.core.evaluate": ("Prediction", "evaluate"),
    "inakit.planner.core.method": ("Method", "Options"),
    "inakit.planner.core.plan": ("Plan",),
    "inakit.planner.core.problem": ("Job", "Problem"),
    "inakit.planner.trees.from_paths": ("plan_from_paths",),
    "inakit.planner.trees.unfolding": ("unfold",),
    "inakit.topo.errors": (
        *("FabricError", "InakitError", "InputError", "MachineError", "OutputError"),
        *("PlanError", "RunError", "SolverError", "UnsupportedError"),
    ),
    "inakit.topo.fabric.fabric": ("Fabric",),
}
"""The module of every stable name."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'inakit' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
