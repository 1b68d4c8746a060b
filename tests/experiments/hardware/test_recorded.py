"""What is recorded of the chip's compiler: that it is of the sources as they are, and how the record is made."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.hardware.fit import SOURCES, print_recorded, provenance, record_logs, recorded, source_sha256
from inakit.topo.errors import InputError
from inakit.topo.files.fabric_records import find_chip

STAGES = [{"stage_number": number, "logical_tables": {"ids": [{}]}} for number in range(2)]
USED = {"rams": {"nRows": 8, "nColumns": 10, "srams": []}, "tcams": {"nRows": 12, "nColumns": 2, "tcams": []}}
ALUS = {"meter_alus": {"nAlus": 4, "meters": []}}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources older than the logs."""
    folder = tmp_path / "ina_hw"
    folder.mkdir()
    for name in ("tna.p4", "slot.p4", "v1model.p4"):
        (folder / name).write_text(f"// {name}\n")
        os.utime(folder / name, (1, 1))
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """What the compiler writes, in short, of a program with 64 values a pass on a Tofino 2."""
    folder = tmp_path / "out"
    (folder / "pipe" / "logs").mkdir(parents=True)
    manifest = {
        "target": "tofino2",
        "compiler_version": "9.13.4",
        "compilation_succeeded": True,
        "programs": [{"program_name": "tna.p4", "source_files": {"defines": ["TOFINO2", "VALUES_PER_PASS=64"]}}],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    mau = {"nStages": 20, "mau_stages": [stage | USED | ALUS for stage in STAGES]}
    resources = {"resources": {"mau": mau, "phv_containers": {"normal": [{"units": 64, "width": 8}]}}}
    (folder / "pipe" / "logs" / "resources.json").write_text(json.dumps(resources))
    (folder / "pipe" / "logs" / "phv.json").write_text(json.dumps({"containers": [{"bit_width": 8}]}))
    return folder


@pytest.mark.parametrize("chip", ["tofino1", "tofino2"])
def test_the_program_fits_with_32_values_a_pass(chip: str) -> None:
    (found,) = (each for each in recorded(chip) if each.values == 32)
    assert found.resources.fits
    assert found.source_sha256 == source_sha256(), "p4/ina_hw has changed: compile it, then `inakit hardware record`"


@pytest.mark.parametrize("chip", ["tofino1", "tofino2"])
def test_the_program_has_the_slots_and_entries_that_plans_are_held_to(chip: str) -> None:
    defined = dict(re.findall(r"#define (\w+) (\d+)", (SOURCES / "tna.p4").read_text()))
    profile = find_chip(chip)
    assert 1 << int(defined["SLOTS_PER_PIPELINE_LOG2"]) == profile.slots_per_pipeline
    assert int(defined["TABLE_SIZE"]) == profile.table_entries
    assert profile.values_per_pass in {each.values for each in recorded(chip)}


def test_a_record_of_logs(sources: Path, logs: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    (written,) = record_logs([logs], record, sources)
    assert recorded("tofino2", record) == (written,)
    assert recorded("tofino1", record) == ()
    assert (written.values, written.resources.stages.used, written.resources.stages.has) == (64, 2, 20)
    assert written.source_sha256 == source_sha256(sources)


def test_logs_that_are_older_than_the_sources_are_not_recorded(sources: Path, logs: Path, tmp_path: Path) -> None:
    os.utime(logs / "manifest.json", (0, 0))
    with pytest.raises(InputError, match=r"older than slot\.p4, tna\.p4 in .*: compile again"):
        record_logs([logs], tmp_path / "record.json", sources)


def test_the_hash_is_of_what_the_chips_compiler_reads(sources: Path) -> None:
    before = source_sha256(sources)
    (sources / "v1model.p4").write_text("// other\n")
    assert source_sha256(sources) == before
    (sources / "slot.p4").write_text("// other\n")
    assert source_sha256(sources) != before


def test_figures_of_older_sources_are_told() -> None:
    (found,) = (each for each in recorded("tofino1") if each.values == 32)
    assert provenance(found).endswith(f"sources {source_sha256(SOURCES)[:12]}")
    assert "THE SOURCES HAVE CHANGED" in provenance(replace(found, source_sha256="0" * 64))


def test_a_chip_of_which_nothing_is_recorded_is_told() -> None:
    console = Console(record=True, width=100)
    print_recorded(console, find_chip("generic"), recorded("generic"))
    assert console.export_text() == "no figures are recorded of ina_hw for generic with 64 values a pass\n"


def test_a_damaged_record_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text('{"compiled": [{"values": 32}]}')
    with pytest.raises(InputError, match=r"not of `inakit hardware record`: KeyError"):
        recorded("tofino1", tmp_path / "record.json")
