"""How generated C is compiled: to a library for this process, and to an eBPF object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inakit.topo import c_library
from inakit.topo.c_library import Compiler

C_FOLDER = Path(__file__).parents[1] / "c"
"""Where the headers are that the generated C includes."""

LIBRARY = replace(c_library.LIBRARY, headers=C_FOLDER)
EBPF = Compiler(
    ".o",
    ("clang",),
    ("-O2", "-g", "-w", "-target", "bpf", "-mcpu=v3", "-c", "-fno-strict-aliasing"),
    C_FOLDER,
)
