"""A whole document of BMv2 JSON, as p4c's backend `p4c-bm2-ss` writes it, to a `Program`.

Above each reader of this folder stands the piece of JSON that it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from inakit.switch.program.bmv2_json.arguments import read_expression
from inakit.switch.program.bmv2_json.declarations import (
    Declarations,
    is_direct,
    read_declarations,
    read_direct_counters,
    read_value_sets,
)
from inakit.switch.program.bmv2_json.hash_inputs import read_field_list, read_profiles
from inakit.switch.program.bmv2_json.match_tables import read_pipeline
from inakit.switch.program.bmv2_json.parse_states import read_parser
from inakit.switch.program.bmv2_json.primitives import read_action, read_primitive
from inakit.switch.program.bmv2_json.source_info import Json, listed, read_source
from inakit.switch.program.expressions import Checksum
from inakit.switch.program.expressions import Unknown
from inakit.switch.program.program import Program
from inakit.switch.program.expressions import STANDARD_METADATA
from inakit.topo.errors import InputError

CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)
"""The errors that core.p4 declares, in the order in which BMv2 numbers those that a program does not."""

REQUIRED = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")
"""The metadata without which `simple_switch` takes no program."""


def read_document(document: Json) -> Program:
    """The program in a document, whose values may still have other types than `Program` declares."""
    declared = read_declarations(document)
    actions = {node["id"]: read_action(declared, node) for node in listed(document, "actions")}
    pipelines = {node["name"]: read_pipeline(declared, actions, node) for node in document["pipelines"]}
    check_architecture(document.get("program", "?"), declared.fields.keys(), pipelines.keys())
    direct = {node["name"] for node in listed(document, "meter_arrays") if is_direct(node)}
    deparser = document["deparsers"][0]
    return Program(
        name=document.get("program", "?"),
        headers=declared.headers,
        errors=read_errors(document),
        parser=read_parser(declared, document["parsers"][0]),
        ingress=pipelines["ingress"],
        egress=pipelines["egress"],
        deparser=tuple(deparser["order"]),
        actions=tuple(actions.values()),
        registers=declared.registers,
        counters=declared.counters,
        aliases={name: declared.fields[tuple(target)] for name, target in listed(document, "field_aliases")},
        extras=tuple(read_extras(document)),
        stacks=declared.stacks,
        unions=declared.unions,
        union_stacks=declared.union_stacks,
        direct_counters={each.name: each for each in read_direct_counters(document)},
        meters={name: meter for name, meter in declared.meters.items() if name not in direct},
        direct_meters={name: meter for name, meter in declared.meters.items() if name in direct},
        calculations=declared.calculations,
        checksums=tuple(read_checksum(declared, node) for node in listed(document, "checksums")),
        digests={node["id"]: read_field_list(node, declared.fields) for node in listed(document, "learn_lists")},
        field_lists={node["id"]: read_field_list(node, declared.fields) for node in listed(document, "field_lists")},
        profiles={each.name: each for node in document["pipelines"] for each in read_profiles(node, declared.fields)},
        value_sets={each.name: each for each in read_value_sets(document)},
        externs=declared.externs,
        deparser_statements=tuple(read_primitive(declared, node) for node in listed(deparser, "primitives")),
    )


def check_architecture(program: str, fields: Collection[tuple[str, str]], pipelines: Collection[str]) -> None:
    """Raise `InputError` for a program that lacks what `simple_switch` requires: it is not for v1model."""
    missing = [f"pipeline '{name}'" for name in ("ingress", "egress") if name not in pipelines]
    missing += [f"field '{STANDARD_METADATA}.{name}'" for name in REQUIRED if (STANDARD_METADATA, name) not in fields]
    if missing:
        raise InputError(
            f"program '{program}' has no {missing[0]}: it is not for v1model, the architecture of simple_switch; "
            "compile it for that one"
        )


# {"errors": [["NoError", 0], ["PacketTooShort", 1], ...]}
def read_errors(document: Json) -> dict[str, int]:
    """The numbers of the parser's errors by name. Those of core.p4 that a document lacks come behind its own."""
    errors = dict(listed(document, "errors"))
    for name in CORE_ERRORS:
        errors.setdefault(name, max(errors.values(), default=-1) + 1)
    return errors


# {"target": ["ipv4", "checksum"], "calculation": "calc", "verify": true, "update": false, "if_cond": {...}}
def read_checksum(declared: Declarations, node: Json) -> Checksum:
    """One checksum; documents without `verify` and `update` mean both."""
    return Checksum(
        node["name"],
        declared.fields[tuple(node["target"])],
        declared.calculations[node["calculation"]],
        verify=node.get("verify", True),
        update=node.get("update", True),
        condition=read_expression(declared, node["if_cond"]) if node.get("if_cond") else None,
        source=read_source(node),
    )


def read_extras(document: Json) -> Iterable[Unknown]:
    """What no part of a `Program` holds; p4c writes none of it, but older compilers did."""
    for checksum in listed(document, "checksums"):
        if checksum["type"] != "generic":
            yield Unknown("checksum type", checksum["type"], read_source(checksum))
    for pipeline in document["pipelines"]:
        for call in listed(pipeline, "action_calls"):
            yield Unknown("call of an action outside of a table", call["name"], read_source(call))
    for header_type in document["header_types"]:
        if header_type.get("length_exp"):
            yield Unknown("header with an expression for its length", header_type["name"])
        for name, _, *more in header_type["fields"]:
            if any(more[1:]):
                yield Unknown("saturating field", f"{header_type['name']}.{name}")
