"""JSON to what is hashed, reported or kept: calculations, field lists, selectors of action profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inakit.switch.program.bmv2_json.source_info import Json, listed, read_source
from inakit.switch.program.expressions import Calculation, FieldList, HashInput, Payload, SizedNumber
from inakit.switch.program.expressions import HeaderReference
from inakit.switch.program.program import ActionProfile
from inakit.switch.program.expressions import Field

Fields = dict[tuple[str, str], Field]
"""All fields of a program, by the names of header and field."""

INPUTS: dict[str, Callable[[Json, Fields], HashInput]] = {
    "field": lambda node, fields: fields[tuple(node["value"])],
    "hexstr": lambda node, _fields: SizedNumber(int(node["value"], 16), node["bitwidth"]),
    "header": lambda node, _fields: HeaderReference(node["value"]),
    "payload": lambda _node, _fields: Payload(),
}
"""What one part of an input becomes, by its type."""


# [{"type": "field", "value": ["ipv4", "ttl"]}, {"type": "hexstr", "value": "0x00", "bitwidth": 8}]
def read_inputs(nodes: Json, fields: Fields) -> tuple[HashInput, ...]:
    """The parts of what is hashed or listed, in order."""
    return tuple(INPUTS[node["type"]](node, fields) for node in nodes)


# {"name": "calc", "algo": "csum16", "input": [{"type": "field", ...}, {"type": "payload", "value": null}]}
def read_calculation(node: Json, fields: Fields) -> Calculation:
    """One calculation."""
    return Calculation(node["name"], node["algo"], read_inputs(node["input"], fields), read_source(node))


# {"id": 1, "name": "digest_t", "elements": [{"type": "field", ...}, {"type": "hexstr", ..., "bitwidth": 8}]}
def read_field_list(node: Json, fields: Fields) -> FieldList:
    """One list of fields; parts that are neither fields nor numbers are left out."""
    listed = tuple(each for each in read_inputs(node["elements"], fields) if isinstance(each, Field | SizedNumber))
    return FieldList(node["id"], node["name"], listed, read_source(node))


# {"action_profiles": [{"name": "ap", "max_size": 16, "selector": {"algo": "crc16", "input": [...]}}]}
# before: {"tables": [{"name": "t", "act_prof_name": "ap", "max_size": 16, "selector": {...}}]}
def read_profiles(pipeline: Json, fields: Fields) -> Iterable[ActionProfile]:
    """The action profiles of a pipeline, which older compilers write with the tables that use them."""
    for node in listed(pipeline, "action_profiles"):
        yield ActionProfile(node["name"], node["max_size"] or 0, read_selector(node, fields))
    for table in listed(pipeline, "tables"):
        if "action_profile" not in table and "act_prof_name" in table:
            yield ActionProfile(table["act_prof_name"], table["max_size"], read_selector(table, fields))


def profile_of(table: Json) -> str | None:
    """The name of a table's action profile; None for a table without one."""
    found: str | None = table.get("action_profile", table.get("act_prof_name"))
    return found


def read_selector(profile: Json, fields: Fields) -> Calculation | None:
    """The calculation that chooses among the members of a profile's group; None for a profile without a selector."""
    chosen = profile.get("selector")
    if chosen is None:
        return None
    return Calculation(profile["name"], chosen["algo"], read_inputs(chosen["input"], fields), read_source(profile))
