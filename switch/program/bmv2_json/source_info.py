"""Nodes of the JSON document, and where in the P4 source each comes from."""

from __future__ import annotations

from typing import Any

from inakit.switch.program.expressions import Source

Json = Any
"""What `json.loads` returns. Above each reader stands the shape that it takes; of others it raises an exception of
`inakit.switch.program.malformed.MALFORMED`."""


def listed(node: Json, name: str) -> Json:
    """The elements of a list in a node; none where BMv2 takes its absence for an empty one, as older compilers did."""
    return node.get(name) or []


# {"source_info": {"filename": "ina.p4", "line": 12, "column": 4, "source_fragment": "drop()"}}
def read_source(node: Json) -> Source | None:
    """The line of P4 that a node names; None if it names none."""
    info = node.get("source_info")
    return Source(info.get("filename", ""), info.get("line", 0), info.get("source_fragment", "")) if info else None
