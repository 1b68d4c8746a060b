"""Whether a plan fits chips: what it needs of each limit, and what `inakit hardware fit` says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command import inakit

from inakit.experiments.hardware.fit import ENTRIES, GROUPS, MEMORY, SLOTS, chips_fit
from inakit.experiments.run.planning import write_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.used_limits import CHILDREN, RECIRCULATION
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.files.fabric_records import find_chip


@pytest.fixture(scope="module")
def planned() -> tuple[Problem, Plan]:
    """A plan at 100 Gbit/s for switches without chips."""
    problem = build_problem(FabricChoice("aro-figure1", capacity="100G"), JobChoice(gradient_bytes=8192))
    return problem, METHODS["aro"].plan(problem)


def test_what_a_plan_needs_of_a_chip(planned: tuple[Problem, Plan]) -> None:
    (fit,) = chips_fit(*planned, find_chip("tofino1"))
    needs = {need.kind: need for need in fit.needs}
    assert set(needs) == {SLOTS, CHILDREN, RECIRCULATION, ENTRIES, GROUPS, MEMORY}
    assert (needs[SLOTS].used, needs[SLOTS].limit) == (512, 16384)
    assert (needs[MEMORY].used, needs[MEMORY].limit) == (512 * 64 * 4, 15360 * 1024)
    assert (needs[CHILDREN].used, needs[CHILDREN].where) == (3, "s1, pipeline 0")
    assert needs[RECIRCULATION].used == pytest.approx(300e9)
    assert needs[RECIRCULATION].limit == 100e9
    assert needs[GROUPS].used == 1
    assert not fit.fits


def test_a_plan_that_fits(planned: tuple[Problem, Plan]) -> None:
    (fit,) = chips_fit(*planned, find_chip("tofino2"))
    assert fit.fits
    assert fit.switches == 6


@pytest.mark.parametrize(("changes", "kind"), [({"table_entries": 3}, ENTRIES), ({"children_per_slot": 2}, CHILDREN)])
def test_what_does_not_fit(changes: dict[str, int], kind: str, planned: tuple[Problem, Plan]) -> None:
    (fit,) = chips_fit(*planned, replace(find_chip("tofino2"), **changes))  # type: ignore[arg-type]
    assert [need.kind for need in fit.needs if need.share > 1] == [kind]
    assert not fit.fits


def test_a_fabric_without_chips_needs_one_to_be_named(planned: tuple[Problem, Plan]) -> None:
    with pytest.raises(InputError, match="no switch of fabric 'aro-figure1' names a chip: give one, such as --chip"):
        chips_fit(*planned)


def test_the_command(planned: tuple[Problem, Plan], tmp_path: Path) -> None:
    write_plan(tmp_path, Prepared(*planned))
    fits = inakit("hardware", "fit", str(tmp_path), "--chip", "tofino2", at=tmp_path)
    assert fits.code == 0
    assert "the plan fits tofino2, where a packet of 64 values takes one pass" in fits.output
    assert "recorded, for ina_hw with 32 values a pass, sources" in fits.output
    too_much = inakit("hardware", "fit", str(tmp_path), "--chip", "tofino1", at=tmp_path)
    assert too_much.code == 1
    assert "the plan does not fit tofino1, where a packet of 64 values takes 2 passes" in too_much.output
    not_compiled = inakit(
        "hardware", "fit", str(tmp_path), "--chip", "tofino2", "--compiled", str(tmp_path), at=tmp_path
    )
    assert not_compiled.code not in (0, 1)
    assert "no manifest.json in it" in not_compiled.error
