"""Target fast as a node of Mininet: programs are loaded while the links are made, and none is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

pytest.importorskip("mininet", reason="needs Mininet")

from inakit.switch.fast.load import fast_switch, kernel_switch
from inakit.switch.fast.load.kernel_switch import load
from inakit.switch.fast.load.libbpf import BpfObject
from inakit.switch.targets import choose_target
from inakit.topo.errors import MachineError, RunError
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.live.network import Network

pytestmark = pytest.mark.root
FABRIC = named_fabric("inart-testbed")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[BpfObject]:
    """All programs that networks of a test load, in this order."""
    found: list[BpfObject] = []

    def load_and_keep(path: Path) -> BpfObject:
        found.append(load(path))
        return found[-1]

    for module in (fast_switch, kernel_switch):
        monkeypatch.setattr(module, "load", load_and_keep)
    return found


def network() -> Network:
    return Network(FABRIC, choose_target("fast").node_class())


def test_each_switch_has_a_program_of_its_own_and_a_stopped_one_starts_again(loaded: list[BpfObject]) -> None:
    with network() as running:
        first, second, *_ = switches = list(running.switches.values())
        assert [switch.kernel.loaded for switch in switches] == loaded
        first.stop(deleteIntfs=False)
        first.start()
        assert first.kernel.loaded is loaded[-1] is not second.kernel.loaded
        for switch in switches:
            switch.check()
    assert len(loaded) == len(FABRIC.switches) + 1
    assert not any(program.handle for program in loaded)


@pytest.mark.parametrize("waits", [True, False], ids=["all are loaded", "some are not"])
def test_a_network_that_is_not_built_leaves_no_program(
    loaded: list[BpfObject], monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    def no_link(*_: Any) -> NoReturn:
        if waits:
            fast_switch.loading_thread().submit(int).result()
        raise RunError("no link")

    monkeypatch.setattr(Network, "_add_link", no_link)
    with pytest.raises(RunError, match="no link"), network():
        pass
    assert len(loaded) == len(FABRIC.switches) or not waits
    assert not any(program.handle for program in loaded)


def test_what_the_kernel_refuses_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> NoReturn:
        raise MachineError(f"the kernel refuses {path.suffix}")

    monkeypatch.setattr(fast_switch, "load", refused)
    with pytest.raises(MachineError, match=r"the kernel refuses \.o"), network():
        pass
