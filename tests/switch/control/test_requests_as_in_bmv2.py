"""The same random requests to a simple_switch and to a control plane: the same answers, handles and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from bmv2_requests import Bmv2Requests, bmv2_requests, sorted_replication
from random_requests import DIRECT, INDIRECT, INGRESS, RandomRequests, Request, asked
from served_program import SERVED

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.requests import RefusalKind
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program

REQUESTS = 1500


def is_miscounted(request: Request) -> bool:
    """Whether BMv2 counts members and groups as used, or as used no longer, also where it refuses the request."""
    return request[0] in ("tables.add", "tables.modify") and len(request) > 2


@pytest.fixture
def bmv2() -> Iterator[Bmv2Requests]:
    with bmv2_requests(SERVED, read_program(SERVED)) as requests:
        yield requests


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.parametrize("seed", range(4))
def test_random_requests_have_the_same_answers(bmv2: Bmv2Requests, seed: int) -> None:
    ours = ControlPlane(InterpretedSwitch(read_program(SERVED)).state)
    requests = RandomRequests(Random(seed))
    for index in range(REQUESTS):
        request = requests.request()
        answered = asked(ours, request)
        if not (is_miscounted(request) and isinstance(answered, RefusalKind)):
            assert answered == asked(bmv2, request), f"request {index}: {request}"
    check_same_state(ours, bmv2)


def check_same_state(ours: ControlPlane, bmv2: Bmv2Requests) -> None:
    """Both must hold the same entries, members, groups and nodes."""
    for table in (INGRESS + name for name in (*DIRECT, *INDIRECT)):
        theirs = [(each.entry_handle % (1 << 32), each.options.priority) for each in bmv2.tables_entries(table)]
        held = [
            (each.handle, -1 if each.entry.priority is None else each.entry.priority)
            for each in ours.tables.entries(table)
        ]
        assert held == theirs, table
    for profile in (INGRESS + name for name in ("members", "groups")):
        assert list(ours.profiles.members(profile)) == [each.mbr_handle for each in bmv2.profiles_members(profile)]
        groups = [(each.grp_handle, list(each.mbr_handles)) for each in bmv2.profiles_groups(profile)]
        assert list(ours.profiles.groups(profile).items()) == groups
    assert sorted_replication(ours.replication.dump()) == sorted_replication(bmv2.replication_dump())
    assert sorted(ours.value_sets.values("ServedParser.known")) == sorted(bmv2.value_sets_values("ServedParser.known"))
