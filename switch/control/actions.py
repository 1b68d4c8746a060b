"""Actions of entries in every form: an action with its parameters, or a member or a group of an action profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inakit.switch.control.codecs import Fields, Message, decode, encode, invalid
from inakit.switch.control.entry_check import check_params
from inakit.switch.control.match_keys import parse_number
from inakit.switch.control.p4data import bits_of
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.program.program import Action
from inakit.topo.errors import InputError

ActionData = tuple[str, tuple[int, ...]]
"""An action's name, and its parameters in the order of the program."""


@dataclass(frozen=True)
class Runs:
    """The action of an entry or a default: an action, or a member or a group of the table's action profile."""

    action: str | None = None
    params: tuple[int, ...] = ()
    member: int | None = None
    group: int | None = None


def check_data(where: str, action: Action, params: tuple[int, ...]) -> None:
    """Refuse parameters that do not fit an action."""
    try:
        check_params(where, action, params)
    except InputError as error:
        raise Refused(RefusalKind.BAD_ACTION_DATA, str(error)) from error


# simple_switch_CLI


def parse_params(action: Action, words: Sequence[str]) -> tuple[int, ...]:
    """The parameters of an action; `ValueError` if the number of words is wrong."""
    if len(words) != len(action.parameters):
        raise ValueError(f"action '{action.name}' has {len(action.parameters)} parameters, {len(words)} values given")
    return tuple(map(parse_number, words))


# Thrift


def read_thrift_params(actions: Iterable[Action], name: str, params: Sequence[bytes]) -> tuple[int, ...]:
    """The parameters in a message for one of these actions, cut to the parameters' bits."""
    numbers = tuple(int.from_bytes(each, "big") for each in params)
    places = next((action.parameters for action in actions if action.name == name), ())
    if len(places) != len(numbers):
        return numbers
    return tuple(number & ((1 << place.bits) - 1) for number, place in zip(numbers, places, strict=True))


def thrift_params(params: Sequence[int]) -> list[bytes]:
    """The parameters as a message has them: without leading zeros, as in BMv2."""
    return list(map(encode, params))


def thrift_action(types: Any, runs: Runs | None) -> Any:
    """The message for the action of an entry or a default; None means no action."""
    if runs is None:
        return types.Action(types.ActionKind.NONE)
    if runs.member is not None:
        return types.Action(types.ActionKind.MBR_HANDLE, mbr_handle=runs.member)
    if runs.group is not None:
        return types.Action(types.ActionKind.GRP_HANDLE, grp_handle=runs.group)
    return types.Action(types.ActionKind.ACTION_DATA, runs.action, thrift_params(runs.params))


# P4Runtime


@dataclass(frozen=True)
class Parameter:
    """A parameter of an action, or a piece of metadata of a controller's packet."""

    id: int
    name: str
    bits: int


@dataclass(frozen=True)
class ActionSchema:
    """An action with its parameters in the order of the program."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]


def read_action(action: Message, types: Message) -> ActionSchema:
    """An action of a P4Info."""
    parameters = tuple(Parameter(each.id, each.name, bits_of(each, types)) for each in action.params)
    return ActionSchema(action.preamble.id, action.preamble.name, parameters)


def read_data(actions: Mapping[int, ActionSchema], action: Message, where: str) -> ActionData:
    """The data of an `Action`; a fault if it is not one of `actions` or its parameters are wrong."""
    schema = actions.get(action.action_id)
    if schema is None:
        known = ", ".join(each.name for each in actions.values())
        raise invalid(f"{where} has no action of the id {action.action_id:#010x}: it has {known}")
    given: dict[int, bytes] = {}
    known_ids = {each.id for each in schema.parameters}
    for param in action.params:
        if param.param_id not in known_ids or param.param_id in given:
            raise invalid(f"action '{schema.name}': parameter {param.param_id} is unknown, or given twice")
        given[param.param_id] = param.value
    missing = next((each.name for each in schema.parameters if each.id not in given), None)
    if missing is not None:
        raise invalid(f"action '{schema.name}': its parameter '{missing}' is missing")
    params = schema.parameters
    return schema.name, tuple(decode(given[each.id], each.bits, f"parameter '{each.name}'") for each in params)


def action_fields(actions: Mapping[int, ActionSchema], data: ActionData) -> Fields:
    """The `Action` message of an action with its parameters; its id is 0 if `actions` do not contain it."""
    name, values = data
    schema = next((each for each in actions.values() if each.name == name), None)
    if schema is None:
        return {"action_id": 0}
    params = zip(schema.parameters, values, strict=True)
    return {"action_id": schema.id, "params": [{"param_id": each.id, "value": encode(value)} for each, value in params]}
