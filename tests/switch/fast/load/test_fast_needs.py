"""On a kernel that lacks something, target fast says what it is, and since when Linux has it."""

from __future__ import annotations

import errno
import platform
import re

import pytest
from ina_by_hand import ina_program
from small_programs import PROGRAMS

from inakit.switch.fast.load import kernel_needs, libbpf
from inakit.switch.fast.load import kernel_needs as needs
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.fast.load.libbpf import BpfObject
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.errors import MachineError, RunError


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel refuse every program, after it was really asked."""
    load = BpfObject.load
    monkeypatch.setattr(BpfObject, "load", lambda opened: load(opened) or -errno.EINVAL)


@pytest.mark.root
def test_every_helper_that_programs_call_is_known_and_none_besides() -> None:
    helpers: set[int] = set()
    for program in (ina_program(), *(read_program(PROGRAMS / f"{name}.json") for name in set(OTHERS.values()))):
        switch = KernelSwitch(compile_program(program))
        helpers |= set(libbpf.helpers_of(switch.loaded.handle))
        assert set(libbpf.map_types_of(switch.loaded.handle)) <= set(needs.MAP_TYPES)
        assert needs.lacking(needs.needs_of(switch.loaded.handle)) == []
        switch.close()
    assert helpers == set(needs.HELPERS)


OTHERS = {
    5: "times",
    7: "chances",
    9: "headers",
    26: "headers",
    38: "headers",
}  # helpers that ina.p4 needs not, and who does
ABSENT = [
    ("has_program_type", None, "programs of tc (CONFIG_NET_CLS_BPF, CONFIG_BPF_SYSCALL) (Linux 4.1)"),
    *(("has_helper", number, f"helper {name} (Linux {since})") for number, (name, since) in needs.HELPERS.items()),
    ("has_map_type", 1, "hash maps (Linux 3.19)"),
    ("has_mapped_memory", None, "memory-mapped maps (Linux 5.5)"),
    ("has_batches", None, "batched updates of maps (Linux 5.6)"),
    ("is_recent", None, "global functions, bounded loops and instruction set v3 (Linux 5.6)"),
    ("has_steering", None, "receive packet steering (CONFIG_RPS) (Linux 2.6.35)"),
]


@pytest.mark.root
@pytest.mark.parametrize(("probe", "number", "named"), ABSENT)
def test_a_kernel_that_lacks_something_is_told_what(
    probe: str, number: int | None, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, probe, lambda *asked: bool(asked) and asked[0] != number)
    refuse(monkeypatch)
    program = read_program(PROGRAMS / f"{OTHERS[number]}.json") if number in OTHERS else ina_program()
    with pytest.raises(MachineError, match=rf"has no {re.escape(named)}, which .*SWITCH=bmv2"):
        KernelSwitch(compile_program(program))


@pytest.mark.root
def test_all_that_is_lacking_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "has_helper", lambda number: number not in (13, 43))
    refuse(monkeypatch)
    with pytest.raises(MachineError, match=r"bpf_clone_redirect \(Linux 4\.2\), helper bpf_skb_change_head \(Linux"):
        KernelSwitch(compile_program(ina_program()))


@pytest.mark.root
def test_a_kernel_that_lacks_nothing_and_still_refuses_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch)
    with pytest.raises(RunError, match="the kernel refuses the generated program: Invalid argument"):
        KernelSwitch(compile_program(ina_program()))


@pytest.mark.parametrize(
    ("release", "recent"),
    [("5.4.0-42-generic", False), ("5.15.0-91-generic", True), ("6.1.0-18-amd64", True), ("10.0", True), ("?", False)],
)
def test_the_least_version_is_compared_by_numbers(release: str, recent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    assert kernel_needs.is_recent() is recent
