"""The Mininet switch whose ports run the P4 program in the kernel."""

from __future__ import annotations

from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Any

from mininet.node import Switch as MininetSwitch

from inakit.switch.fast.load.kernel_switch import Compiled, KernelSwitch, compile_program, load
from inakit.switch.fast.load.libbpf import BpfObject
from inakit.switch.fast.load.shared_state import CompiledSwitch, SwitchState
from inakit.switch.handle import Handle, make_handle
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.running_switch import PROGRAM
from inakit.topo.c_library import lasting_thread
from inakit.topo.errors import RunError
from inakit.topo.fabric.fabric import Switch

loading_thread = lasting_thread("loading")
"""Loads programs into the kernel, whose verifier checks each load anew (60 ms for `ina.p4`).

Mininet makes the links meanwhile, on another processor.
"""


@lru_cache(maxsize=4)
def compiled_file(path: Path, _changed_ns: int) -> Compiled:
    """The program in a file, compiled once for all switches until the file changes."""
    return compile_program(read_program(path))


class FastSwitch(CompiledSwitch, MininetSwitch):  # type: ignore[misc]
    """A `KernelSwitch` as a Mininet node: its ports are the node's interfaces, with the fabric's numbers."""

    def __init__(
        self, name: str, *, fabric_switch: Switch, program: Path = PROGRAM, cpu: int | None = None, **params: Any
    ) -> None:
        own = {key: value for key, value in params.items() if key not in ("ledger", "run_dir")}
        super().__init__(name, **own)
        self.fabric_switch = fabric_switch
        self._program = program
        self._cpu = cpu
        self._kernel: KernelSwitch | None = None
        self._compiled = compiled_file(program, program.stat().st_mtime_ns)
        self._loading: Future[BpfObject] | None = loading_thread().submit(load, self._compiled.path)

    def start(self, controllers: Any = None) -> None:  # noqa: ARG002
        """Wait until the program is loaded, then attach it to the port of every link."""
        loaded = self._loading.result() if self._loading else None
        self._kernel, self._loading = KernelSwitch(self._compiled, self.name, self._cpu, loaded), None
        for port in self.fabric_switch.ports:
            if port in self.intfs:
                self._kernel.add_port(port, self.intfs[port].name)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803, Mininet's name
        """Remove the program from the kernel. Also works before a start and after a failed one."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        if self._loading and not self._loading.cancel() and not self._loading.exception():
            self._loading.result().close()
        self._loading = None
        super().stop(deleteIntfs)

    @property
    def kernel(self) -> KernelSwitch:
        """The running switch; `RunError` if it has not been started."""
        if self._kernel is None:
            raise RunError(f"switch '{self.name}' is not running: start the network first")
        return self._kernel

    @property
    def state(self) -> SwitchState:  # type: ignore[override]
        """The state of the running switch; `RunError` if it has not been started."""
        return self.kernel.state

    def handle(self) -> Handle:
        """The data by which `inakit.switch.fast.load.kernel_switch` finds this switch from another process."""
        return make_handle("fast", self._program, maps=self.kernel.map_ids(), cpu=self.kernel.cpu)

    def check(self) -> None:
        self.kernel.check()
