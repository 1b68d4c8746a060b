"""Figures by packets in virtual time: links have the rates of the papers, which no machine has to carry."""

from __future__ import annotations

from pathlib import Path

import pytest
from tolerance import assert_within

from inakit.experiments.papers.common.figure_registry import Request, find_figure
from inakit.experiments.papers.inart import emulated as inart_emulated
from inakit.experiments.papers.inart.setting import LBMM, MODELS
from inakit.experiments.papers.inart.simulated import FigurePoint
from inakit.experiments.papers.p4inc_aoi import testbed as aoi_testbed
from inakit.experiments.papers.p4inc_aoi.testbed import TESTBED
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import QUEUE_PACKETS

pytestmark = pytest.mark.compiler


def virtual(at: Path) -> Request:
    """A quick request in virtual time."""
    return Request(at, quick=True, switch="virtual")


@pytest.mark.parametrize(("scale", "times"), [(None, 1), (1 / 100, 10), (1, 1000)])
def test_inarts_network_at_any_scale(
    scale: float | None, times: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four PSs take in 20 Mbit/s each at a thousandth, 20 Gbit/s at 1; ten workers who share them send 8 each."""
    monkeypatch.setitem(MODELS, "tiny", 200_000 / times)
    monkeypatch.setattr(inart_emulated, "LEAST_BYTES", 1.0)
    asked = inart_emulated.asked_scale(Request(tmp_path, scale=scale))
    point = FigurePoint("homogeneous", 10, "tiny")
    found = inart_emulated.emulate(inart_emulated.trial(LBMM, point, asked), "virtual", tmp_path)
    assert found["verdict"] == "VALID"
    assert found["exact"] == 1
    assert_within(float(found["sending_rate_bps"]), 0.97 * times * 8e6, 0.02, "sending rate", "bit/s")


def test_the_table_says_which_links_the_packets_had() -> None:
    assert inart_emulated.packets_in_words(1 / 1000).startswith("links of 20 Mbit/s")
    said = inart_emulated.packets_in_words(1)
    assert "links of 20 Gbit/s (heterogeneous: 10 Gbit/s to 30 Gbit/s)" in said
    assert "VGG19 548," in said
    assert said.endswith("divided by 1000")


def test_p4inc_aois_testbed_at_any_scale() -> None:
    runs = [aoi_testbed.Testbed.of(3, 0, scale).emulated_run("INC-TW") for scale in (1 / 5000, 1.0)]
    small, large = (run.problem for run in runs)
    assert [run.queue_packets for run in runs] == [QUEUE_PACKETS, 5000 * QUEUE_PACKETS]
    fastest = {max(problem.fabric.capacities_bps.values()) for problem in (small, large)}
    assert fastest == {TESTBED.port_bps / 5000, TESTBED.port_bps} == {8e6, 40e9}
    sizes = zip(small.jobs, large.jobs, strict=True)
    assert all(own.gradient_bytes / job.gradient_bytes == pytest.approx(1 / 5000, rel=0.01) for own, job in sizes)


def test_a_figure_without_scales_refuses_one(tmp_path: Path) -> None:
    figure = find_figure("goat", "fig6")
    figure.check(Request(tmp_path))
    with pytest.raises(InputError, match=r"--scale 0\.5: the figure 'accuracy over time"):
        figure.check(Request(tmp_path, scale=0.5))
    scaled = find_figure("inart", "fig13-emulated")
    scaled.check(Request(tmp_path, scale=0.5))
    with pytest.raises(InputError, match="--scale 0: it must be greater than 0"):
        scaled.check(Request(tmp_path, scale=0.0))
