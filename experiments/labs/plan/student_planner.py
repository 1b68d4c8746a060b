"""A student's planner: asked for plans in a sandbox of its own."""

from __future__ import annotations

from typing import Any

from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.plan.tree_format import Drawn, fabric_given, jobs_given, trees_of
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, printable, python_paths
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError

RUNNER = "inakit.experiments.labs.runners.planner_runner"


def planner_limits() -> Limits:
    """What a planner may use for the plans of an item. It reads Python's own library, and writes nothing."""
    return Limits(cpu_s=10, wall_s=20.0, memory_bytes=256 * MIB, readable=python_paths())


class StudentPlanner:
    """The planner of a text. `enforced` is what its sandbox says of the limits."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.enforced: dict[str, str] = {}
        self.process: Sandboxed | None = None

    def answer(self, problem: Problem) -> Any:
        """What the planner returns for a problem.

        Raises `InputError` for a file that is no planner, `WrongError` for a mistake in planning, and `EndedError`.
        """
        if self.process is None:
            self.process = Sandboxed(RUNNER, planner_limits())
            self.enforced = self.process.enforced
        try:
            answer = self.process.ask([self.text, fabric_given(problem.fabric), jobs_given(problem)])
        except EndedError:
            self.close()
            raise
        match answer:
            case ["ok", trees]:
                return trees
            case ["mistake", str(message)]:
                raise WrongError(printable(message))
            case ["refused", str(message)]:
                raise InputError(printable(message))
        raise EndedError("its answer is none")

    def plan(self, problem: Problem) -> Drawn:
        """The planner's trees for a problem. Raises `WrongError` for what are no trees, and as `answer` does."""
        return trees_of(self.answer(problem), problem)

    def close(self) -> None:
        """End the sandbox; the next question gets a new one."""
        if self.process is not None:
            self.process.close()
        self.process = None
