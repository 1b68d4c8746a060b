"""What was installed is what is read: in the switch's own process, from another one, and on every target."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ina_by_hand import CONTROL, entry, ina_program, small_tree

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.handle import Handle, program_of
from inakit.switch.running_switch import PROGRAM, SwitchView
from inakit.switch.targets import TARGETS, choose_target
from inakit.topo.errors import InputError, RunError
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.live.network import Network

NETWORK_TARGETS = (
    pytest.param("fast", marks=pytest.mark.root),
    pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
)
TABLES = [f"{CONTROL}.{name}" for name in ("pipeline", "admission", "aggregation", "forward", "ipv4_route", "results")]
LARGE = entry("aggregation", (7, 65535, 65535, 65534), "aggregate", 1 << 63, 2**64 - 1, 4095, 1, 65535, 1, 1)
PRESETS = (RegisterPreset(f"{CONTROL}.sum0", 4095, 2**32 - 1), RegisterPreset(f"{CONTROL}.slot_bitmap", 5, 2**62))
OTHER_PROCESS = """
import json, sys
from inakit.switch.handle import program_of
from inakit.switch.targets import TARGETS
handle, tables = json.loads(sys.argv[1]), json.loads(sys.argv[2])
view = TARGETS[handle["target"]].attach(handle, program_of(handle))
print(json.dumps({
    "tables": [[[e.table, e.key, e.action, e.params] for e in view.read_table(name)] for name in tables],
    "groups": [[group.group, group.ports, group.more] for group in view.read_groups()],
    "sum0": view.read_register("InaIngress.sum0").tolist()[4095],
    "bitmap": view.read_register("InaIngress.slot_bitmap").tolist()[5],
    "events": [part.tolist()[:16] for part in view.read_counter("InaIngress.events")],
}))
"""


def everything() -> SwitchEntries:
    """A whole tree, an entry with the largest numbers, and groups from empty to large."""
    tree = small_tree()
    more = MulticastGroup(4, (5, 6), ((0, 6), (2, 1), (2, 5)))
    groups = (*tree.groups, MulticastGroup(65535, tuple(range(100))), MulticastGroup(3, ()), more)
    return SwitchEntries("s", (*tree.tables, LARGE), groups, PRESETS)


def seen(view: SwitchView) -> dict[str, Any]:
    """What `OTHER_PROCESS` prints."""
    tables = [[[e.table, e.key, e.action, e.params] for e in view.read_table(name)] for name in TABLES]
    found = {
        "tables": tables,
        "groups": [[group.group, group.ports, group.more] for group in view.read_groups()],
        "sum0": view.read_register(PRESETS[0].register).tolist()[4095],
        "bitmap": view.read_register(PRESETS[1].register).tolist()[5],
        "events": [part.tolist()[:16] for part in view.read_counter(f"{CONTROL}.events")],
    }
    return dict(json.loads(json.dumps(found)))


def seen_elsewhere(handle: Handle) -> dict[str, Any]:
    """What another process reads, which knows nothing but the handle."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, json.dumps(handle), json.dumps(TABLES)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def check_reading(view: SwitchView) -> None:
    """Check that `view` shows `everything` as it was installed."""
    installed = everything()
    for name in TABLES:
        expected = sorted((e for e in installed.tables if e.table == name), key=lambda e: e.key)
        assert view.read_table(name) == expected
        assert expected
    expected_groups = [replace(g, ports=tuple(sorted(g.ports))) for g in installed.groups]
    assert view.read_groups() == sorted(expected_groups, key=lambda g: g.group)


def test_what_was_installed_is_read_in_the_process() -> None:
    switch = InProcessSwitch(ina_program())
    assert all(switch.read_table(table) == [] for table in TABLES)
    assert switch.read_groups() == []
    switch.install(everything())
    check_reading(switch)
    with pytest.raises(InputError, match=r"unknown table 'InaIngress\.admision': did you mean 'InaIngress\.admission'"):
        switch.read_table(f"{CONTROL}.admision")


@pytest.mark.parametrize("target", NETWORK_TARGETS)
def test_what_was_installed_is_read_here_and_elsewhere(target: str) -> None:
    model = InProcessSwitch(ina_program())
    model.install(everything())
    with Network(named_fabric("aro-figure1"), choose_target(target).node_class()) as network:
        one, other = list(network.switches.values())[:2]
        one.install(everything())
        check_reading(one)
        assert seen_elsewhere(one.handle()) == seen(one) == seen(model)
        assert seen_elsewhere(other.handle())["tables"] == [[] for _ in TABLES]
        handle = json.loads(json.dumps(one.handle()))
    with pytest.raises(RunError, match="ended"):
        for _ in range(500):  # the kernel frees maps a moment after the programs that used them
            TARGETS[target].attach(handle, program_of(handle))
            time.sleep(0.01)


@pytest.mark.root
def test_a_view_is_live_and_cannot_write() -> None:
    with Network(named_fabric("aro-figure1"), choose_target("fast").node_class()) as network:
        switch = next(iter(network.switches.values()))
        view = TARGETS["fast"].attach(switch.handle(), ina_program())
        switch.install(everything())
        check_reading(view)
        with pytest.raises(ValueError, match="read-only"):
            view.column(PRESETS[0].register)[0] = 1  # type: ignore[attr-defined]


def test_another_program_than_the_running_one_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "ina.json"
    program.write_bytes(PROGRAM.read_bytes() + b"\n")
    handle = {"target": "fast", "program": str(program), "sha256": "0" * 64}
    with pytest.raises(InputError, match=r"ina\.json is not the program of the running switch \(sha256 0+"):
        program_of(handle)
    with pytest.raises(InputError, match="start the network again"):
        program_of(handle | {"program": str(tmp_path / "missing.json")})
