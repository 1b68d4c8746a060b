"""What `p4app.json` of p4-utils says, as it stands in the file, with the keys of all its years."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictStr

from inakit.switch.control.entry_files.part import Flag, Number, Part
from inakit.switch.networks.parts import Address, Amount, Delay, Gateway, Mac, address

AUTOMATIC = "auto"


def address_or_auto(value: Any) -> Any:
    """The text of an IP address, or `auto`, which is one of DHCP."""
    return value if value == AUTOMATIC else address(value)


class HostRecord(Part):
    """What the file says of a host."""

    ip: Annotated[str, BeforeValidator(address_or_auto)] | None = Field(
        None, description="an address such as 10.0.1.1/24, or auto"
    )
    mac: Mac | None = Field(None, description="an address such as 00:00:0a:00:01:01")
    gw: Gateway | None = Field(None, description="an IP address")
    defaultRoute: Gateway | None = Field(None, description="an address such as via 10.0.1.1")  # noqa: N815
    commands: list[StrictStr] | None = Field(None, description="a list of shell commands")


class SwitchRecord(Part):
    """What the file says of a switch."""

    p4_src: StrictStr | None = Field(None, description="the name of a P4 program")
    program: StrictStr | None = Field(None, description="the name of a P4 program")
    cli_input: StrictStr | None = Field(None, description="the name of a file of simple_switch_CLI's commands")
    cpu_port: Flag | None = Field(None, description="true or false")
    priority_queues_num: Number = Field(1, ge=1, description="a whole number, at least 1")
    device_id: Number | None = Field(None, description="a whole number")
    thrift_port: Number | None = Field(None, description="a port number")
    grpc_port: Number | None = Field(None, description="a port number")


class EndRecord(Part):
    """What a link says of the interface at one end."""

    ip: Address | None = Field(None, description="an address such as 10.0.1.1/24")


class LinkRecord(Part):
    """What a link, or the default of all, says. `sw_ip` is an address that a switch's port only seems to have."""

    port1: Number | None = Field(None, description="a port number")
    port2: Number | None = Field(None, description="a port number")
    addr1: Mac | None = Field(None, description="a MAC address")
    addr2: Mac | None = Field(None, description="a MAC address")
    intfName1: StrictStr | None = Field(None, description="the name of an interface")  # noqa: N815
    intfName2: StrictStr | None = Field(None, description="the name of an interface")  # noqa: N815
    params1: EndRecord = Field(EndRecord(), description='an object such as {"ip": "10.0.1.1/24"}')
    params2: EndRecord = Field(EndRecord(), description='an object such as {"ip": "10.0.1.1/24"}')
    sw_ip1: Address | None = Field(None, description="an IP address")
    sw_ip2: Address | None = Field(None, description="an IP address")
    bw: Amount | None = Field(None, description="a number of Mbit/s")
    delay: Delay | None = Field(None, description="a number of milliseconds, or a text such as 5ms")
    loss: Amount | None = Field(None, description="a number of percent")
    max_queue_size: Number | None = Field(None, description="a number of packets")
    queue_length: Number | None = Field(None, description="a number of packets")

    @property
    def options(self) -> tuple[tuple[str, float | str], ...]:
        """The options of Mininet's link."""
        queue = self.queue_length if self.max_queue_size is None else self.max_queue_size
        given = {"bw": self.bw, "delay": self.delay, "loss": self.loss, "max_queue_size": queue}
        return tuple((name, value) for name, value in given.items() if value is not None)


class DefaultRecord(LinkRecord):
    """What holds for all links and hosts."""

    auto_arp_tables: Flag = Field(True, description="true or false")
    auto_gw_arp: Flag = Field(True, description="true or false")


class TopologyRecord(Part):
    """Hosts, switches and links. The keys of `default` stood here themselves until 2020."""

    assignment_strategy: StrictStr | None = Field(None, description="l2, l3, mixed or manual")
    hosts: dict[str, HostRecord] = Field(description="hosts by name")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    routers: dict[str, Any] = Field({}, description="routers by name")
    links: list[list[Any]] = Field(description='a list of links such as ["h1", "s1"] or ["s1", "s2", {"bw": 5}]')
    default: DefaultRecord = Field(DefaultRecord(), description="options of all links")
    auto_arp_tables: Flag | None = Field(None, description="true or false")
    auto_gw_arp: Flag | None = Field(None, description="true or false")
    default_bw: Amount | None = Field(None, description="a number of Mbit/s")
    default_delay: Delay | None = Field(None, description="a number of milliseconds, or a text such as 5ms")
    default_loss: Amount | None = Field(None, description="a number of percent")
    default_queue_length: Number | None = Field(None, description="a number of packets")


class ScriptRecord(Part):
    """A command that is run beside the network."""

    cmd: StrictStr = Field(description="a shell command")
    reboot_run: Any = Field(None, description="true or false")


class P4AppRecord(Part):
    """What the file says."""

    p4_src: StrictStr | None = Field(None, description="the name of a P4 program")
    program: StrictStr | None = Field(None, description="the name of a P4 program")
    cpu_port: Flag | None = Field(None, description="true or false")
    topology: TopologyRecord = Field(description="an object with hosts, switches and links")
    exec_scripts: list[ScriptRecord] | None = Field(None, description="a list of commands, each with its `cmd`")
