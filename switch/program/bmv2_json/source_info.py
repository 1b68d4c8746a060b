"""Nodes of the JSON document, and where in the P4 source each comes from."""

from __future__ import annotations

from typing import Any

from switch.program.source import Source

Json = Any
"""What `json.loads` returns. Above each reader stands the shape that it takes; of others it raises an exception of
`switch.program.malformed.MALFORMED`."""


# {"source_info": {"filename": "ina.p4", "line": 12, "column": 4, "source_fragment": "drop()"}}
def read_source(node: Json) -> Source | None:
    """The line of P4 that a node names; None if it names none."""
    info = node.get("source_info")
    return Source(info["filename"], info["line"], info["source_fragment"]) if info else None
