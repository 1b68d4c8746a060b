"""The tables of lab 5's program: their names, the widths of their keys, and the widths of their actions' parameters."""

from __future__ import annotations

from dataclasses import dataclass

PIPELINES, SLOTS = 2, 64
"""What a switch has: pipelines, and slots in each."""
PIPELINE_OF, ADMITTED, CHILD_OF, UP, DOWN = "pipeline_of", "admitted", "child_of", "up", "down"


@dataclass(frozen=True)
class Table:
    """A table: the fields of its key and of its action, each with its bits."""

    key: dict[str, int]
    action: str
    params: dict[str, int]


TABLES = {
    PIPELINE_OF: Table({"port": 9}, "in_pipeline", {"pipeline": 8}),
    ADMITTED: Table({"port": 9, "kind": 8, "job": 8, "label": 8}, "admit", {}),
    CHILD_OF: Table(
        {"pipeline": 8, "job": 8, "label": 8},
        "aggregate",
        {"bit_of": 8, "full": 8, "as_label": 8, "first": 16, "slots": 16},
    ),
    UP: Table({"job": 8, "label": 8}, "send", {"port": 9}),
    DOWN: Table({"job": 8}, "spread", {"group": 16}),
}
