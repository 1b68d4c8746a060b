"""A switch in the kernel as another process sees it: for reading, without asking the process that runs it."""

from __future__ import annotations

import mmap
import os
import weakref

import numpy as np

from inakit.switch.fast.layout.layout import GROUPS, ProgramLayout
from inakit.switch.fast.load.kernel.kernel_switch import MEMORY_MAP, KernelTables
from inakit.switch.fast.load.kernel.libbpf import open_map
from inakit.switch.fast.load.state.state_reader import StateReader
from inakit.switch.handle import Handle
from inakit.switch.program.program import Program


class KernelView(StateReader):
    """The state of the switch that gave `handle`, which runs `program`; each call reads it anew."""

    def __init__(self, handle: Handle, program: Program) -> None:
        layout = ProgramLayout(program)
        symbols = {GROUPS: GROUPS} | {name: table.symbol for name, table in layout.tables.items()}
        opened = {name: open_map(number) for name, number in handle["maps"].items()}
        weakref.finalize(self, close_all, list(opened.values()))
        shared = mmap.mmap(opened[MEMORY_MAP], layout.memory_bytes, prot=mmap.PROT_READ)
        maps = {symbols[name]: descriptor for name, descriptor in opened.items() if name != MEMORY_MAP}
        super().__init__(layout, np.frombuffer(shared, np.uint8), KernelTables(maps.__getitem__))


def close_all(descriptors: list[int]) -> None:
    """Close these file descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)
