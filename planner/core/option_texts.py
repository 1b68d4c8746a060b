"""Options of a planner's own, given as text behind its name: `soar:switches=8`, `forest:trees=4`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

from inakit.planner.core.method import Method, Options
from inakit.topo.errors import InputError, unknown_name

NUMBERS: dict[type, str] = {int: "a whole number", float: "a number"}
"""The types that a text can be read as, beside plain text."""


def with_options(name: str, method: Method[Any], texts: Sequence[str]) -> Method[Any]:
    """The method with these options, each as "switches=8". Raises `InputError` for one that it does not have."""
    given = dict(option(name, method, text) for text in texts)
    method.options(**given)  # whose own check refuses values that make no sense
    return replace(method, function=lambda problem, own: method.function(problem, replace(own, **given)))


def own_options(method: Method[Any]) -> dict[str, type]:
    """The options that a method has beside those of all methods, with their types."""
    common = {field.name for field in fields(Options)}
    hints = get_type_hints(method.options)
    kinds = {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(method.options)}
    return {key: found[0] for key, found in kinds.items() if key not in common and found[0] in (*NUMBERS, str)}


def option(name: str, method: Method[Any], text: str) -> tuple[str, Any]:
    """The name and value of an option."""
    key, _, value = text.partition("=")
    known = own_options(method)
    if not known:
        raise InputError(f"planner '{name}' has no options of its own: leave out ':{text}'")
    if key not in known:
        raise unknown_name(f"option of planner '{name}'", key, known)
    kind = known[key]
    try:
        return key, kind(value)
    except ValueError as error:
        raise InputError(f"planner '{name}', option {text}: {NUMBERS[kind]} is expected, as {key}=4") from error
