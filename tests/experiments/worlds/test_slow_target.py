"""On a target as slow as BMv2, links get rates that it carries, and a run that is too slow ends early."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import Answer, inakit, nothing_left

pytest.importorskip("mininet", reason="needs Mininet")

import slow_switch

pytestmark = pytest.mark.root

TRIES = 3
"""How often a run is tried. A busy machine makes a run OVERLOADED, which is no failure of the kit."""
SOONER = "import inakit.experiments.run.pace; inakit.experiments.run.pace.WINDOW_S = 1.5; "
"""Python code that lets a run which clearly falls behind end after fewer seconds, to make the test shorter."""


PROBED_SOONER = (
    "import inakit.experiments.calibrate.rate_probe; inakit.experiments.calibrate.rate_probe.PROBE_S = 0.5; "
)
"""Python code that makes the trials shorter by which rates are found."""


def slow(at: Path, *arguments: str, entry: str = slow_switch.ENTRY) -> tuple[Answer, dict[str, Any]]:
    """A run on a target as slow as BMv2, and its `run.json`."""
    environment = {"PYTHONPATH": slow_switch.PYTHONPATH, "XDG_CACHE_HOME": str(at / "cache")}
    with nothing_left():
        answer = inakit(
            "emulate", "--topo", "aro-figure1", "--planners", "aro", "--results", str(at), *arguments,
            at=at, environment=environment, entry=entry,
        )  # fmt: skip
    assert answer.code in (0, 1), answer
    return answer, json.loads((at / "latest" / "run.json").read_text())


def test_a_slow_target_gets_links_that_it_carries(tmp_path: Path) -> None:
    for _ in range(TRIES):
        answer, run = slow(tmp_path, "--iterations", "1", entry=PROBED_SOONER + slow_switch.ENTRY)
        said = re.search(
            r"^links of (\d+) (k|M)bit/s, which bmv2 carries on this machine; --switch fast carries [\d.]+ [kM]bit/s\n",
            answer.output,
            re.MULTILINE,
        )
        assert said, answer
        assert answer.output.startswith(
            "switch auto selected bmv2, which is installed; --switch fast produces the same"
        )
        if run["verdict"] == "VALID":
            break
    else:
        pytest.skip(f"this machine is too busy for a valid run: {run['reasons'][:3]}")
    rates = {link["capacity"] for link in run["fabric"]["description"]["links"]}
    assert rates == {f"{said[1]}{said[2]}"}
    link_bps = float(said[1]) * {"k": 1e3, "M": 1e6}[said[2]]
    assert link_bps <= 5e6, "20,000 packets/s on all switches together do not carry more"
    assert run["planners"]["aro"]["measured"]["exact"]
    assert run["configuration"]["jobs"][0]["gradient_bytes"] < 548_000


def test_a_run_that_cannot_be_saved_ends_early_with_a_rate_to_try(tmp_path: Path) -> None:
    answer, run = slow(tmp_path, "--capacity", "20M", entry=SOONER + slow_switch.ENTRY)
    entry = run["planners"]["aro"]
    assert (answer.code, entry["verdict"]) == (1, "OVERLOADED")
    assert "measured" not in entry
    assert re.fullmatch(r"ended after \d+ s: it did \d+% of what is planned", entry["reasons"][0])
    tried = re.match(r"try links of ([\d.]+) ([kM])bit/s \(--scale ([\d.]+)\)", entry["reasons"][-1])
    assert tried
    assert float(tried[1]) * {"k": 1e3, "M": 1e6}[tried[2]] <= 10e6
    assert "ended after" in answer.output


def test_who_wants_the_whole_run_gets_it(tmp_path: Path) -> None:
    options = ("--capacity", "20M", "--keep-going", "--gradient-bytes", "40000", "--iterations", "1")
    _, run = slow(tmp_path, *options, entry=SOONER + slow_switch.ENTRY)
    assert run["planners"]["aro"]["measured"]["exact"]
