"""What runs the program of a submission: a sandbox, or any target of the kit that runs one switch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inakit.experiments.labs.course.bench import GradedSwitch
from inakit.experiments.labs.course.virtual_switch import VirtualSwitch
from inakit.experiments.labs.grading.finding import Packets
from inakit.experiments.labs.runners.entry_format import with_whole_names
from inakit.experiments.labs.runners.sandboxed_switch import SandboxedSwitch
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.read import read_program
from inakit.switch.standalone.devices import Device, open_device
from inakit.topo.errors import UnsupportedError

SANDBOX, VIRTUAL = "sandbox", "virtual"


def refuse_target(lab: str, target: str) -> None:
    """Raise `UnsupportedError` for another target than the sandbox, in a lab without P4."""
    if target != SANDBOX:
        raise UnsupportedError(f"--target {target}: {lab} has no P4; leave the option out")


@contextmanager
def open_switch(target: str, text: str, name: str, ports: Iterable[int] = range(1, 128)) -> Iterator[GradedSwitch]:
    """A switch that runs the BMv2 JSON `text`: in a sandbox, in virtual time, or on a target of
    `inakit.switch.standalone`.

    A target on interfaces has these ports; `simple_switch` takes seconds for a hundred.
    """
    if target == SANDBOX:
        sandboxed = SandboxedSwitch(text, name)
        try:
            yield sandboxed
        finally:
            sandboxed.close()
        return
    with tempfile.TemporaryDirectory(prefix="inakit-lab-") as folder:
        path = Path(folder, f"{name}.json")
        path.write_text(text)
        device = VirtualSwitch(path) if target == VIRTUAL else DeviceSwitch(target, path, ports)
        try:
            yield device
        finally:
            device.close()


class DeviceSwitch:
    """A switch of a target, which is not confined. It starts anew by being made again."""

    def __init__(self, target: str, path: Path, ports: Iterable[int]) -> None:
        self.target, self.path, self.stack, self.ports = target, path, ExitStack(), tuple(ports)
        self.program = read_program(path)
        self.device: Device | None = None

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        self.stack.close()
        self.device = self.stack.enter_context(open_device(self.target, self.path, self.ports))

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        self.running.install(with_whole_names(self.program, entries))

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        return self.running.inject(port, packet)

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        packets, octets = self.running.read_counter(whole_name("counter", name, self.program.counters))
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def close(self) -> None:
        """End the switch."""
        self.stack.close()

    @property
    def running(self) -> Device:
        """The switch."""
        assert self.device is not None
        return self.device
