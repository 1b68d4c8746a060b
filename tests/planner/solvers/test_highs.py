"""HiGHS as the kit calls it: whatever else has been solved in this process, and without a word on the terminal."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pulp
import pytest

from inakit.planner.core.plan import OPTIMAL, SolverOptions
from inakit.planner.solvers import LinearProgram, run


def small_model() -> pulp.LpProblem:
    """Of whole numbers between 0 and 10, the least whose triple is 7 or more."""
    model = pulp.LpProblem("small", pulp.LpMinimize)
    x = model.add_variable("x", 0, 10, pulp.LpInteger)
    model += x
    model += 3 * x >= 7, "enough"
    return model


def small_program() -> LinearProgram:
    """The same in columns and rows."""
    program = LinearProgram()
    x = program.variable(0, 10, integral=True)
    program.at_least([(3, x)], 7)
    program.maximise([(-1, x)])
    return program


@pytest.mark.parametrize("others", [1, 2, 3])
def test_a_solve_with_any_number_of_threads_may_come_before(others: int) -> None:
    """As in a planner of a user, which runs in a thread of a study; HiGHS keeps the number for each thread."""

    def solved() -> tuple[str, str, float]:
        own = small_model()
        own.solve(pulp.HiGHS(msg=False, threads=others))
        return run(small_model(), SolverOptions()).status, small_program().solve().status, pulp.value(own.objective)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(solved).result() == (OPTIMAL, OPTIMAL, 3)


@pytest.mark.parametrize("first", ["run(small_model(), SolverOptions())", "small_program().solve()"])
def test_nothing_is_printed(first: str) -> None:
    """In a process of its own, because HiGHS says its banner once."""
    script = f"from test_highs import *; {first}; print(small_program().solve().values)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=__file__.rpartition("/")[0],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("[3.0]\n", "")
