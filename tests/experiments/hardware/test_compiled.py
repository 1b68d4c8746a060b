"""What the chip's compiler says that a program takes, from logs of the form that it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inakit.experiments.hardware.fit import Amount, print_program, read_resources
from inakit.topo.errors import InputError


def stage(number: int, tables: int, stateful: int = 0, counters: int = 0, srams: int = 0, tcams: int = 0) -> Any:
    """A stage of `resources.json` that uses so many of each."""
    ways = ["stateful_ram"] * stateful + ["meter_lpf"] * counters
    return {
        "stage_number": number,
        "logical_tables": {"size": 16, "ids": [{"id": i, "table_name": f"t{i}"} for i in range(tables)]},
        "rams": {"nRows": 8, "nColumns": 10, "srams": [{"row": i % 8, "column": i // 8} for i in range(srams)]},
        "tcams": {"nRows": 12, "nColumns": 2, "tcams": [{"row": i % 12, "column": i // 12} for i in range(tcams)]},
        "meter_alus": {"nAlus": 4, "meters": [{"usages": [{"used_by": "t", "used_for": way}]} for way in ways]},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A compiled program of three stages, the second without tables, on a chip of twelve."""
    stages = [stage(0, 2, srams=9, tcams=13), stage(1, 0), stage(2, 1, stateful=2, counters=1, srams=5), stage(3, 0)]
    manifest = {
        "target": "tofino",
        "compiler_version": "9.13.4 (34b86e9bac)",
        "compilation_succeeded": True,
        "programs": [{"program_name": "tna.p4"}],
    }
    phv = {"normal": [{"units": 64, "width": 8}, {"units": 64, "width": 32}], "tagalong": [{"units": 32, "width": 8}]}
    write(tmp_path / "manifest.json", manifest)
    mau = {"nStages": 12, "mau_stages": stages}
    write(tmp_path / "pipe" / "logs" / "resources.json", {"resources": {"mau": mau, "phv_containers": phv}})
    write(tmp_path / "pipe" / "logs" / "phv.json", {"containers": [{"bit_width": 32}, {"bit_width": 8}]})
    return tmp_path


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def test_what_a_program_takes(folder: Path) -> None:
    found = read_resources(folder)
    assert (found.chip, found.program, found.compiler) == ("tofino1", "tna.p4", "9.13.4 (34b86e9bac)")
    assert found.stages == Amount(3, 12)
    assert found.sram_blocks == Amount(14, 960)
    assert found.tcam_blocks == Amount(13, 288)
    assert found.stateful_alus == Amount(2, 48)
    assert found.phv_bits == Amount(40, 64 * 8 + 64 * 32 + 32 * 8)


def test_a_program_in_p4_14_has_its_logs_beside_the_manifest(folder: Path) -> None:
    found = read_resources(folder)
    (folder / "pipe" / "logs").rename(folder / "logs")
    assert read_resources(folder) == found


def test_what_is_printed(folder: Path) -> None:
    console = Console(record=True, width=100)
    print_program(console, read_resources(folder))
    printed = [line.strip("│ ").replace("│", " ").split() for line in console.export_text().splitlines()]
    assert ["stages", "3", "12", "25.0%"] in printed
    assert ["stateful", "ALUs", "2", "48", "4.2%"] in printed
    assert ["the", "P4", "program", "fits", "tofino1"] in printed


def test_a_program_of_more_stages_than_there_are_does_not_fit(folder: Path) -> None:
    found = read_resources(folder)
    assert found.fits
    assert not replace(found, stages=Amount(13, 12)).fits


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("manifest.json", {"compilation_succeeded": False}, "the compiler failed"),
        ("manifest.json", {"target": "bmv2"}, "compiled for 'bmv2', expected one of tofino, tofino2"),
        ("pipe/logs/resources.json", {"resources": {}}, "not logs of p4c's Tofino backend 9.13: KeyError"),
        ("pipe2/logs/resources.json", {}, "logs of 2 pipelines, expected those of one"),
    ],
)
def test_what_is_not_figures_of_a_program(folder: Path, file: str, changes: dict[str, Any], message: str) -> None:
    path = folder / file
    write(path, (json.loads(path.read_text()) if path.exists() else {}) | changes)
    with pytest.raises(InputError, match=message):
        read_resources(folder)


def test_another_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no manifest\.json in it: give the folder that `p4c-barefoot -o` wrote"):
        read_resources(tmp_path)
