"""The same random requests to a simple_switch and to a control plane: the same answers, handles and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from bmv2_requests import Bmv2Requests, bmv2_requests, sorted_replication
from random_requests import DIRECT, INDIRECT, INGRESS, RandomRequests, Request
from served_program import SERVED

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.read import read_program

REQUESTS = 1500

MISCOUNTED = ("add_indirect", "add_indirect_group", "modify_indirect", "modify_indirect_group")
"""BMv2 counts members and groups as used, or as used no longer, also by such requests that it refuses."""


def answer(asked: Any, request: Request) -> Any:
    """What is answered, or the kind of refusal."""
    name, arguments = request
    try:
        return getattr(asked, name)(*arguments)
    except Refused as refused:
        return refused.kind


@pytest.fixture
def bmv2() -> Iterator[Bmv2Requests]:
    with bmv2_requests(SERVED, read_program(SERVED)) as asked:
        yield asked


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.parametrize("seed", range(4))
def test_random_requests_have_the_same_answers(bmv2: Bmv2Requests, seed: int) -> None:
    ours = ControlPlane(InterpretedSwitch(read_program(SERVED)).state)
    requests = RandomRequests(Random(seed))
    for index in range(REQUESTS):
        request = requests.request()
        answered = answer(ours, request)
        if not (request[0] in MISCOUNTED and isinstance(answered, RefusalKind)):
            assert answered == answer(bmv2, request), f"request {index}: {request}"
    check_same_state(ours, bmv2)


def check_same_state(ours: ControlPlane, bmv2: Bmv2Requests) -> None:
    """Both must hold the same entries, members, groups and nodes."""
    for table in (INGRESS + name for name in (*DIRECT, *INDIRECT)):
        theirs = [(each.entry_handle % (1 << 32), each.options.priority) for each in bmv2.entries(table)]
        held = [
            (each.handle, -1 if each.entry.priority is None else each.entry.priority) for each in ours.entries(table)
        ]
        assert held == theirs, table
    for profile in (INGRESS + name for name in ("members", "groups")):
        assert [each.handle for each in ours.members(profile)] == [each.mbr_handle for each in bmv2.members(profile)]
        groups = [(each.grp_handle, tuple(each.mbr_handles)) for each in bmv2.groups(profile)]
        assert [(each.handle, each.members) for each in ours.groups(profile)] == groups
    assert sorted_replication(ours.replication()) == sorted_replication(bmv2.replication())
    assert sorted(ours.values("ServedParser.known")) == sorted(bmv2.values("ServedParser.known"))
