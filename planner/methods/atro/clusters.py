"""The switches of a reconfigurable cluster before it is wired, and the file that describes them.

    name: hall
    hosts: 100G                     # the rate of every host's port
    layers: 5                       # the most switches on a way to a PS
    panel: {ports: 384, reconfiguration: 10ms}
    switches:
      agg: {count: 4, ports: 24, capacity: 100G, pipelines: 2}
      cs: {count: 16, ports: 24, capacity: 100G, ina: false}
      old: {ports: 32, capacity: 25G, chip: tofino1}

A switch with a count stands for agg1, agg2, ... Its other keys are those of a fabric file's switches, without a tier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, StrictStr

from inakit.planner.core.slots import slot_bits
from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Switch
from inakit.topo.files.fabric_records import ChipRecord, PartRecord, chip_of, switch_of
from inakit.topo.files.fabrics import YAML
from inakit.topo.files.quantities import DURATION, RATE, Duration, Rate, Whole
from inakit.topo.files.reader import Record, read_file, validate


@dataclass(frozen=True)
class Device:
    """A switch of a cluster before it is wired: all its ports, in pipelines, and their rate."""

    switch: Switch
    port_bps: float

    @property
    def ports(self) -> int:
        return len(self.switch.ports)

    @property
    def children(self) -> int:
        """The maximum number of flows that a slot sums."""
        return slot_bits(self.switch)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The groups of ports whose flows are summed together; a common switch has one of all its ports."""
        if not self.switch.ina:
            return (Gate(self.switch.name, 0, self.ports),)
        return tuple(Gate(self.switch.name, n, len(ports)) for n, ports in enumerate(self.switch.pipelines))

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for switches that can take each other's place."""
        return replace(self.switch, name="x"), self.port_bps


class Gate(NamedTuple):
    """A pipeline of a switch, through which flows enter it, and its number of ports."""

    switch: str
    pipeline: int
    ports: int


@dataclass(frozen=True)
class Cluster:
    """The switches whose ports, like those of all hosts, are connected to one circuit switch.

    `host_bps` is the rate of every host's port, `layers` the most switches on a way (L), `panel_ports` the ports of the
    circuit switch, two for each link, and `reconfiguration_s` the time in which it changes circuits.
    """

    name: str
    devices: tuple[Device, ...]
    host_bps: float
    layers: int = 5
    panel_ports: int | None = None
    reconfiguration_s: float = 0.0

    @cached_property
    def by_name(self) -> dict[str, Device]:
        return {device.switch.name: device for device in self.devices}

    @cached_property
    def gates(self) -> dict[Gate, Device]:
        return {gate: device for device in self.devices for gate in device.gates}

    @cached_property
    def gate_ports(self) -> dict[Gate, tuple[int, ...]]:
        """The port numbers of each gate."""
        return {
            gate: device.switch.pipelines[gate.pipeline] if device.switch.ina else device.switch.ports
            for gate, device in self.gates.items()
        }

    def link_bps(self, *ends: str) -> float:
        """The capacity of a link between these nodes: the slower end's."""
        return min(self.by_name[end].port_bps if end in self.by_name else self.host_bps for end in ends)


# -- The file.

WHOLE = "a whole number, at least 1"


class DeviceRecord(PartRecord):
    """A switch, or `count` of a kind, in a cluster file."""

    ports: Whole = Field(ge=1, description=WHOLE)
    capacity: Rate = Field(description=RATE)
    count: Whole | None = Field(None, ge=1, description=WHOLE)


class PanelRecord(Record):
    """The circuit switch in a cluster file."""

    ports: Whole | None = Field(None, ge=2, description="a whole number, at least 2")
    reconfiguration: Duration = Field(0.0, description=DURATION)


class ClusterRecord(Record):
    """A cluster file."""

    name: StrictStr = Field(description="a name in letters")
    hosts: Rate = Field(description=RATE)
    switches: dict[str, DeviceRecord] = Field(description="switches by name", min_length=1)
    layers: Whole = Field(5, ge=1, description=WHOLE)
    panel: PanelRecord = Field(PanelRecord(), description="the circuit switch's ports and reconfiguration")
    chips: dict[str, ChipRecord] = Field({}, description="profiles of chips by name")


def load_cluster(path: Path, scale: float = 1.0) -> Cluster:
    """Read a cluster file; all rates are multiplied by `scale`. Raises `FabricError` with file, place and remedy."""
    record = validate(read_file(path, YAML), ClusterRecord)
    try:
        chips = {name: chip_of(name, chip) for name, chip in record.chips.items()}
        devices = []
        for name, each in record.switches.items():
            rates = dict.fromkeys(range(1, each.ports + 1), each.capacity)
            for own in [name] if each.count is None else [f"{name}{n}" for n in range(1, each.count + 1)]:
                switch = switch_of(own, 1, each, rates, chips)
                chip = switch.chip and switch.chip.at_scale(scale)
                rate = switch.aggregation_rate_bps and switch.aggregation_rate_bps * scale
                devices.append(Device(replace(switch, chip=chip, aggregation_rate_bps=rate), each.capacity * scale))
    except FabricError as error:
        raise FabricError(f"{path}: {error}") from error
    panel = record.panel
    return Cluster(record.name, tuple(devices), record.hosts * scale, record.layers, panel.ports, panel.reconfiguration)
