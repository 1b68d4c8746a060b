"""The solvers that this machine has: tests that ask each of them skip the others."""

from __future__ import annotations

import pytest

from inakit.planner.solvers import find_solver
from inakit.topo.errors import MachineError


def installed(name: str) -> bool:
    try:
        find_solver(name)
    except MachineError:
        return False
    return True


each_solver = pytest.mark.parametrize(
    "solver",
    [
        pytest.param(name, marks=pytest.mark.skipif(not installed(name), reason=f"{name} is not installed"))
        for name in ("highs", "cbc", "gurobi")
    ],
)
