"""JSON to pipelines: match-action tables with the entries that the program gives, and conditionals."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import Action
from inakit.switch.program.bmv2_json.arguments import read_expression, read_field
from inakit.switch.program.bmv2_json.declarations import Declarations
from inakit.switch.program.bmv2_json.hash_inputs import profile_of
from inakit.switch.program.bmv2_json.primitives import Actions, read_action_call
from inakit.switch.program.bmv2_json.source_info import Json, listed, read_source
from inakit.switch.program.expressions import Validity
from inakit.switch.program.program import Conditional, ConstEntry, MatchKey, Node, Pipeline, Table


# {"name": "ingress", "init_table": "t", "tables": [...], "conditionals": [...]}
def read_pipeline(declared: Declarations, actions: Actions, node: Json) -> Pipeline:
    """One pipeline with all of its nodes."""
    nodes: list[Node] = [read_table(declared, actions, table) for table in listed(node, "tables")]
    nodes += [read_conditional(declared, conditional) for conditional in listed(node, "conditionals")]
    return Pipeline(node["name"], node.get("init_table"), {each.name: each for each in nodes})


# {"name": "t", "key": [...], "action_ids": [6, 0], "next_tables": {"__HIT__": "x", "__MISS__": null}, ...}
def read_table(declared: Declarations, all_actions: Actions, node: Json) -> Table:
    """One table, its `next_tables` by hit and miss or by action."""
    actions = tuple(read_actions(all_actions, node))
    following, last = node["next_tables"], node.get("base_default_next")
    default, entries = node.get("default_entry"), node.get("entries")
    return Table(
        name=node["name"],
        key=tuple(read_match_key(declared, part) for part in listed(node, "key")),
        actions=actions,
        default=read_action_call(all_actions, default) if default else None,
        size=node["max_size"] if "max_size" in node else len(entries),
        after={action.number: following.get(action.name, last) for action in actions},
        by_outcome="__HIT__" in following,
        hit=following.get("__HIT__"),
        miss=following.get("__MISS__"),
        source=read_source(node),
        match=node["match_type"],
        entries=None if entries is None else tuple(read_entry(all_actions, each) for each in entries),
        default_is_const=bool(default and default.get("action_entry_const", False)),
        default_action_is_const=bool(default and default.get("action_const", False)),
        base_next=last,
        profile=profile_of(node),
        counted=node.get("with_counters", False),
        meter=node.get("direct_meters"),
        idle_timeout=node.get("support_timeout", False),
    )


# "action_ids": [6, 0]; until 2.6 only "actions": ["send", "drop"]
def read_actions(actions: Actions, table: Json) -> Iterable[Action]:
    """The actions of a table. Only names were written as long as no two actions shared one."""
    if "action_ids" in table:
        return (actions[number] for number in table["action_ids"])
    named = {action.name: action for action in reversed(actions.values())}
    return (named[name] for name in table["actions"])


# {"match_type": "exact", "name": "hdr.ina.job", "target": ["ina", "job"], "mask": "0xff00"}; valid: "target": "ina"
def read_match_key(declared: Declarations, node: Json) -> MatchKey:
    """One part of a table's key."""
    target = node["target"]
    value = Validity(target) if isinstance(target, str) else read_field(declared, target)
    mask = int(node["mask"], 16) if node.get("mask") is not None else None
    name = target if isinstance(target, str) else ".".join(target)
    return MatchKey(node.get("name", name), node["match_type"], value, mask)


# {"match_key": [{"match_type": "exact", "key": "0x01"}], "action_entry": {...}, "priority": 1}
def read_entry(actions: Actions, node: Json) -> ConstEntry:
    """One entry that the program gives."""
    key = tuple(KEY_PARTS[part["match_type"]](part) for part in node["match_key"])
    return ConstEntry(key, read_action_call(actions, node["action_entry"]), node["priority"], read_source(node))


# {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
def read_conditional(declared: Declarations, node: Json) -> Conditional:
    """One condition with the nodes that follow it."""
    condition = read_expression(declared, node["expression"])
    return Conditional(node["name"], condition, node.get("true_next"), node.get("false_next"), read_source(node))


KEY_PARTS: dict[str, Callable[[Json], KeyPart]] = {
    "exact": lambda node: int(node["key"], 16),
    "valid": lambda node: int(node["key"]),
    "lpm": lambda node: Lpm(int(node["key"], 16), node["prefix_length"]),
    "ternary": lambda node: Ternary(int(node["key"], 16), int(node["mask"], 16)),
    "range": lambda node: Range(int(node["start"], 16), int(node["end"], 16)),
}
"""What one part of an entry's key becomes, by its match type."""
