"""Hosts in virtual time hear what the filter of real sockets accepts, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from attacked_network import Filter, passes
from two_jobs import two_jobs

from inakit.experiments.worlds.virtual import host_ports_of
from inakit.topo.virtual.engine import Engine
from inakit.topo.virtual.virtual_network import as_rows
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.faults.attacks import ATTACKS, DISGUISES, Knowledge, forge, on_wire, spoof
from inakit.traffic.sockets.packet_sockets import INA_FILTER, LOAD_LENGTH, RETURN
from inakit.traffic.wire.packet_format import FRAME

pytestmark = pytest.mark.compiler

LINK = 0


def heard(program: Filter, frames: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Which frames a host with this filter hears, as far as they have room in the inbox, and how many it refuses."""
    rows, lengths = as_rows(frames)
    with Engine(1, [1, 1], FRAME) as engine:
        engine.connect(LINK, (0, 0), (1, 0), rate_bps=1e12, delay_ps=0, limit=0)
        engine.set_filter([1], program)
        packed = rows.view(np.dtype((np.void, rows.shape[1])))[:, 0]
        engine.send(np.full(len(frames), LINK, np.uint32), lengths, packed)
        engine.run(10**12)
        found = [each["frame"].tobytes()[: each["length"]] for each in engine.take()]
        return found, int(engine.nodes["refused"][1])


def frames_of_attacks() -> list[bytes]:
    """Frames of every attack, and forged ones in every disguise."""
    problem, plan = two_jobs("goat", fragments=12)
    known = Knowledge(lay_out(problem, plan, host_ports_of(problem.fabric)), "b1", 1, Random(1))
    attacks = [attack(known) for attack in ATTACKS.values() for _ in range(100)]
    return attacks + [disguise(make(known)) for disguise in DISGUISES for make in (spoof, forge) for _ in range(20)]


def test_hosts_hear_what_sockets_hear() -> None:
    frames = frames_of_attacks()
    found, refused = heard(INA_FILTER, frames)
    assert found == [frame for frame in frames if passes(INA_FILTER, frame)]
    assert len(found) > 100
    assert refused == len(frames) - len(found) > 100


def test_a_disguised_packet_and_one_of_any_length_is_not_heard() -> None:
    problem, plan = two_jobs("goat", fragments=12)
    known = Knowledge(lay_out(problem, plan, host_ports_of(problem.fabric)), "outsider", 1, Random(1))
    gradient = on_wire(known.one(known.gradients))
    others = [gradient[:-1], gradient + b"\0", *(disguise(gradient) for disguise in DISGUISES)]
    assert heard(INA_FILTER, [gradient, *others]) == ([gradient], len(others))


def test_an_unknown_instruction_accepts_nothing() -> None:
    frames = [bytes(60)]
    assert heard([(LOAD_LENGTH, 0, 0, 0), (RETURN, 0, 0, 1)], frames) == (frames, 0)
    assert heard([(0xFF, 0, 0, 0), (RETURN, 0, 0, 1)], frames) == ([], 1)
