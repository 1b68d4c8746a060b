"""Hostile hosts in networks of two jobs, emulated and virtual: sums are exact, and the report names the hosts."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tolerance import not_of_a_busy_machine
from two_jobs import two_jobs

from inakit.experiments.emulate.emulate import Emulation, run
from inakit.experiments.run.faults_file import FaultPlan
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.prepared import Prepared
from inakit.traffic.faults.attacks import Attack, possible_attacks

SHORT = ("goat", "atp", "shadow-copy")
"""The policies of the short form."""
HOSTILE = {"outsider": 1, "stranger": 2, "b1": 1}


@pytest.mark.parametrize(
    ("switch", "policy"),
    [
        *(pytest.param("virtual", policy, marks=pytest.mark.compiler) for policy in SHORT),
        *(
            pytest.param("virtual", policy, marks=[pytest.mark.compiler, pytest.mark.long])
            for policy in POLICIES
            if policy not in SHORT
        ),
        pytest.param("fast", "esa", marks=[pytest.mark.root, pytest.mark.beside]),
        pytest.param("fast", "p4inc-aoi", marks=[pytest.mark.root, pytest.mark.long]),
        pytest.param("bmv2", "atp", marks=[pytest.mark.root, pytest.mark.bmv2]),
    ],
)
def test_attacked_jobs_end_exact_and_the_hosts_are_named(switch: str, policy: str, tmp_path: Path) -> None:
    problem, plan = two_jobs(policy, fragments=20, rate_bps=0.5e6)
    attacks = tuple(Attack(host, job, possible_attacks(problem, host, job), 1e6) for host, job in HOSTILE.items())
    emulation = Emulation(problem, ("by hand",), switch, results=tmp_path, faults=FaultPlan(hostile=attacks))
    said = StringIO()
    record = run(emulation, Console(file=said, width=200), {"by hand": Prepared(problem, plan)})
    entry = record.planners["by hand"]
    assert entry.measured is not None
    assert entry.measured.exact
    assert not_of_a_busy_machine(record.reasons) == []
    away = {found.sender: found for found in entry.turned_away if found.by_host}
    assert set(away) == set(HOSTILE)
    assert min(found.packets for found in away.values()) > 30
    for host, job in HOSTILE.items():
        packets, port = away[host].packets, away[host].port
        line = f"turned away {packets:,} packets from {host} (port {port}): not admitted"
        assert line in said.getvalue()
        assert f"{host} attacks job {job} at 1 Mbit/s" in said.getvalue()
