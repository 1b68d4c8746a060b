"""The action that the control plane lets a table run on a miss, instead of the one that the program gives."""

from __future__ import annotations

import numpy as np

from inakit.switch.fast.layout.entry_arrays import default_array
from inakit.switch.fast.layout.layout import DEFAULTS, ProgramLayout
from inakit.switch.fast.tables.rows import Memory


class SetDefault:
    """The default action of `table`, packed like an entry, in two copies.

    Packets read copy `which` modulo 2; 0: what the program says.
    """

    def __init__(self, layout: ProgramLayout, table: str, memory: Memory) -> None:
        copies = layout.view(memory, default_array(table))
        self.copies = copies.view(np.uint8).reshape(len(copies), -1)
        self.which = layout.view(memory, DEFAULTS)[table]

    def set(self, data: bytes) -> None:
        """Let a miss run what these bytes say."""
        other = self.which[0] % len(self.copies) + 1
        self.copies[other % len(self.copies)] = np.frombuffer(data, np.uint8)
        self.which[0] = other

    def reset(self) -> None:
        """Let a miss run what the program says."""
        self.which[0] = 0
