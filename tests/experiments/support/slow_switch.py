"""A stand-in for BMv2 where it is not installed: the embedded switch, made to take as long for a packet as BMv2 does.

It takes BMv2's place in the registry, so that the code that chooses, probes, judges or ends a run by what a slow target
carries is tested on every machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inakit.switch.fast.compile.generate import EBPF, generate
from inakit.switch.fast.load.fast_switch import FastSwitch
from inakit.switch.fast.load.kernel_switch import Compiled, KernelSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.running_switch import PROGRAM
from inakit.switch.targets import TARGETS, Target, missing_for_fast
from inakit.topo.c_library import build

PACKETS_PER_S = 20_000
"""About as many packets per second as `simple_switch` sums on one processor."""
TURNS, LOOKS = 500, 8
"""The most turns of the waiting loop, and looks at the clock per turn: the kernel limits instructions and jumps."""
SPIN = """
static INLINE int after_a_while(PACKET *packet, u32 port) {{
    u64 end = clock_ns() + {nanoseconds};
    for (int turn = 0; turn < {turns} && clock_ns() < end; turn++) {{
        {looks}
    }}
    return receive(packet, port);
}}
#define receive after_a_while
ENTRY("""

ENTRY = "import slow_switch; slow_switch.register(); from inakit.experiments.cli.main import main; main()"
"""What starts the `inakit` command with this target in BMv2's place."""
PYTHONPATH = f"{Path(__file__).parent}:{Path(__file__).resolve().parents[3]}"


class SlowSwitch(FastSwitch):
    """An embedded switch that waits before each packet: all switches on a processor carry at most `PACKETS_PER_S`."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **params)
        self._path: Path = params.get("program", PROGRAM)

    def start(self, controllers: Any = None) -> None:  # noqa: ARG002
        """Start as the embedded switch does, with the slowed program."""
        self._kernel = KernelSwitch(slowed(self._path), self.name, self._cpu)
        for port in self.fabric_switch.ports:
            if port in self.intfs:
                self._kernel.add_port(port, self.intfs[port].name)


def slowed(path: Path) -> Compiled:
    """The program with a wait before every packet."""
    generated = generate(read_program(path))
    spin = SPIN.format(nanoseconds=10**9 // PACKETS_PER_S, turns=TURNS, looks="clock_ns(); " * LOOKS)
    before, entry, after = generated.source.rpartition("ENTRY(")
    assert entry
    return Compiled(generated, build(before + spin + after, EBPF))


def register() -> None:
    """Register this switch in the place of BMv2."""
    TARGETS["bmv2"] = Target("bmv2", "slow_switch:SlowSwitch", TARGETS["fast"].view, missing_for_fast)
