"""Switches of target bmv2 in a running network: entries in, values out, and what happens when one dies."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.running_switch import PROGRAM
from inakit.switch.targets import choose_target
from inakit.topo.errors import InputError, MachineError, RunError
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.live.network import Network

pytestmark = [pytest.mark.root, pytest.mark.bmv2]

ENTRIES = SwitchEntries(
    "any",
    tables=(
        TableEntry("InaIngress.pipeline", (1,), "InaIngress.set_pipeline", (3,)),
        TableEntry("InaIngress.aggregation", (3, 1, 1, 7), "InaIngress.aggregate", (1 << 63, 2**64 - 1, 0, 8, 9, 8, 0)),
    ),
    groups=(MulticastGroup(1, (1, 2, 510)), MulticastGroup(2, ()), MulticastGroup(3, (1,), ((0, 1), (2, 7)))),
    registers=(
        RegisterPreset("InaIngress.sum0", 0, 2**32 - 1),
        RegisterPreset("InaIngress.slot_bitmap", 5, 2**62),
    ),
)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    run_dir = tmp_path_factory.mktemp("run")
    with Network(named_fabric("aro-figure1"), choose_target("bmv2").node_class(), run_dir=run_dir) as network:
        yield network


def any_switch(network: Network) -> str:
    return min(network.switches)


def test_entries_and_values_go_in_and_come_out(network: Network) -> None:
    switch = network.switches[any_switch(network)]
    switch.install(ENTRIES)
    sums, bitmaps = (switch.read_register(f"InaIngress.{name}") for name in ("sum0", "slot_bitmap"))
    assert (sums[0], sums[1:].any(), np.flatnonzero(bitmaps).tolist(), bitmaps[5]) == (2**32 - 1, False, [5], 2**62)
    packets, octets = switch.read_counter("InaEgress.sent")
    assert packets.shape == octets.shape == (512,)


def test_a_switch_that_does_not_know_its_services_yet_is_asked_again(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the connection of whoever asks for an unknown service, so that the next question needs a new one."""
    from bmpy_utils import thrift_connect  # noqa: PLC0415, needs p4-utils

    from inakit.switch.bmv2 import thrift_client  # noqa: PLC0415

    known, connected = thrift_client.SERVICES, []

    def asked_too_soon(host: str, port: int, services: Any) -> Any:
        connected.append(port)
        first = len(connected) == 1
        return thrift_connect(host, port, (*known[:2], ("not_yet", known[2][1])) if first else services)

    monkeypatch.setattr(thrift_client, "thrift_connect", asked_too_soon)
    switch: Any = network.switches[any_switch(network)]
    found = thrift_client.Runtime(switch.thrift_port, PROGRAM)
    assert len(connected) == 2
    assert found.switch.get_time_since_epoch_us() > 0


def test_an_entry_that_is_there_already_is_named(network: Network) -> None:
    switch = network.switches[max(network.switches)]
    switch.install(ENTRIES)
    with pytest.raises(InputError, match=r"refuses the entry 'table_add InaIngress\.pipeline .* 1 => 3': DUPLICATE"):
        switch.install(ENTRIES)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (TableEntry("InaIngress.admision", (1,), "InaIngress.admit"), r"did you mean 'InaIngress\.admission'"),
        (TableEntry("InaIngress.forward", (1, 1, 1), "InaIngress.admit"), r"unknown action of table"),
        (TableEntry("InaIngress.forward", (1, 1, 65536), "InaIngress.send", (1,)), r"65536 does not fit .* 16 bits"),
        (TableEntry("InaIngress.forward", (1, 1), "InaIngress.send", (1,)), r"2 given, 3 expected"),
        (TableEntry("InaIngress.forward", (1, 1, 1), "InaIngress.send"), r"0 given, 1 expected"),
    ],
)
def test_an_entry_that_the_program_cannot_take_is_refused(network: Network, entry: TableEntry, message: str) -> None:
    with pytest.raises(InputError, match=message):
        network.switches[any_switch(network)].install(SwitchEntries("any", (entry,)))


def test_a_register_that_does_not_exist_is_named(network: Network) -> None:
    switch = network.switches[any_switch(network)]
    with pytest.raises(InputError, match=r"unknown register 'InaIngress\.sum64'"):
        switch.read_register("InaIngress.sum64")
    with pytest.raises(InputError, match=r"slot_owner' has no element 999999: it has \d+"):
        switch.install(SwitchEntries("any", registers=(RegisterPreset("InaIngress.slot_owner", 999999, 1),)))


def test_death_is_noticed_and_explained_and_nothing_stays(tmp_path: Path) -> None:
    with Network(named_fabric("inart-testbed"), choose_target("bmv2").node_class(), run_dir=tmp_path) as network:
        name = any_switch(network)
        switch = network.switches[name]
        switch.install(ENTRIES)
        switch.check()
        pid = switch.bmv2_pid
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RunError, match=rf"switch '{name}': simple_switch \(pid {pid}\) was killed by signal 9"):
            switch.read_counter("InaIngress.events")
        with pytest.raises(RunError, match="see its log, which ends with:"):
            switch.check()
        others = [other.bmv2_pid for other in network.switches.values()]
    assert not [pid for pid in others if Path(f"/proc/{pid}").exists()]


def test_a_switch_that_cannot_start_says_why(tmp_path: Path) -> None:
    fabric = named_fabric("inart-testbed")
    with Network(fabric, choose_target("bmv2").node_class(), run_dir=tmp_path / "run") as network:
        switch = network.switches[any_switch(network)]
        switch.stop(deleteIntfs=False)
        switch.json_path = str(tmp_path / "missing.json")
        switch.start()
        with pytest.raises(RunError, match=r"ended with exit status 1.*\n(.*\n)*.*missing\.json"):
            switch.install(ENTRIES)


def test_without_simple_switch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match=r"simple_switch is not installed: run `vagrant up`"):
        choose_target("bmv2")


@pytest.mark.parametrize("module", ["thrift", "bm_runtime", "bmpy_utils", "p4utils"])
def test_without_a_python_module_of_bmv2_the_remedy_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else found(name))
    with pytest.raises(MachineError, match=f"the Python module {module} is not installed: run `vagrant up`"):
        choose_target("bmv2")
