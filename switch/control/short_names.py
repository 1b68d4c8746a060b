"""Names as simple_switch_CLI takes them: whole, or an end of one, from a dot on, that no other name has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inakit.topo.errors import InputError, unknown_name


def whole_name(what: str, name: str, known: Iterable[str]) -> str:
    """The name of `known` that `name` stands for; `InputError`, with the candidates, if it fits none or several."""
    choices = list(known)
    return name if name in choices else one_of(what, name, ending_with(name, choices), choices)


def ending_with(name: str, known: Iterable[str]) -> list[str]:
    """The names of `known` whose last parts, between dots, are those of `name`."""
    return [each for each in known if each.endswith(f".{name}")]


def one_of(what: str, name: str, fitting: Sequence[str], known: Iterable[str]) -> str:
    """The only element of `fitting`; `InputError` if it has none, or several."""
    if len(fitting) > 1:
        raise InputError(f"{what} '{name}' may be {' or '.join(fitting)}: write more of the name")
    if not fitting:
        raise unknown_name(what, name, known)
    return fitting[0]
