"""Names of a fabric for the nodes of a graph, whose ids may be any text. No two nodes get the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import count

from inakit.topo.fabric.fabric import LONGEST_NAME, NAME

EXAMPLES = 3
"""So many of the new names are told; the fabric's picture and its YAML file have all."""


class FreshNames:
    """The name of each node, which keeps its id where that is a name, and else has its label, in plain letters.

    `of`: the names by id. `labelled`: the nodes that have their label as name.
    """

    def __init__(self, labels: Mapping[str, object]) -> None:
        """`labels`: by the node's id, its label or None."""
        self.used = {node for node in labels if NAME.fullmatch(node)}
        self.of: dict[str, str] = {}
        self.labelled: list[str] = []
        for place, (node, label) in enumerate(labels.items(), start=1):
            if node in self.used:
                self.of[node] = node
                continue
            by_label = "" if label is None else plain(str(label))
            self.labelled += [node] if by_label else []
            self.of[node] = self.fresh(by_label or plain(node) or f"n{place}")

    def fresh(self, wanted: str) -> str:
        """The wanted name, with a number behind it if it is taken; it is taken now."""
        numbered = (f"{wanted[: LONGEST_NAME - 8]}_{number}" for number in count(2))
        name = wanted if wanted not in self.used else next(name for name in numbered if name not in self.used)
        self.used.add(name)
        return name

    def told(self) -> Iterator[str]:
        """Which nodes have other names than a reader of the file expects."""
        if self.labelled:
            yield f"{len(self.labelled)} nodes are called by their `label`"
        expected = {node: f"n{node}" for node in self.of}
        changed = [
            node for node, name in self.of.items() if name not in (node, expected[node]) and node not in self.labelled
        ]
        if changed:
            examples = ", ".join(f"'{node}' {self.of[node]}" for node in changed[:EXAMPLES])
            more = f" and {len(changed) - EXAMPLES} more" if len(changed) > EXAMPLES else ""
            yield f"names of plain letters: {examples}{more}"


def plain(text: str) -> str:
    """The text in the letters that names have, beginning with one; empty if it has none of them, nor a digit."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    if not re.search(r"[A-Za-z0-9]", letters):
        return ""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", letters)
    return (name if name[0].isalpha() else f"n{name}")[:LONGEST_NAME]
