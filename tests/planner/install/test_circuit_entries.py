"""A plan's entries follow the circuits: the same keys, other ports, and only where something changed."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install import ina_program
from inakit.planner.install.circuit_entries import CircuitEntries, Rates, Unit
from inakit.planner.install.plan_entries import entries
from inakit.planner.registry import find_method
from inakit.switch.entries import Entries, SwitchEntries, TableEntry
from inakit.topo.errors import PlanError
from inakit.topo.fabric.circuits import Circuit, Interconnect, optical_ports
from inakit.topo.fabric.generators import units
from inakit.topo.fabric.variations import with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

SERVERS = 2
OPTICAL = (3, 4)
FABRIC = units(4, servers=SERVERS)
JOBS = (Job(1, ("u1h1", "u1h2"), ("u3h1",), 2560), Job(2, ("u2h1",), ("u2h2",), 2560))


def problem_and_plan() -> tuple[Problem, Plan]:
    problem = Problem(FABRIC, JOBS, FRAGMENT)
    return problem, find_method("lbmm").plan(problem)


def circuit_entries() -> tuple[CircuitEntries, Interconnect]:
    panel = optical_ports(FABRIC, dict.fromkeys(FABRIC.switch_by_name, len(OPTICAL)), 8e6)
    return CircuitEntries(FABRIC, panel, entries(*problem_and_plan())), panel


def rows(switch: SwitchEntries, table: str) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {entry.exact_key: entry.params for entry in switch.tables if entry.table == f"InaIngress.{table}"}


def sent_by(switch: SwitchEntries, job: int) -> set[int]:
    return {params[0] for key, params in rows(switch, "forward").items() if key[0] == job}


def test_a_unit_admits_at_its_optical_ports_and_sends_by_its_circuits() -> None:
    tables, panel = circuit_entries()
    first = tables.first(panel.between([("u1", "u3"), ("u1", "u3")]))
    assert set(rows(first.of("u1"), "pipeline")) == {(port,) for port in (1, 2, *OPTICAL)}
    assert {key[0] for key in rows(first.of("u3"), "admission")} == set(OPTICAL) | {1}
    assert sent_by(first.of("u1"), 1) == set(OPTICAL), "two workers, two circuits"
    assert sent_by(first.of("u3"), 1) == {1}, "to its own server"
    (group,) = first.of("u3").groups
    assert set(group.ports) < set(OPTICAL)
    assert len(group.ports) == 1, "a copy of each result"


def test_where_circuits_are_parallel_each_label_takes_the_emptiest() -> None:
    jobs = (*(Job(n, (f"u1h{n}",), (f"u3h{n}",), 2560) for n in (1, 2)), Job(3, ("u1h1", "u1h2"), ("u3h1",), 2560))
    problem = Problem(FABRIC, jobs, FRAGMENT)
    panel = optical_ports(FABRIC, dict.fromkeys(FABRIC.switch_by_name, 2), 8e6)
    tables = CircuitEntries(FABRIC, panel, entries(problem, find_method("lbmm").plan(problem)))
    rates: dict[tuple[int, ...], float] = {(1, 1, 1): 2.0, (2, 1, 1): 0.0, (3, 1, 1): 1.0, (3, 1, 2): 1.0}
    first = tables.first(panel.between([("u1", "u3")] * 2), rates).of("u1")
    ports = rows(first, "forward")
    assert ports[3, 1, 1] == ports[3, 1, 2] != ports[1, 1, 1]


def test_without_a_circuit_there_is_but_the_dark() -> None:
    tables, panel = circuit_entries()
    elsewhere = tables.first(panel.between([("u1", "u2")]))
    assert sent_by(elsewhere.of("u1"), 1) == {4}, "the port that is not lit"
    first = tables.first(())
    assert sent_by(first.of("u1"), 1) == {4}
    assert [group.ports for group in first.of("u3").groups] == [()]
    assert sent_by(first.of("u2"), 2) == {2}, "job 2 stays in its unit"


def test_a_change_of_circuits_changes_what_uses_them() -> None:
    tables, panel = circuit_entries()
    before = panel.between([("u1", "u2"), ("u1", "u3")])
    first = tables.first(before)
    assert not list(tables.changes(before))
    after = panel.between([("u1", "u3"), ("u1", "u3")], before)
    changed = {each.switch: each for each in tables.changes(after)}
    assert set(changed) <= {"u1", "u3"}
    assert sent_by(changed["u1"], 1) == {3}, "one of the workers moves to the port that was u2's"
    whole = {(entry.table, entry.key): entry for entry in first.of("u1").tables}
    assert {(entry.table, entry.key) for entry in changed["u1"].tables} <= set(whole), "keys stay"
    again = {each.switch: each for each in tables.changes(before)}
    assert set(again["u1"].tables) <= set(whole.values()), "and back"
    assert not any(each.groups for each in again.values()), "groups are known already"


def test_optical_ports_in_several_pipelines_are_refused() -> None:
    fabric = with_pipelines(FABRIC, 4)
    panel = optical_ports(fabric, {"u1": 2}, 8e6)
    pipelines = tuple(TableEntry(ina_program.PIPELINE, (p,), ina_program.SET_PIPELINE, (p,)) for p in (3, 4, 5))
    tables = CircuitEntries(fabric, panel, Entries((SwitchEntries("u1", pipelines),)))
    with pytest.raises(PlanError, match="optical ports of 'u1' are in several pipelines"):
        tables.first(())


def test_what_stays_as_it_is_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, panel = circuit_entries()
    circuits = panel.between([("u1", "u3")])
    tables.first(panel.between([]), {}, [1])
    asked: list[str] = []
    change = Unit.change

    def counted(
        unit: Unit, circuits: Collection[Circuit], rates: Rates | None, jobs: Collection[int] | None
    ) -> SwitchEntries:
        asked.append(unit.name)
        return change(unit, circuits, rates, jobs)

    monkeypatch.setattr(Unit, "change", counted)
    assert [unit.switch for unit in tables.changes(circuits, {}, [1])]
    assert len(asked) == len(tables.units)
    assert not list(tables.changes(circuits, {}, {1}))
    assert len(asked) == len(tables.units), "slots with the same circuits, rates and jobs are not looked at"
    assert list(tables.changes(panel.between([]), {}, [1]))
