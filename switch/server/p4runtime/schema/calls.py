"""Actions with their parameters: `Action` messages as calls, and back."""

from __future__ import annotations

from collections.abc import Mapping

from inakit.switch.server.p4runtime.protocol.bytestrings import decode, encode
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import DEFAULT_ONLY, TABLE_ONLY, ActionSchema, TableSchema

Call = tuple[str, tuple[int, ...]]
"""The name of an action, and its parameters in the order of the program."""


def read_call(actions: Mapping[int, ActionSchema], action: Message, where: str) -> Call:
    """The call that an `Action` describes; a fault if it is none of `actions`, or its parameters are not right."""
    schema = actions.get(action.action_id)
    if schema is None:
        known = ", ".join(each.name for each in actions.values())
        raise invalid(f"{where} has no action of the id {action.action_id:#010x}: it has {known}")
    params: list[int | None] = [None] * len(schema.parameters)
    for param in action.params:
        position = schema.positions.get(param.param_id)
        if position is None or params[position] is not None:
            raise invalid(f"action '{schema.name}': parameter {param.param_id} is unknown, or given twice")
        parameter = schema.parameters[position]
        params[position] = decode(param.value, parameter.bits, f"parameter '{parameter.name}'")
    given = tuple(value for value in params if value is not None)
    if len(given) < len(params):
        missing = next(
            parameter.name for parameter, value in zip(schema.parameters, params, strict=True) if value is None
        )
        raise invalid(f"action '{schema.name}': its parameter '{missing}' is missing")
    return schema.name, given


def check_scope(table: TableSchema, number: int, default: bool) -> None:
    """Raise a fault if an action is not for entries of the table, or (`default`) not for what it runs on a miss."""
    if table.scopes.get(number) == (TABLE_ONLY if default else DEFAULT_ONLY):
        place = "entries of" if default else "the default of"
        raise Fault(Code.PERMISSION_DENIED, f"action {number:#010x} is only for {place} table '{table.name}'")


def call_message(actions: Mapping[int, ActionSchema], ids: Mapping[str, int], call: Call) -> Message:
    """The `Action` of a call; `ids` are those of the actions by name."""
    name, values = call
    action = v1.Action(action_id=ids.get(name, 0))
    if name in ids:
        for parameter, value in zip(actions[ids[name]].parameters, values, strict=True):
            action.params.add(param_id=parameter.id, value=encode(value))
    return action
