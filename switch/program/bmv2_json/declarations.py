"""What a document declares before any statement: headers, registers, counters, meters, calculations, externs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inakit.switch.program.bmv2_json.hash_inputs import Fields, read_calculation
from inakit.switch.program.bmv2_json.header_types import read_headers, read_stacks, read_union_stacks, read_unions
from inakit.switch.program.bmv2_json.source_info import Json, listed, read_source
from inakit.switch.program.expressions import Calculation
from inakit.switch.program.program import Counter, DirectCounter, Extern, Meter, Register, ValueSet
from inakit.switch.program.expressions import Header, Stack, Union, UnionStack


@dataclass(frozen=True)
class Declarations:
    """Declarations by name, in which readers of statements look up what a statement names.

    `meters` holds direct meters too, `counters` only indirect counters.
    """

    headers: dict[str, Header]
    fields: Fields
    stacks: dict[str, Stack]
    unions: dict[str, Union]
    union_stacks: dict[str, UnionStack]
    registers: dict[str, Register]
    counters: dict[str, Counter]
    meters: dict[str, Meter]
    calculations: dict[str, Calculation]
    externs: dict[str, Extern]


def read_declarations(document: Json) -> Declarations:
    """All declarations of a document."""
    headers = read_headers(document)
    fields = {(header.name, each.name): each for header in headers.values() for each in header.fields}
    stacks, unions = read_stacks(document), read_unions(document)
    return Declarations(
        headers=headers,
        fields=fields,
        stacks=stacks,
        unions=unions,
        union_stacks=read_union_stacks(document, unions),
        registers=read_registers(document),
        counters=read_counters(document),
        meters={node["name"]: read_meter(node, fields) for node in listed(document, "meter_arrays")},
        calculations={node["name"]: read_calculation(node, fields) for node in listed(document, "calculations")},
        externs=read_externs(document),
    )


# {"register_arrays": [{"name": "r", "size": 1024, "bitwidth": 32}]}
def read_registers(document: Json) -> dict[str, Register]:
    """The register arrays by name."""
    return {r["name"]: Register(r["name"], r["size"], r["bitwidth"]) for r in listed(document, "register_arrays")}


def is_direct(node: Json) -> bool:
    """Whether the cells of a counter or meter belong to a table's entries."""
    return bool(node.get("is_direct", False))


# {"counter_arrays": [{"name": "c", "size": 16, "is_direct": false}]}
def read_counters(document: Json) -> dict[str, Counter]:
    """The indirect counters by name."""
    return {c["name"]: Counter(c["name"], c["size"]) for c in listed(document, "counter_arrays") if not is_direct(c)}


# {"counter_arrays": [{"name": "c", "is_direct": true, "binding": "t"}]}
def read_direct_counters(document: Json) -> Iterable[DirectCounter]:
    """The counters of tables' entries."""
    for counter in listed(document, "counter_arrays"):
        if is_direct(counter):
            yield DirectCounter(counter["name"], counter["binding"], read_source(counter))


# {"name": "m", "is_direct": false, "rate_count": 2, "type": "bytes", "size": 16, "result_target": [...]}
def read_meter(node: Json, fields: Fields) -> Meter:
    """One meter, direct or not."""
    target = node.get("result_target") if is_direct(node) else None
    result = fields[tuple(target)] if target else None
    of_bytes = node["type"] == "bytes"
    return Meter(node["name"], node["size"], node["rate_count"], of_bytes, result, read_source(node))


# {"extern_instances": [{"name": "e", "id": 0, "type": "my_extern", "attribute_values": [...]}]}
def read_externs(document: Json) -> dict[str, Extern]:
    """The instances of externs that are not v1model's, by name; older compilers write no such list."""
    return {
        each["name"]: Extern(each["name"], each["type"], read_source(each))
        for each in listed(document, "extern_instances")
    }


# {"parse_vsets": [{"name": "pvs", "compressed_bitwidth": 32, "max_size": 4}]}
def read_value_sets(document: Json) -> Iterable[ValueSet]:
    """The parser's value sets."""
    for each in listed(document, "parse_vsets"):
        yield ValueSet(each["name"], each["compressed_bitwidth"], each.get("max_size", 0), read_source(each))
