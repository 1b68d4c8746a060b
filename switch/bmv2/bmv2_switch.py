"""The Mininet switch that runs the P4 program in BMv2's `simple_switch`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from p4utils.mininetlib.node import P4Switch
from thrift.Thrift import TException

from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port
from inakit.switch.bmv2.thrift_client import Runtime
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handle import Handle, make_handle
from inakit.switch.running_switch import PROGRAM
from inakit.topo.errors import RunError
from inakit.topo.fabric.fabric import Switch
from inakit.topo.live.ledger import Ledger


class Bmv2Switch(P4Switch):  # type: ignore[misc]
    """A `simple_switch` with its own control port.

    Its log is in `run_dir`; without one, the log is removed when the switch stops.
    """

    def __init__(
        self,
        name: str,
        *,
        dpid: str,
        fabric_switch: Switch,
        ledger: Ledger,
        run_dir: Path | None = None,
        program: Path = PROGRAM,
        **params: Any,
    ) -> None:
        super().__init__(name, int(dpid, 16), json_path=str(program), **params)
        self.fabric_switch = fabric_switch
        self.nanomsg = None  # p4-utils would make it leave a socket in /tmp
        self._program = program
        self._ledger = ledger
        self._run_dir = run_dir
        self._scratch: Path | None = None
        self._process: SimpleSwitchProcess | None = None
        self._runtime: Runtime | None = None

    def thrift_listening(self) -> bool:
        """False, so that p4-utils does not wait: the first call to the control plane waits for it."""
        return False

    def start(self, controllers: Any = None) -> None:  # noqa: ARG002
        """Start the process without waiting for it, so that the switches of a network start side by side."""
        self.thrift_port = free_port()
        command = [*map(str, self.add_arguments()), "--log-console", "--log-level", "warn"]
        self._process = SimpleSwitchProcess(
            self.name, command, self.thrift_port, self._log_folder() / f"{self.name}.log"
        )
        self._ledger.record("pid", self._process.pid)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803, Mininet's name
        """End the process and remove its log, unless that is in the run's folder. Also after a failed start."""
        if self._process is not None:
            self._process.stop()
            self._process = self._runtime = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None
        super().stop(deleteIntfs)

    def handle(self) -> Handle:
        """The data by which `inakit.switch.bmv2.thrift_client` finds this switch from another process."""
        return make_handle("bmv2", self._program, pid=self.bmv2_pid, control_port=self._started.control_port)

    def install(self, entries: SwitchEntries) -> None:
        with self._talking() as runtime:
            runtime.install(entries)

    def change(self, entries: Sequence[TableEntry]) -> None:
        with self._talking() as runtime:
            runtime.change(entries)

    def wipe(self) -> None:
        with self._talking() as runtime:
            runtime.wipe()

    def read_table(self, name: str) -> list[TableEntry]:
        with self._talking() as runtime:
            return runtime.read_table(name)

    def read_groups(self) -> list[MulticastGroup]:
        with self._talking() as runtime:
            return runtime.read_groups()

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array; BMv2 reports 64-bit values from 2^63 on as 2^63 - 1."""
        with self._talking() as runtime:
            return runtime.read_register(name)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        with self._talking() as runtime:
            return runtime.read_counter(name, count)

    def check(self) -> None:
        """Raise `RunError`, with the exit status and the end of the log, if the process has ended."""
        self._started.check()

    @property
    def bmv2_pid(self) -> int:
        """The process that is the switch (`pid` is Mininet's shell)."""
        return self._started.pid

    @property
    def _started(self) -> SimpleSwitchProcess:
        if self._process is None:
            raise RunError(f"switch '{self.name}' is not running: start its network first")
        return self._process

    @contextmanager
    def _talking(self) -> Iterator[Runtime]:
        """The control plane; a call that fails because the process ended says so."""
        process = self._started
        try:
            if self._runtime is None:
                process.wait_until_ready()
                self._runtime = Runtime(process.control_port, self._program)
            yield self._runtime
        except (TException, OSError) as error:
            raise process.failure(error) from error

    def _log_folder(self) -> Path:
        if self._run_dir is not None:
            self._run_dir.mkdir(parents=True, exist_ok=True)
            return self._run_dir
        self._scratch = Path(tempfile.mkdtemp(prefix="inakit-"))
        self._ledger.record("path", self._scratch)
        return self._scratch
