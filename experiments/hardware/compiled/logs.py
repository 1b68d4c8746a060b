"""The logs of p4c's Tofino backend (`p4c-barefoot`, 9.13), as it describes them in `compiler_interfaces/schemas`.

A folder that it wrote has `manifest.json`, and for each pipeline of the program a folder with `logs/resources.json`
and `logs/phv.json`. A program in P4_14 has one pipeline, and its logs are not in a folder of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from inakit.experiments.hardware.compiled.resources import Amount, Resources
from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, read_file

LOG = FileKind("log of the chip's compiler", 256 * 2**20)
CHIPS = {"tofino": "tofino1", "tofino2": "tofino2"}
"""The chip profile of each target of the compiler."""

Document = dict[str, Any]


def read_resources(folder: Path) -> Resources:
    """What a program takes, from the folder that the compiler wrote.

    Raises `InputError` where it is another folder, the compiler failed, or the program has several pipelines.
    """
    manifest = read_manifest(folder)
    pipelines = [path.parent for path in sorted(folder.glob("**/logs/resources.json"))]
    if len(pipelines) != 1:
        raise InputError(f"{folder}: logs of {len(pipelines)} pipelines, expected those of one: **/logs/resources.json")
    try:
        return resources_of(manifest, *(log(pipelines[0] / name) for name in ("resources.json", "phv.json")))
    except (KeyError, TypeError, IndexError) as error:
        raise InputError(f"{folder}: not logs of p4c's Tofino backend 9.13: {error!r} is missing or wrong") from error


def read_manifest(folder: Path) -> Document:
    """What the compiler says of its run. Raises `InputError` where it did not succeed."""
    if not (folder / "manifest.json").is_file():
        raise InputError(f"{folder}: no manifest.json in it: give the folder that `p4c-barefoot -o` wrote")
    manifest = log(folder / "manifest.json")
    if manifest.get("target") not in CHIPS:
        raise InputError(f"{folder}: compiled for {manifest.get('target')!r}, expected one of {', '.join(CHIPS)}")
    if manifest.get("compilation_succeeded") is not True:
        raise InputError(f"{folder}: the compiler failed: the program does not fit, or is not one that it takes")
    return manifest


def log(path: Path) -> Document:
    """A file of the compiler."""
    document = read_file(path, LOG).document
    if not isinstance(document, dict):
        raise InputError(f"{path}: not a {LOG.name}")
    return document


def resources_of(manifest: Document, resources: Document, phv: Document) -> Resources:
    """What three files of the compiler say together."""
    mau, containers = resources["resources"]["mau"], resources["resources"]["phv_containers"]
    stages, count = mau["mau_stages"], mau["nStages"]
    return Resources(
        chip=CHIPS[manifest["target"]],
        program=manifest["programs"][0]["program_name"],
        compiler=manifest["compiler_version"],
        stages=Amount(last_stage(stages), count),
        sram_blocks=blocks([stage["rams"] for stage in stages], "srams", count),
        tcam_blocks=blocks([stage["tcams"] for stage in stages], "tcams", count),
        stateful_alus=stateful_alus([stage["meter_alus"] for stage in stages], count),
        phv_bits=Amount(
            sum(container["bit_width"] for container in phv["containers"]),
            sum(each["units"] * each["width"] for kind in containers.values() for each in kind),
        ),
    )


def last_stage(stages: list[Document]) -> int:
    """The number of stages up to the last one with a table."""
    return max((stage["stage_number"] + 1 for stage in stages if stage["logical_tables"]["ids"]), default=0)


def blocks(stages: list[Document], name: str, count: int) -> Amount:
    """Blocks of memory that are used; every stage has as many rows and columns of them as the first."""
    used = sum(len({(block["row"], block["column"]) for block in stage[name]}) for stage in stages)
    return Amount(used, count * stages[0]["nRows"] * stages[0]["nColumns"])


def stateful_alus(stages: list[Document], count: int) -> Amount:
    """The ALUs that are used for registers; they are those of meters, of which a stage has four."""
    used = sum(is_stateful(alu["usages"]) for stage in stages for alu in stage["meters"])
    return Amount(used, count * stages[0]["nAlus"])


def is_stateful(usages: Iterable[Document]) -> bool:
    """Whether a meter's ALU works on a register."""
    return any(usage["used_for"] == "stateful_ram" for usage in usages)
