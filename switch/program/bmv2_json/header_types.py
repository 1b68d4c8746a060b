"""JSON to headers: instances with the fields of their types, header stacks, header unions."""

from __future__ import annotations

from collections.abc import Iterable

from inakit.switch.program.bmv2_json.source_info import Json
from inakit.switch.program.expressions import Field, Header, Stack, Union, UnionStack


# {"header_types": [{"name": "udp_t", "fields": [["src_port", 16, false], ...]}], "headers": [...]}
def read_headers(document: Json) -> dict[str, Header]:
    """The header instances by name, metadata among them."""
    types = {header_type["name"]: header_type for header_type in document["header_types"]}
    return {header["name"]: read_header(header, types[header["header_type"]]) for header in document["headers"]}


# {"name": "udp", "id": 4, "header_type": "udp_t", "metadata": false}
def read_header(node: Json, header_type: Json) -> Header:
    """One instance, with the fields of its type."""
    fields = tuple(read_fields(node["name"], header_type["fields"]))
    return Header(node["name"], node.get("metadata", False), fields, header_type["name"], header_type.get("max_length"))


# [["version", 4, false], ["options", "*"]]: name, bits or * for a variable length, whether it is signed
def read_fields(header: str, fields: Json) -> Iterable[Field]:
    """The fields of an instance, each with its offset behind those before it."""
    offset = 0
    for name, bits, *signed in fields:
        variable = bits == "*"
        width = 0 if variable else bits
        yield Field(header, name, width, bool(signed and signed[0]), offset, variable)
        offset += width


# {"header_stacks": [{"name": "mpls", "size": 2, "header_ids": [3, 4]}]}
def read_stacks(document: Json) -> dict[str, Stack]:
    """The header stacks by name."""
    names = {header["id"]: header["name"] for header in document["headers"]}
    return {
        stack["name"]: Stack(stack["name"], tuple(names[number] for number in stack["header_ids"]))
        for stack in document.get("header_stacks", [])
    }


# {"header_union_types": [{"name": "U", "headers": [["ipv4", "ipv4_t"]]}], "header_unions": [{"header_ids": [3]}]}
def read_unions(document: Json) -> dict[str, Union]:
    """The header unions by name."""
    names = {header["id"]: header["name"] for header in document["headers"]}
    types = {each["name"]: [name for name, _ in each["headers"]] for each in document.get("header_union_types", [])}
    return {
        union["name"]: Union(
            union["name"],
            dict(zip(types[union["union_type"]], (names[number] for number in union["header_ids"]), strict=True)),
        )
        for union in document.get("header_unions", [])
    }


# {"header_union_stacks": [{"name": "options", "size": 2, "header_union_ids": [0, 1]}]}
def read_union_stacks(document: Json, unions: dict[str, Union]) -> dict[str, UnionStack]:
    """The stacks of header unions by name."""
    named = {union["id"]: unions[union["name"]] for union in document.get("header_unions", [])}
    return {
        stack["name"]: UnionStack(stack["name"], tuple(named[number] for number in stack["header_union_ids"]))
        for stack in document.get("header_union_stacks", [])
    }
