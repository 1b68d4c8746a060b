"""Runs in which packets are lost and nodes fail: the sums are exact, and no injected fault counts as an overload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import ENTRY, inakit, nothing_left
from tolerance import not_of_a_busy_machine

pytestmark = [pytest.mark.root, pytest.mark.beside]

IMPATIENT = f"""
from functools import partial
import inakit.experiments.run.dilation
inakit.experiments.run.dilation.ReliableOptions = partial(inakit.experiments.run.dilation.ReliableOptions, stall_s=2.0)
{ENTRY}
"""
"""Python code that runs the command, which gives up after 2 s without a result instead of 10 s."""

TARGETS = ("fast", pytest.param("bmv2", marks=pytest.mark.bmv2))


def faulty_run(at: Path, faults: str, *arguments: str) -> dict[str, Any]:
    """What `run.json` says of a run of ARO's figure 1 with these faults. It ends with exact sums and a true verdict."""
    (at / "faults.yml").write_text(f"version: 1\n{faults}")
    with nothing_left():
        answer = inakit(
            "emulate", "--topo", "aro-figure1", "--planners", "aro", "--keep-going",
            "--faults", "faults.yml", *arguments, at=at,
        )  # fmt: skip
    assert answer.code in (0, 1), answer
    run: dict[str, Any] = json.loads((at / "results" / "latest" / "run.json").read_text())
    entry: dict[str, Any] = run["planners"]["aro"]
    assert entry["measured"]["exact"]
    assert not_of_a_busy_machine(entry["reasons"]) == []
    for each in entry["interferences"]:
        assert all(f"aro: {each['kind']}: {line}" in " ".join(answer.output.split()) for line in each["said"])
    return entry | {each["kind"]: each for each in entry["interferences"]}


@pytest.mark.parametrize("switch", TARGETS)
def test_a_tenth_lost_on_every_link_ends_exact(switch: str, tmp_path: Path) -> None:
    entry = faulty_run(
        tmp_path, "links: [{link: all, drop: 10%}]", "--switch", switch, "--capacity", "4M",
        "--gradient-bytes", "2560", "--iterations", "1",
    )  # fmt: skip
    counts = entry["lossy links"]["counts"]
    assert 0.04 < counts["lost_on_arrival"] / counts["received"] < 0.17
    assert counts["lost_on_departure"] > 0
    assert entry["measured"]["retransmissions"] > 0
    assert counts["held"] == counts["overtaken"] == counts["doubled"] == counts["doubled_by_hosts"] == 0


def test_duplicates_and_overtaking_end_exact(tmp_path: Path) -> None:
    entry = faulty_run(
        tmp_path, "links: [{link: all, duplicate: 20%, reorder: 20%}]", "--switch", "fast", "--capacity", "4M",
        "--gradient-bytes", "25600", "--iterations", "1",
    )  # fmt: skip
    counts = entry["lossy links"]["counts"]
    assert min(counts[name] for name in ("held", "overtaken", "doubled", "doubled_by_hosts")) > 0
    assert counts["lost_on_arrival"] == counts["lost_on_departure"] == 0


@pytest.mark.parametrize("switch", TARGETS)
def test_links_switches_and_workers_that_fail_for_a_time(switch: str, tmp_path: Path) -> None:
    faults = """events:
      - {at: 0.1, down: [w0, l1], for: 200ms}
      - {at: 0.6, restart: l1, for: 100ms}
      - {at: {iteration: 1}, pause: w2, for: 300ms}
      - {at: 1000, kill: w1}"""
    entry = faulty_run(
        tmp_path, faults, "--switch", switch, "--capacity", "4M", "--gradient-bytes", "256000", "--iterations", "2"
    )
    happened = entry["failures"]["said"]
    assert [line.rpartition(" at ")[0] for line in happened[:-1]] == [
        "down w0-l1 for 200 ms", "restart l1 for 100 ms", "pause w2 for 300 ms",
    ]  # fmt: skip
    assert entry["failures"]["details"]["not_reached"] == ["kill w1"]
    assert "lossy links" not in entry
    assert entry["measured"]["retransmissions"] > 0


def test_stragglers_and_other_traffic(tmp_path: Path) -> None:
    faults = "stragglers: {spread: 0.3, seed: 2}\nbackground: [{from: w4, to: w0, rate: 1M, frame_bytes: 500}]"
    entry = faulty_run(
        tmp_path, faults, "--switch", "fast", "--capacity", "4M", "--gradient-bytes", "256000", "--iterations", "1"
    )
    shares = entry["slow workers"]["details"]["rate_shares"]
    assert len(set(shares.values())) > 1
    slowest = min(shares.values()) * entry["planned"]["sending_rate_bps"]
    assert entry["measured"]["sending_rate_bps"] < 1.2 * slowest
    received = {name: figures["sent_unicast"] for name, figures in entry["switches"].items()}
    # 250 frames a second for as long as the slowest worker sends
    assert received["l3"] > 250 * entry["measured"]["communication_time_s"] / 2


def test_a_worker_that_is_killed_is_named(tmp_path: Path) -> None:
    (tmp_path / "faults.yml").write_text("version: 1\nevents: [{at: 0, kill: w3}]")
    with nothing_left():
        answer = inakit(
            "emulate", "--topo", "aro-figure1", "--planners", "aro", "--switch", "fast", "--capacity", "4M",
            "--faults", "faults.yml", at=tmp_path, entry=IMPATIENT,
        )  # fmt: skip
    assert answer.code == 2
    said = " ".join(answer.error.split())
    assert "still lacks w3" in said
    assert "Interferences before the error: kill w3 at " in said


def test_faults_with_replay_and_presets_are_refused(tmp_path: Path) -> None:
    (tmp_path / "faults.yml").write_text("version: 1")
    with nothing_left():
        replay = inakit("emulate", "--mode", "replay", "--faults", "faults.yml", at=tmp_path)
        preset = inakit("emulate", "--preset", "inart", "--faults", "faults.yml", at=tmp_path)
    assert (replay.code, preset.code) == (2, 2)
    assert "choose --mode reliable" in replay.error
    assert "--faults faults.yml with --preset inart" in preset.error
