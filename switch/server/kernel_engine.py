"""A program that runs in the kernel, on the interfaces themselves."""

from __future__ import annotations

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.fast.load.kernel_switch import Compiled, HostPackets, KernelSwitch
from inakit.switch.fast.load.port_queues import PortQueues
from inakit.switch.server.engines import ToCpu
from inakit.switch.server.packet_sockets import Capture, CpuInterface, PcapFiles, Promiscuous
from inakit.topo.errors import InputError, RunError
from inakit.topo.live.priority import switch_processors


class KernelEngine:
    """Runs a program in the kernel, until `close`. Packets to `cpu_port` go to `to_cpu`.

    The switches of a network are spread over the processors by `turn`.
    """

    def __init__(
        self, compiled: Compiled, turn: int, cpu_port: int | None, to_cpu: ToCpu, pcaps: PcapFiles | None = None
    ) -> None:
        cpus = switch_processors()
        self.what = "compiled, in the kernel"
        self.switch = KernelSwitch(compiled, cpu=cpus[turn % len(cpus)])
        self.data_plane: DataPlane = self.switch.state
        self.promiscuous: dict[int, Promiscuous] = {}
        self.host_packets, self.queues = HostPackets(), PortQueues(self.switch.state.program)
        self.capture = Capture(pcaps) if pcaps is not None else None
        self.cpu_port, self.cpu = cpu_port, None if cpu_port is None else CpuInterface(to_cpu)
        if self.cpu is not None and cpu_port is not None:
            self.switch.add_port(cpu_port, self.cpu.name)
            self.queues.add(cpu_port, self.cpu.name)

    def attach(self, port: int, interface: str) -> None:
        try:
            self.switch.add_port(port, interface)
            self.host_packets.take_in(interface)
            self.queues.add(port, interface)
            self.promiscuous[port] = Promiscuous(interface)
            if self.capture is not None:
                self.capture.add(interface)
        except OSError as error:
            raise InputError(f"interface '{interface}': {error.strerror}; is there one of this name?") from error

    def detach(self, port: int) -> None:
        if port in self.switch.interfaces:
            self.queues.remove(port)
            self.host_packets.leave(self.switch.interfaces[port])
            self.switch.remove_port(port)
            self.promiscuous.pop(port).close()

    def is_up(self, port: int) -> bool:
        """Whether packets of the port's interface go through the program."""
        return port in self.switch.attached and self.switch.attached[port].is_there()

    def inject(self, port: int, packet: bytes) -> None:
        """Inject a packet at the CPU port; the kernel takes none at another."""
        if self.cpu is None or port != self.cpu_port:
            raise RunError(f"packets reach port {port} only by its interface: only the CPU port takes injected packets")
        self.cpu.inject(packet)

    def set_rate(self, packets_per_s: int, port: int | None, priority: int | None) -> None:  # noqa: ARG002
        """Set the rate of queues; each port has one. Raises `UnsupportedError` for other requests."""
        self.queues.set_rate(packets_per_s, port)

    def set_depth(self, packets: int, port: int | None, priority: int | None) -> None:  # noqa: ARG002
        self.queues.set_depth(packets, port)

    def close(self) -> None:
        """Release all interfaces, and remove the program from the kernel."""
        if self.capture is not None:
            self.capture.close()
        self.queues.close()
        self.host_packets.close()
        self.switch.close()
        for each in self.promiscuous.values():
            each.close()
        if self.cpu is not None:
            self.cpu.close()
