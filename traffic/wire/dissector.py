"""Writes a Wireshark dissector (Lua) for INA packets, from the headers of the compiled P4 program.

Use it with `python -m inakit.traffic.wire.dissector > ina.lua` and `wireshark -X lua_script:ina.lua`.
"""

from __future__ import annotations

from collections.abc import Iterator

from inakit.traffic.wire.packet_format import TOLD, UDP_PORT, Field, Flag, Kind, header

TEMPLATE = """\
-- Wireshark dissector for in-network aggregation. Generated from the P4 program: do not edit.
local ina = Proto("ina", "In-Network Aggregation")
local kinds = {{ {kinds} }}
local f = {{}}

-- field, offset and size in bytes
local header = {{
{header}
}}
local flags = {{
{flags}
}}
local values = {{
{values}
}}

for _, item in ipairs(header) do f[#f + 1] = item[1] end
for _, flag in ipairs(flags) do f[#f + 1] = flag end
for _, item in ipairs(values) do f[#f + 1] = item[1] end
ina.fields = f

function ina.dissector(buffer, packet, root)
    if buffer:len() < {header_bytes} then return 0 end
    local tree = root:add(ina, buffer())
    for _, item in ipairs(header) do tree:add(item[1], buffer(item[2], item[3])) end
    local bits = tree:add(buffer({flags_offset}, {flags_bytes}), "Flags")
    for _, flag in ipairs(flags) do bits:add(flag, buffer({flags_offset}, {flags_bytes})) end
    if buffer:len() >= {packet_bytes} then
        local numbers = tree:add(buffer({header_bytes}, {packet_bytes} - {header_bytes}), "Values")
        for _, item in ipairs(values) do numbers:add(item[1], buffer(item[2], item[3])) end
    end
    packet.cols.protocol = "INA"
    packet.cols.info = string.format("%s {info_format}",
        kinds[buffer({kind_offset}, 1):uint()] or "unknown kind", {info})
    return buffer:len()
end

DissectorTable.get("udp.port"):add({port}, ina)
"""


def offsets(fields: tuple[Field, ...], start: int = 0) -> dict[str, tuple[int, int]]:
    """Offset and size in bytes of each field, by name; the first field is at `start`."""
    placed = {}
    for field in fields:
        placed[field.name] = (start, field.bits // 8)
        start += field.bits // 8
    return placed


def proto_field(field: Field, sign: str = "uint") -> str:
    """The Lua expression that declares one field."""
    base = "base.HEX" if field.name in ("flags", "bitmap") else "base.DEC"
    names = ", kinds" if field.name == "kind" else ""
    return f'ProtoField.{sign}{field.bits}("ina.{field.name}", "{field.name}", {base}{names})'


def layout(fields: tuple[Field, ...], sign: str, start: int) -> Iterator[str]:
    """One row of a Lua table for each field."""
    for field, (offset, size) in zip(fields, offsets(fields, start).values(), strict=True):
        yield f"    {{ {proto_field(field, sign)}, {offset}, {size} }},"


def flag_rows(bits: int) -> Iterator[str]:
    """One row of a Lua table for each flag of a field of `bits` bits."""
    for flag in Flag:
        name = str(flag.name).lower()
        yield f'    ProtoField.bool("ina.flags.{name}", "{name}", {bits}, nil, {flag.value:#04x}),'


def dissector() -> str:
    ina, values = header("ina_t"), header("values_t")
    place = offsets(ina)
    header_bytes = sum(size for _, size in place.values())
    flags_offset, flags_bytes = place["flags"]
    return TEMPLATE.format(
        kinds=", ".join(f'[{kind.value}] = "{kind.name.lower()}"' for kind in Kind),
        header="\n".join(layout(ina, "uint", 0)),
        flags="\n".join(flag_rows(8 * flags_bytes)),
        values="\n".join(layout(values, "int", header_bytes)),
        header_bytes=header_bytes,
        packet_bytes=header_bytes + sum(field.bits for field in values) // 8,
        flags_offset=flags_offset,
        flags_bytes=flags_bytes,
        kind_offset=place["kind"][0],
        info_format=" ".join(f"{name} %d" for name in TOLD),
        info=", ".join(f"buffer({place[name][0]}, {place[name][1]}):uint()" for name in TOLD),
        port=UDP_PORT,
    )
