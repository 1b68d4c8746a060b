"""Every error that the kit raises on purpose.

InakitError
├── InputError        something a person wrote is wrong: a file, a name, a number (exit code 2)
│   ├── FabricError   a fabric that cannot exist
│   └── PlanError     a plan that breaks a rule; names the rule, the tree and the link
├── MachineError      something this machine lacks: root, clang, simple_switch (exit code 2)
├── SolverError       a model that is infeasible, or a solver that failed (exit code 2)
├── UnsupportedError  a P4 construct that a target refuses to run, by name (exit code 2)
└── RunError          a run that broke: a switch died, a worker stalled (exit code 2)

Each message names the value, what was expected, and the way out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InakitError(Exception):
    """Base of all errors whose message is meant for a person."""


class InputError(InakitError):
    """Something a person wrote is wrong."""


class FabricError(InputError):
    """A fabric that cannot exist."""


class PlanError(InputError):
    """A plan that breaks a rule."""


class MachineError(InakitError):
    """Something that this machine lacks."""


class SolverError(InakitError):
    """A model without a solution, or a solver that failed."""


class UnsupportedError(InakitError):
    """A P4 construct that a switch target refuses to run."""


class RunError(InakitError):
    """A run that broke while it ran."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that no registry has, with the nearest one that it has."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return InputError(f"unknown {what} '{name}': {hint}choose from {', '.join(choices)}")
