"""Hostile hosts among two jobs that share slots and switches: sums stay exact, and counters name the hosts.

On real switches in virtual time, for every slot policy.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from attacked_network import AttackedNetwork, exact_by_job, run
from two_jobs import AT, two_jobs

from inakit.planner.core.plan import ROOT_LABEL, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.install.ina_program import ADMISSION, ADMIT
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.topo.errors import RunError
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.faults.attacks import ATTACKS, DISGUISES, Attack, Knowledge, forge, on_wire, possible_attacks, spoof
from inakit.traffic.sockets.packet_sockets import INA_FILTER, JUMP_ANY_BIT
from inakit.traffic.wire.packet_format import FRAME, Event, Kind

pytestmark = pytest.mark.compiler

OUTSIDE = tuple(kind for kind in ATTACKS if kind != "abuse")
ALL_EXACT = {1: True, 2: True}


@pytest.mark.parametrize("policy", POLICIES)
def test_hosts_of_no_job_change_no_sum_and_are_named(policy: str) -> None:
    problem, plan = two_jobs(policy, fragments=12)
    network = AttackedNetwork(problem, plan)
    attacks = [Attack("outsider", 1, OUTSIDE, 10e6), Attack("stranger", 2, OUTSIDE, 10e6)]
    assert exact_by_job(run(network, problem, plan, attacks)) == ALL_EXACT
    assert set(network.rejected()) == {("leaf1", "outsider"), ("spine", "stranger")}
    assert min(network.rejected().values()) > 50
    assert network.refused > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_hosts_of_one_job_change_no_sum_of_another(policy: str) -> None:
    """They may use their own job's labels, and with these every shared slot at the highest priority."""
    problem, plan = two_jobs(policy, fragments=12)
    network = AttackedNetwork(problem, plan)
    attacks = [Attack(host, 1, possible_attacks(problem, host, 1), 10e6) for host in ("b1", "b3", "ps3")]
    assert exact_by_job(run(network, problem, plan, attacks)) == ALL_EXACT
    assert {("leaf1", "b1"), ("leaf2", "b3"), ("spine", "ps3")} <= set(network.rejected())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_worker_that_sends_its_old_packets_again_and_those_of_its_peers(policy: str) -> None:
    problem, plan = two_jobs(policy, fragments=12)
    network = AttackedNetwork(problem, plan)
    layout, random = lay_out(problem, plan, network.hosts), Random(1)
    known = Knowledge(layout, "a1", 1, random)
    (own,) = set(known.own["ina"]["label"].tolist())
    of_peers = [frame for frame in map(spoof, [known] * 800) if label_of(frame) != own]
    again = [on_wire(known.one(known.own)) for _ in of_peers]
    network.attackers["a1"] = [frame for pair in zip(again, of_peers, strict=True) for frame in pair]
    assert exact_by_job(run(network, problem, plan)) == ALL_EXACT
    assert set(network.rejected()) == {("leaf1", "a1")}


def label_of(frame: bytes) -> int:
    return int(np.frombuffer(frame, FRAME)["ina"]["label"][0])


@pytest.mark.parametrize("policy", [name for name, policy in POLICIES.items() if not policy.shared])
def test_where_each_tree_owns_slots_an_attack_does_not_even_take_time(policy: str) -> None:
    """As long as the links have room for it. It is the attacker's own job whose slots it spoils."""
    times = {}
    for attackers in ((), ("b1",)):
        problem, plan = two_jobs(policy, fragments=12)
        network = AttackedNetwork(problem, plan)
        measured = run(network, problem, plan, [Attack(host, 1, tuple(ATTACKS), 10e6) for host in attackers])
        times[attackers] = [measured.of_job(job).communication_time_s for job in (1, 2)]
    assert times["b1",][0] == pytest.approx(times[()][0], rel=0.01)  # a frame on a link before it
    assert times["b1",][1] > times[()][1]


@pytest.mark.parametrize("policy", ["atp", "esa"])
def test_shared_slots_are_fought_for(policy: str) -> None:
    """That the attack above takes slots away from the job shows in what is summed there."""
    summed = {}
    for attackers in ((), ("b1", "b3")):
        problem, plan = two_jobs(policy)
        network = AttackedNetwork(problem, plan)
        run(network, problem, plan, [Attack(host, 1, ("abuse",), 10e6) for host in attackers])
        summed[attackers] = sum(network.events(switch)[Event.COMPLETED] for switch in AT)
    assert summed["b1", "b3"] < summed[()]


@pytest.mark.parametrize("policy", POLICIES)
def test_sums_beyond_32_bits_of_several_jobs(policy: str) -> None:
    problem, plan = two_jobs(policy, fragments=12)
    network = AttackedNetwork(problem, plan)
    widest = RandomGradients(3, 1 << 31)
    attacks = [Attack("outsider", 1, OUTSIDE, 10e6)]
    assert exact_by_job(run(network, problem, plan, attacks, widest)) == ALL_EXACT


def breaks(network: AttackedNetwork, problem: Problem, plan: Plan, attack: Callable[[Knowledge], bytes]) -> bool:
    """Whether this attack on job 1 makes a sum wrong, or keeps a job from its end."""
    known = Knowledge(lay_out(problem, plan, network.hosts), "outsider", 1, Random(1))
    network.attackers["outsider"], network.rate_bps = [attack(known) for _ in range(500)], 20e6
    try:
        return exact_by_job(run(network, problem, plan)) != ALL_EXACT
    except RunError:
        return True


@pytest.mark.parametrize("policy", POLICIES)
def test_without_admission_sums_break(policy: str) -> None:
    problem, plan = two_jobs(policy, fragments=12)
    network = AttackedNetwork(problem, plan)
    tree, port = plan.trees[0].tree, problem.fabric.port_numbers["leaf1", "outsider"]
    packets = [(Kind.RESULT, ROOT_LABEL), *((Kind.GRADIENT, label) for label in tree.branch_of)]
    keys = [(port, int(kind), 1, number, label) for kind, label in packets for number in (1, 2)]
    admitted = tuple(TableEntry(ADMISSION, key, ADMIT) for key in keys)
    network.switches["leaf1"].install(SwitchEntries("leaf1", tables=admitted))
    assert breaks(network, problem, plan, spoof)


def test_a_socket_that_hears_later_fragments_is_deceived() -> None:
    problem, plan = two_jobs("goat", fragments=12)

    def result_as_later_fragment(known: Knowledge) -> bytes:
        return DISGUISES[0](forge(known))

    deaf_to_offsets = [(code, yes, no, 0 if code == JUMP_ANY_BIT else value) for code, yes, no, value in INA_FILTER]
    assert breaks(AttackedNetwork(problem, plan, deaf_to_offsets), problem, plan, result_as_later_fragment)
    assert not breaks(AttackedNetwork(problem, plan), problem, plan, result_as_later_fragment)
