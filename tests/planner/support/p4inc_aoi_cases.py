"""Small data centres and jobs for the tests of P4INC-AOI's schedulers."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling, Unit

GIGA = 1e9


def center(
    units: int = 3, ports: int = 2, inc_jobs: int = 1, reconfiguration_s: float = 0.125, servers: int = 8
) -> DataCenter:
    """A data centre with slots of 1 s, ports of 8 Gbit/s, and steps of 2 Gbit/s."""
    return DataCenter(
        tuple(Unit(f"u{number}", servers, ports, 64 * GIGA, inc_jobs) for number in range(units)),
        port_bps=8 * GIGA, reconfiguration_s=reconfiguration_s, slot_s=1.0, step_bps=2 * GIGA,
    )  # fmt: skip


@st.composite
def problems(draw: st.DrawFn, most_jobs: int = 6) -> Scheduling:
    """Problems with jobs over one or two of three or four units, which arrive in the first slots."""
    found = center(
        draw(st.integers(3, 4)), draw(st.integers(2, 3)), draw(st.integers(0, 2)), draw(st.sampled_from((0.0, 0.125)))
    )
    nic_bps = draw(st.sampled_from((None, None, 8 * GIGA, 3 * GIGA)))
    units = tuple(replace(unit, gpus=draw(st.integers(1, 2)), nic_bps=nic_bps) for unit in found.units)
    if draw(st.booleans()):
        units = tuple(replace(unit, leaves=4, spines=2, uplink_bps=3 * GIGA) for unit in units)
    found = replace(found, units=units, inc_across=draw(st.booleans()))
    names = [unit.name for unit in found.units]
    jobs = []
    for number in range(1, draw(st.integers(1, most_jobs)) + 1):
        places = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        jobs.append(
            PlacedJob(
                number, {name: draw(st.integers(1, 4)) for name in places}, draw(st.sampled_from(names)),
                gradient_bytes=draw(st.integers(1, 20)) * 50_000_000,
                update_s=draw(st.sampled_from((0.0, 0.25))), arrival=draw(st.integers(0, 2)),
                iterations=draw(st.sampled_from((1, 1, 3))), compute_s=draw(st.sampled_from((0.0, 0.0, 0.1))),
            )
        )  # fmt: skip
    return Scheduling(found, tuple(jobs))


def small_problem(seed: int) -> Scheduling:
    """One to three jobs on two or three units. With odd seeds servers' links, few servers and switches limit, too.

    With every fourth seed from 3 on units are pods, whose uplinks limit, too.
    """
    draws = Random(seed)
    limited = seed % 2 == 1
    names = [f"u{number}" for number in range(draws.choice((2, 3)))]
    units = tuple(
        Unit(
            name, draws.choice((3, 4, 8)) if limited else 8, draws.choice((1, 2)),
            draws.choice((64, 20)) * GIGA if limited else 64 * GIGA, draws.choice((0, 1)),
            nic_bps=draws.choice((None, 5 * GIGA, 8 * GIGA, 16 * GIGA)) if limited else None,
        )
        for name in names
    )  # fmt: skip
    if seed % 4 == 3:
        units = tuple(
            replace(unit, leaves=unit.servers, spines=seed % 3 + 1, uplink_bps=(2, 5, 8)[seed % 5 % 3] * GIGA)
            for unit in units
        )
    across = draws.random() < 0.6 if limited else True
    jobs = tuple(
        PlacedJob(
            number, {name: draws.randint(1, 2) for name in draws.sample(names, draws.choice((1, 1, 2)))},
            draws.choice(names), draws.choice((125, 250, 500, 875, 1000, 1250, 1625)) * 10**6,
            draws.choice((0.0, 0.25, 2.3)), draws.choice((0, 0, 1)),
        )
        for number in range(1, draws.choice((1, 2, 3)) + 1)
    )  # fmt: skip
    return Scheduling(DataCenter(units, 8 * GIGA, draws.choice((0.0, 0.125, 0.2)), 1.0, 2 * GIGA, across), jobs)
