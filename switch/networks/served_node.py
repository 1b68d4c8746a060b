"""A Mininet node with a served switch: in the kernel if possible, else interpreted in this process."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mininet.node import Node
from mininet.node import Switch as MininetSwitch

from inakit.switch.control.entry_files import fill_switch
from inakit.switch.control.simple_switch_cli import CommandedSwitch, run_command
from inakit.switch.networks.network_plan import PlannedSwitch
from inakit.switch.server.serve import doors, text_of
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import LogOptions, Options
from inakit.topo.errors import RunError


class ServedNode(MininetSwitch):  # type: ignore[misc]
    """A switch of a course's network. It runs `program`; its ports are its interfaces, by number.

    `thrift_port` and `grpc_address` serve clients as simple_switch does.
    """

    def __init__(
        self,
        name: str,
        *,
        planned: PlannedSwitch,
        program: Path,
        number: int,
        notifications: str | None = None,
        thrift_port: int | None = None,
        grpc_address: str | None = None,
        **params: Any,
    ) -> None:
        super().__init__(name, dpid=f"{number:016x}", **params)
        self.planned = planned
        self.options = Options(
            program=program,
            device_id=number if planned.device_id is None else planned.device_id,
            notifications=notifications,
            thrift_port=thrift_port,
            grpc_address=grpc_address,
            cpu_port=planned.cpu_port,
            priority_queues=planned.priority_queues,
            swap=True,
            log=LogOptions(level="warn"),
        )
        self.running: ServedSwitch | None = None
        self.exits = ExitStack()

    @property
    def served(self) -> ServedSwitch:
        """The running switch; `RunError` if it has not been started."""
        if self.running is None:
            raise RunError(f"switch '{self.name}' is not running: start the network first")
        return self.running

    def start(self, controllers: Any = None) -> None:  # noqa: ARG002
        """Run the program on the node's interfaces, and start the servers."""
        served = self.running = ServedSwitch(self.options)
        self.exits.callback(served.close)
        assert self.options.program is not None
        served.load(text_of(self.options.program))
        served.swap()
        for port, interface in self.intfs.items():
            if interface.name != "lo":
                served.ports.add(port, interface.name)
        for door in doors(served):
            door.start()
            self.exits.callback(door.close)

    def fill(self) -> list[str]:
        """Install the entries from the network's file; return a line for each skipped command."""
        skipped: list[str] = []
        for path in (self.planned.commands, self.planned.runtime):
            if path is not None:
                fill_switch(path, self.commanded, skipped.append)
        return skipped

    def run_command(self, line: str) -> str | None:
        """Carry out a command of simple_switch_CLI; return the reason if it is skipped."""
        return run_command(self.commanded, line.split())

    @property
    def commanded(self) -> CommandedSwitch:
        """The running switch in the form that commands of simple_switch_CLI need."""
        return CommandedSwitch(self.served.control, self.served.queues)

    @property
    def runs(self) -> str:
        """A short name of the engine that runs the program."""
        engine = self.served.ports.engine
        return "not at all" if engine is None else engine.what

    def close(self) -> None:
        """End the switch, and release its interfaces."""
        self.exits.close()
        self.running = None

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803, Mininet's name
        """End the switch; works after a failed start too."""
        self.close()
        super().stop(deleteIntfs)


class Bystander(MininetSwitch):  # type: ignore[misc]
    """A node without a function: it holds the open ends of links in the root namespace, for controllers."""

    def start(self, controllers: Any = None) -> None:
        """Do nothing."""


class CourseHost(Node):  # type: ignore[misc]
    """A host with a course's settings: no IPv6, and real checksums in packets."""

    def config(self, **params: Any) -> Any:
        """Configure the host's interfaces."""
        result = super().config(**params)
        self.cmd("sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for interface in self.intfList():
            if interface.name != "lo":
                self.cmd(f"ethtool --offload {interface.name} rx off tx off sg off")
        return result
