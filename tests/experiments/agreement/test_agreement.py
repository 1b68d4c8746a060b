"""The same plans in two worlds: what agrees, what differs and by how much, and what does not count."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import pytest
from command import inakit, nothing_left
from rich.console import Console

from inakit.experiments.bench.agreement import (
    COMBINATIONS,
    FEW,
    NOT_RUN,
    SHORT,
    Combination,
    Compared,
    Differences,
    Extent,
    Summary,
    agreement_table,
    attempt,
    chosen,
    compare,
    difference,
    print_summary,
)
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.pace import TooSlowError
from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld
from inakit.experiments.worlds.world import Wiring
from inakit.planner.registry import METHODS
from inakit.switch.entries import Entries
from inakit.topo.errors import InakitError, InputError, RunError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_scale
from inakit.traffic.measure.monitor import link_bytes
from inakit.traffic.measure.verdict import Verdict

LBMM, ARO = Combination("aro-figure1", "lbmm"), Combination("aro-figure1", "aro")
BRIEF = Extent(iteration_s=0.05)
VIRTUAL = VirtualWorld()


@dataclass(frozen=True)
class SlowLinks(VirtualWorld):
    """Virtual time whose links have nine tenths of the rates that the fabric says."""

    name: str = "slow-links"

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        with super().up(with_scale(fabric, 0.9), installed, wiring, progress) as network:
            yield network


@pytest.mark.compiler
def test_a_world_agrees_with_itself_and_every_link_is_compared() -> None:
    found = compare(LBMM, (VIRTUAL, VIRTUAL), BRIEF)
    assert (found.verdict, found.reasons, found.link_bps) == (Verdict.VALID, (), 20e6)
    assert found.differences is not None
    assert set(found.differences.figures.values()) == set(found.differences.links.values()) == {0.0}
    (first, _) = found.outcomes
    (iteration,) = first.measured.iterations
    carried = link_bytes(first.monitor)
    for worker, sent in iteration.sent_bytes.items():
        ((uplink, amount),) = ((link, amount) for link, amount in carried.items() if link[0] == worker)
        assert amount == sent == carried[uplink[::-1]]  # as many results come back, of the same size


@pytest.mark.compiler
def test_slower_links_are_noticed_in_the_time_and_not_in_the_bytes() -> None:
    found = compare(LBMM, (VIRTUAL, SlowLinks()), BRIEF)
    assert found.verdict == Verdict.DIFFERS
    assert found.counts
    assert found.differences is not None
    assert 0.05 < found.differences.figures["communication_time_s"] < 0.15
    assert found.differences.figures["ps_ingress_bytes"] == 0
    assert any(reason.startswith("communication_time_s +") for reason in found.reasons)


@pytest.mark.compiler
def test_what_a_world_lacks_is_not_run_and_does_not_count() -> None:
    poor = replace(VIRTUAL, name="poor", features=frozenset())
    found = compare(Combination("units-panel", "lbmm", mode="replay"), (VIRTUAL, poor), BRIEF)
    assert found.verdict == NOT_RUN
    assert not found.counts
    assert "has no mode replay and no circuit switches" in found.reasons[0]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(100.0, 101.0, 0.01), (100.0, 99.0, -0.01), (0.0, 0.0, 0.0), (None, None, 0.0), (0, 5, inf), (None, 5, inf)],
)
def test_differences_are_shares_of_the_first_figure(one: float | None, other: float | None, expected: float) -> None:
    assert difference(one, other) == pytest.approx(expected)


def differences(**figures: float) -> Differences:
    """Made-up differences: those named, and a link whose bytes differ by `link`."""
    named = {"sending_rate_bps": 0.0, "communication_time_s": 0.0, "ps_ingress_bytes": 0.0, "aggregation_ratio": 0.0}
    link = figures.pop("link", 0.0)
    return Differences(named | figures, {("a", "b"): 0.0, ("b", "a"): link})


@pytest.mark.parametrize(
    ("name", "within", "beyond"),
    [
        ("sending_rate_bps", 0.019, 0.021),
        ("communication_time_s", -0.029, -0.031),
        ("ps_ingress_bytes", 0.0009, 0.0011),
        ("aggregation_ratio", -0.0009, -0.0011),
        ("link", 0.009, 0.011),
    ],
)
def test_each_figure_has_its_limit(name: str, within: float, beyond: float) -> None:
    assert differences(**{name: within}).beyond == ()
    (reason,) = differences(**{name: beyond}).beyond
    assert f"{beyond:+.2%}" in reason
    assert ("link_bytes of b → a" if name == "link" else name) in reason


def compared(verdict: str, **figures: float) -> Compared:
    return Compared(LBMM, verdict, differences=differences(**figures) if verdict in ("VALID", "DIFFERS") else None)


@pytest.mark.parametrize(
    ("found", "agrees"),
    [
        ([], False),
        ([compared("VALID")], True),
        ([compared("VALID"), compared("OVERLOADED"), compared(NOT_RUN)], True),
        ([compared("OVERLOADED")], False),
        ([compared("VALID"), compared("DIFFERS", sending_rate_bps=0.5)], False),
        ([compared("VALID", sending_rate_bps=0.006)] * (FEW - 1), True),
        ([compared("VALID", sending_rate_bps=0.006)] * FEW, False),
        ([*[compared("VALID", sending_rate_bps=0.006)] * 4, *[compared("VALID")] * (FEW - 4)], True),
    ],
)
def test_all_that_count_must_agree_and_so_must_the_medians(found: list[Compared], agrees: bool) -> None:
    assert Summary.of(found).agrees is agrees


def test_the_table_has_a_row_for_each_and_exceptions_are_named() -> None:
    far = replace(differences(sending_rate_bps=0.5), collisions=(1200, 7))
    off = Compared(LBMM, "DIFFERS", ("sending_rate_bps +50.00%",), differences=far)
    found = [compared("VALID"), off, replace(compared("OVERLOADED"), reasons=("links were full",))]
    console = Console(width=150)
    with console.capture() as capture:
        console.print(agreement_table(found, ("fast", "virtual")))
        print_summary(console, found)
    text = capture.get()
    assert text.count("aro-figure1 lbmm ") == 3
    assert "1 of 2 agree; 1 more have no VALID run to compare with" in text
    assert "aro-figure1 lbmm: DIFFERS: sending_rate_bps +50.00%" in text
    assert "1,200 and 7 packets found their slot taken" in text
    assert "aro-figure1 lbmm: OVERLOADED: links were full" in text


@pytest.mark.parametrize(
    ("error", "real_time", "verdict", "tries"),
    [
        (TooSlowError("ended after 6 s", 0.5), True, Verdict.OVERLOADED, 3),
        (TooSlowError("ended after 6 s", 0.5), False, Verdict.OVERLOADED, 1),
        (RunError("job 1 stalled"), True, Verdict.FAILED, 1),
    ],
)
def test_only_an_overload_in_real_time_is_tried_again(
    error: InakitError, real_time: bool, verdict: Verdict, tries: int
) -> None:
    calls: list[str] = []

    def fails() -> Outcome:
        calls.append("tried")
        raise error

    found = attempt(replace(VIRTUAL, real_time=real_time), 3, fails)
    assert (found.verdict, found.reasons, len(calls)) == (verdict, (str(error),), tries)


def test_combinations_are_many_different_and_of_known_planners() -> None:
    names = [str(each) for each in COMBINATIONS]
    assert len(set(names)) == len(names) >= 50
    assert {each.planner for each in (*COMBINATIONS, *SHORT)} <= METHODS.keys()
    assert chosen("leafspine*forest", short=False) == (Combination("leafspine-8x8", "forest"),)
    with pytest.raises(InputError, match="--only 'fattre4' matches no combination"):
        chosen("fattre4", short=False)


@pytest.mark.compiler
def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    options = ("--switch", "virtual", "--quick", "--only", "lbmm", "--duration", "0.05")
    answer = inakit("agree", *options, at=tmp_path)
    assert answer.code == 0, answer
    assert "1 of 1: aro-figure1 lbmm: VALID (rate +0.00 %, time +0.00 %)" in answer.output
    folder = tmp_path / "results" / "latest"
    written = json.loads((folder / "agreement.json").read_text())
    assert written["worlds"] == ["virtual", "virtual"]
    assert written["summary"]["agrees"]
    (row,) = csv.DictReader((folder / "agreement.csv").read_text().splitlines())
    assert (row["network"], row["planner"], row["verdict"]) == ("aro-figure1", "lbmm", "VALID")
    assert float(row["first_sending_rate_bps"]) == float(row["second_sending_rate_bps"]) > 0
    links = list(csv.DictReader((folder / "links.csv").read_text().splitlines()))
    assert {(each["node"], each["peer"]) for each in links} >= {("w0", "l1"), ("l1", "w0"), ("l0", "ps")}
    assert {float(each["difference"]) for each in links} == {0.0}


@pytest.mark.root
def test_virtual_time_agrees_with_an_emulation(tmp_path: Path) -> None:
    """In 2 s: a slow machine's emulation is up to 30 ms late, which would be more of 0.6 s than times may differ by."""
    with nothing_left():
        answer = inakit("agree", "--quick", "--only", "aro-figure1 aro", "--duration", "2", at=tmp_path)
    written = json.loads((tmp_path / "results" / "latest" / "agreement.json").read_text())
    if not written["summary"]["counted"]:
        pytest.skip(f"this machine is too busy for a valid run: {written['combinations'][0]['reasons'][:3]}")
    differing = [each for each in written["combinations"] if each["verdict"] == "DIFFERS"]
    assert (answer.code, differing) == (0, []), answer.output
