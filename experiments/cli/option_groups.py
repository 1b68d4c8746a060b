"""Groups of options: dataclasses that a command takes as a parameter, each field of which is an option.

    def plan(fabric: FabricOptions, job: SizedJobOptions, seed: Seed = 0) -> None: ...

    app.command()(with_groups(plan))

`with_groups` turns each field of a group into an option of the command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one parameter for each option of its groups, in the place of the groups, as typer needs it."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}

    @wraps(command)
    def flat(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    parameters = list(flattened(inspect.signature(command), hints, groups))
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    del flat.__wrapped__
    return flat


def flattened(
    signature: inspect.Signature, hints: dict[str, Any], groups: dict[str, type]
) -> Iterator[inspect.Parameter]:
    """The parameters of a command; for a group, one parameter for each of its fields."""
    for name, parameter in signature.parameters.items():
        if name not in groups:
            yield parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        own = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=own[field.name]
            )
