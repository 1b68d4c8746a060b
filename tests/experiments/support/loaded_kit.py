"""What the fork server of commands has loaded before any of them starts: modules, and the P4 program with its C."""

from __future__ import annotations

import gc
import importlib
from contextlib import suppress

from inakit.experiments.cli.known_commands import COMMANDS, Command
from inakit.switch.fast.compile.generate import generate
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.running_switch import PROGRAM

MODULES = (
    "inakit.experiments.cli.app",
    *(row.function.partition(":")[0] for row in COMMANDS.values() if isinstance(row, Command)),
    "inakit.experiments.papers.common.figure_registry",
    "inakit.experiments.run.series_picture",
    "inakit.experiments.worlds.emulated",
    "inakit.experiments.worlds.virtual",
    "networkx",
    "pyroute2",
    "inakit.switch.fast.load.fast_switch",
    "inakit.topo.picture",
)
"""What commands import, also what they import only once they run, draw, read or remove something."""

for name in MODULES:
    with suppress(ImportError):  # Mininet is missing where no networks can be emulated
        importlib.import_module(name)
generate(read_program(PROGRAM))
gc.freeze()  # commands, which are copies of the fork server, need not look through what is loaded here
