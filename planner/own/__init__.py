"""Planners of your own: every module of this folder that has a `METHOD` is a planner, under the module's name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from topo.errors import InputError

if TYPE_CHECKING:
    from planner.methods.method import Method


def own_methods() -> dict[str, Method[Any]]:
    """By name, in which `_` becomes `-`. Raises `InputError` for a module without a `METHOD`."""
    found = {}
    for module in iter_modules(__path__):
        method = getattr(import_module(f"{__name__}.{module.name}"), "METHOD", None)
        if method is None:
            raise InputError(f"planner/own/{module.name}.py has no METHOD: add one as planner/README.md shows")
        found[module.name.replace("_", "-")] = method
    return found
