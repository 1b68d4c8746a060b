"""JSON to actions, and to the primitives that actions, parser states and the deparser consist of."""

from __future__ import annotations

from switch.program.actions import Action, ActionCall, ActionParameter, Primitive
from switch.program.bmv2_json.arguments import read_argument
from switch.program.bmv2_json.declarations import Declarations
from switch.program.bmv2_json.source_info import Json, read_source

Actions = dict[int, Action]
"""The actions of a program by their numbers, by which tables name them."""


# {"op": "assign", "parameters": [{"type": "field", ...}, ...], "source_info": {...}}
def read_primitive(declared: Declarations, node: Json, action: Json = None) -> Primitive:
    """One statement, inside `action` (its JSON) if any."""
    arguments = tuple(read_argument(declared, parameter, action) for parameter in node["parameters"])
    return Primitive(node["op"], arguments, read_source(node))


# {"name": "send", "id": 9, "runtime_data": [{"name": "port", "bitwidth": 9}], "primitives": [...]}
def read_action(declared: Declarations, node: Json) -> Action:
    """One action with its parameters and statements."""
    parameters = tuple(ActionParameter(data["name"], data["bitwidth"]) for data in node["runtime_data"])
    primitives = tuple(read_primitive(declared, primitive, node) for primitive in node["primitives"])
    return Action(node["id"], node["name"], parameters, primitives)


# {"action_id": 6, "action_data": ["0x1"], ...}
def read_action_call(actions: Actions, node: Json) -> ActionCall:
    """An action with the values of its parameters, as a default action or an entry of the program has it."""
    return ActionCall(actions[node["action_id"]], tuple(int(data, 16) for data in node["action_data"]))
