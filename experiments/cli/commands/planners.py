"""`inakit planners`: the planners by name."""

from __future__ import annotations

from planner.registry import BROKEN, METHODS


def planners() -> None:
    """List the planners."""
    for name, method in METHODS.items():
        print(f"{name:16} {method.summary}")
    for name, error in BROKEN.items():
        print(f"{name:16} CANNOT BE USED: {error}")
