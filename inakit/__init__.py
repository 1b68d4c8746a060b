"""Emulation of in-network aggregation of gradients: one flat face, `import inakit as ina`.

    fabric = ina.fabric("leafspine", leaves=4)
    plan = ina.plan(fabric, ina.job(fabric, workers=8), "aro")
    ina.run(plan, world="virtual")
    ina.compare(fabric, planners=["aro", "atp"]).to_frame()

The names of `__all__` are stable: a later version gives them the same meaning, or a year of warnings. All others are
the kit's own. A name is loaded when it is first used, so that the import itself takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inakit.experiments.api.fabrics import fabric, job
    from inakit.experiments.api.pictures import Picture
    from inakit.experiments.api.plans import Prepared, plan
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
    "Prediction",
    "Prepared",
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
    "experiments.api.fabrics": ("fabric", "job"),
    "experiments.api.pictures": ("Picture",),
    "experiments.api.plans": ("Prepared", "plan"),
    "experiments.api.runs": ("Comparison", "Result", "compare", "run"),
    "experiments.api.studies": ("StudyResults", "study"),
    "planner.core.check": ("check",),
    "planner.core.evaluate": ("Prediction", "evaluate"),
    "planner.core.method": ("Method", "Options"),
    "planner.core.plan": ("Plan",),
    "planner.core.problem": ("Job", "Problem"),
    "planner.trees.from_paths": ("plan_from_paths",),
    "planner.trees.unfolding": ("unfold",),
    "topo.errors": (
        *("FabricError", "InakitError", "InputError", "MachineError", "OutputError"),
        *("PlanError", "RunError", "SolverError", "UnsupportedError"),
    ),
    "topo.fabric.fabric": ("Fabric",),
}
"""The module of every stable name."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"inakit.{module}"), name)
    raise AttributeError(f"module 'inakit' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
