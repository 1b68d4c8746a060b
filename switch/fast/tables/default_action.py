"""The action that the control plane lets a table run on a miss, instead of the one that the program gives."""

from __future__ import annotations

import numpy as np

from switch.fast.layout.layout import DEFAULTS, ProgramLayout, default_array
from switch.fast.tables.rows import Memory
from switch.fast.tables.two_copies import read_copy, write_other


class SetDefault:
    """The default action of `table`, packed like an entry, in two copies."""

    def __init__(self, layout: ProgramLayout, table: str, memory: Memory) -> None:
        copies = layout.view(memory, default_array(table))
        self.copies = copies.view(np.uint8).reshape(len(copies), -1)
        self.which = layout.view(memory, DEFAULTS)[table]

    def set(self, data: bytes) -> None:
        """Let a miss run what these bytes say."""
        write_other(self.copies, self.which, 0, data)

    def reset(self) -> None:
        """Let a miss run what the program says."""
        self.which[0] = 0

    def read(self) -> bytes | None:
        """What a miss runs, or None if that is what the program says."""
        return read_copy(self.copies, int(self.which[0]))
