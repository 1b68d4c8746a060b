"""JSON to actions, and to the primitives that actions, parser states and the deparser consist of."""

from __future__ import annotations

from inakit.switch.program.program import Action, ActionCall, ActionParameter, Primitive
from inakit.switch.program.bmv2_json.arguments import read_argument
from inakit.switch.program.bmv2_json.declarations import Declarations
from inakit.switch.program.bmv2_json.source_info import Json, listed, read_source
from inakit.switch.program.expressions import Expression, HeaderReference, Operation
from inakit.switch.program.expressions import STANDARD_METADATA

Actions = dict[int, Action]
"""The actions of a program by their numbers, by which tables name them."""


COMPUTING = {
    "add": "+",
    "subtract": "-",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
    "add_to_field": "+",
    "subtract_from_field": "-",
}
"""Primitives of P4-14 that give their first argument the result of an operator; of two arguments, the first is one."""

RENAMED = {"modify_field": "assign", "copy_header": "assign_header", "drop": "mark_to_drop"}
"""Primitives that older compilers write, with what they are called now."""


# {"op": "assign", "parameters": [{"type": "field", ...}, ...], "source_info": {...}}
def read_primitive(declared: Declarations, node: Json, action: Json = None) -> Primitive:
    """One statement, inside `action` (its JSON) if any; one of an older compiler as what is written for it now."""
    name, source = node["op"], read_source(node)
    arguments = tuple(read_argument(declared, parameter, action) for parameter in listed(node, "parameters"))
    if name == "drop":
        arguments = (HeaderReference(STANDARD_METADATA), *arguments)
    if name in COMPUTING:
        target, *operands = arguments
        values = tuple(each for each in (operands if len(operands) > 1 else arguments) if isinstance(each, Expression))
        return Primitive("assign", (target, Operation(COMPUTING[name], values)), source)
    return Primitive(RENAMED.get(name, name), arguments, source)


# {"name": "send", "id": 9, "runtime_data": [{"name": "port", "bitwidth": 9}], "primitives": [...]}
def read_action(declared: Declarations, node: Json) -> Action:
    """One action with its parameters and statements."""
    parameters = tuple(ActionParameter(data["name"], data["bitwidth"]) for data in listed(node, "runtime_data"))
    primitives = tuple(
        read_primitive(declared, each, node) for each in listed(node, "primitives") if each["op"] != "no_op"
    )
    return Action(node["id"], node["name"], parameters, primitives)


# {"action_id": 6, "action_data": ["0x1"], ...}
def read_action_call(actions: Actions, node: Json) -> ActionCall:
    """An action with the values of its parameters, as a default action or an entry of the program has it."""
    return ActionCall(actions[node["action_id"]], tuple(int(data, 16) for data in node["action_data"]))
