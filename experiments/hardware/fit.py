"""Whether a plan fits the chips of its switches: slots, children, recirculation, table entries, groups, memory.

The chip's compiler decides whether the P4 program fits them; its figures are shown if there are any. They are read
from the logs of p4c's Tofino backend (`p4c-barefoot`, 9.13), as it describes them in `compiler_interfaces/schemas`: its
output folder has `manifest.json`, and for each pipeline of the program a folder with `logs/resources.json` and
`logs/phv.json`; a program in P4_14 has one pipeline, whose logs have no folder of their own. The figures of `p4/ina_hw`
are recorded in `p4/build/ina_hw.resources.json`, with the hash of the compiled sources, so that figures of older
sources are recognised.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from inakit.experiments.run.console import figures, names
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.files import load_jobs, load_plan
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.used_limits import RECIRCULATION, UsedLimit, used_bitmaps, used_summing
from inakit.planner.install.ina_program import BUILD, INA_HW
from inakit.planner.install.plan_entries import entries
from inakit.switch.entries import SwitchEntries
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import VALUES_PER_PACKET, Chip
from inakit.topo.fabric.variations import with_chip_as_wired
from inakit.topo.files.fabrics import load_fabric
from inakit.topo.files.reader import FileKind, read_file
from inakit.traffic.wire.packet_format import FRAGMENT


@dataclass(frozen=True)
class Amount:
    """The amount of a resource that a program uses, and the amount that a pipeline has."""

    used: int
    has: int


@dataclass(frozen=True)
class Resources:
    """The resources of a pipeline that a program uses, reported by `compiler` for the chip `chip` (a profile's name).

    `stages` counts up to the last one with a table. `stateful_alus` are the units that read, modify and write
    registers. `phv_bits` are those of the containers that hold any field.
    """

    chip: str
    program: str
    compiler: str
    stages: Amount
    sram_blocks: Amount
    tcam_blocks: Amount
    stateful_alus: Amount
    phv_bits: Amount

    @property
    def amounts(self) -> dict[str, Amount]:
        return {
            "stages": self.stages,
            "SRAM blocks": self.sram_blocks,
            "TCAM blocks": self.tcam_blocks,
            "stateful ALUs": self.stateful_alus,
            "PHV bits": self.phv_bits,
        }

    @property
    def fits(self) -> bool:
        """Whether the pipeline has enough of every resource: the compiler can report more stages than there are."""
        return all(each.used <= each.has for each in self.amounts.values())


LOG = FileKind("log of the chip's compiler", 256 * 2**20)
CHIPS = {"tofino": "tofino1", "tofino2": "tofino2"}
"""The chip profile of each target of the compiler."""

Document = dict[str, Any]


def read_resources(folder: Path) -> Resources:
    """Read the resources that a program uses from the compiler's output folder.

    Raises `InputError` for another folder, a failed compilation, or a program with several pipelines.
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
    """Read the manifest of a compilation. Raises `InputError` if the compilation failed."""
    if not (folder / "manifest.json").is_file():
        raise InputError(f"{folder}: no manifest.json in it: give the folder that `p4c-barefoot -o` wrote")
    manifest = log(folder / "manifest.json")
    if manifest.get("target") not in CHIPS:
        raise InputError(f"{folder}: compiled for {manifest.get('target')!r}, expected one of {', '.join(CHIPS)}")
    if manifest.get("compilation_succeeded") is not True:
        raise InputError(f"{folder}: the compiler failed: the program does not fit, or is not accepted")
    return manifest


def log(path: Path) -> Document:
    """Read a log file of the compiler."""
    document = read_file(path, LOG).document
    if not isinstance(document, dict):
        raise InputError(f"{path}: not a {LOG.name}")
    return document


def resources_of(manifest: Document, resources: Document, phv: Document) -> Resources:
    """Combine the resources in three files of the compiler."""
    mau, containers = resources["resources"]["mau"], resources["resources"]["phv_containers"]
    stages, count = mau["mau_stages"], mau["nStages"]
    return Resources(
        chip=CHIPS[manifest["target"]],
        program=manifest["programs"][0]["program_name"],
        compiler=manifest["compiler_version"],
        stages=Amount(
            max((each["stage_number"] + 1 for each in stages if each["logical_tables"]["ids"]), default=0), count
        ),
        sram_blocks=blocks([stage["rams"] for stage in stages], "srams", count),
        tcam_blocks=blocks([stage["tcams"] for stage in stages], "tcams", count),
        stateful_alus=stateful_alus([stage["meter_alus"] for stage in stages], count),
        phv_bits=Amount(
            sum(container["bit_width"] for container in phv["containers"]),
            sum(each["units"] * each["width"] for kind in containers.values() for each in kind),
        ),
    )


def blocks(stages: list[Document], name: str, count: int) -> Amount:
    """Count the used blocks of memory; every stage has as many rows and columns of them as the first."""
    used = sum(len({(block["row"], block["column"]) for block in stage[name]}) for stage in stages)
    return Amount(used, count * stages[0]["nRows"] * stages[0]["nColumns"])


def stateful_alus(stages: list[Document], count: int) -> Amount:
    """Count the ALUs used for registers; they are those of meters, of which a stage has four."""
    used = sum(
        any(usage["used_for"] == "stateful_ram" for usage in alu["usages"])
        for stage in stages
        for alu in stage["meters"]
    )
    return Amount(used, count * stages[0]["nAlus"])


SOURCES = BUILD.parent / "ina_hw"
RECORD = BUILD / "ina_hw.resources.json"
VALUES_PER_PASS = "VALUES_PER_PASS"
"""The macro by which a compilation sets the number of values that a pass sums."""
OTHER_SHELL = "v1model.p4"


@dataclass(frozen=True)
class Recorded:
    """The resources of `ina_hw` with `values` values a pass, compiled from sources with the hash `source_sha256`."""

    values: int
    source_sha256: str
    resources: Resources


def source_sha256(folder: Path = SOURCES) -> str:
    """The hash of the hashes and names of the chip compiler's sources: all but the shell for v1model."""
    hashes = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in chip_sources(folder))
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def chip_sources(folder: Path) -> list[Path]:
    """The sources of a folder that the chip's compiler reads, in order of their names."""
    return sorted(file for file in folder.glob("*.p4") if file.name != OTHER_SHELL)


def recorded(chip: str, record: Path = RECORD) -> tuple[Recorded, ...]:
    """The records for a chip, by the name of its profile: an entry for each number of values a pass.

    Raises `InputError` for a record that is damaged.
    """
    if not record.is_file():
        return ()
    document = log(record)
    try:
        found = [recorded_of(each) for each in document["compiled"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{record}: not of `inakit hardware record`: {error!r} is missing or wrong") from error
    return tuple(each for each in found if each.resources.chip == chip)


def recorded_of(document: Document) -> Recorded:
    fields: Document = {
        key: Amount(**value) if isinstance(value, dict) else value for key, value in document["resources"].items()
    }
    return Recorded(document["values"], document["source_sha256"], Resources(**fields))


def record_logs(folders: Sequence[Path], record: Path = RECORD, sources: Path = SOURCES) -> list[Recorded]:
    """Replace the record by one from folders that the compiler wrote for the current sources.

    Raises `InputError` for a folder that is not the compiler's, and for one that is older than the sources.
    """
    found = [compiled_now(folder, sources) for folder in folders]
    document = {"compiled": [asdict(each) for each in found]}
    record.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return found


def compiled_now(folder: Path, sources: Path) -> Recorded:
    """The resources that a folder reports for the current sources."""
    resources = read_resources(folder)
    written = (folder / "manifest.json").stat().st_mtime
    changed = [file.name for file in chip_sources(sources) if file.stat().st_mtime > written]
    if changed:
        raise InputError(f"{folder}: older than {', '.join(changed)} in {sources}: compile again")
    return Recorded(values_of(read_manifest(folder)), source_sha256(sources), resources)


def values_of(manifest: Document) -> int:
    """The number of values that a pass sums, from the macros of the compilation."""
    defined = dict(each.partition("=")[::2] for each in manifest["programs"][0]["source_files"]["defines"])
    return int(defined.get(VALUES_PER_PASS, INA_HW.values_per_pass))


SLOTS, ENTRIES, GROUPS, MEMORY = "slots", "table entries", "multicast groups", "memory of the sums"
TOLERANCE = 1e-9
UNITS = {RECIRCULATION: (1e-9, "Gbit/s"), MEMORY: (1 / 1024, "KiB")}
"""The factor and the unit in which a kind of limit is shown; other kinds are counts."""


@dataclass(frozen=True)
class ChipFit:
    """A plan's needs on a chip of `switches` switches of its fabric: for each limit, the highest need of a switch."""

    chip: Chip
    switches: int
    needs: tuple[UsedLimit, ...]

    @property
    def fits(self) -> bool:
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the plan does not fit: a line for each exceeded limit."""
        return tuple(
            f"chip {self.chip.name}: {need.kind} at {need.where}: {amount(need.kind, need.used)} needed, "
            f"it has {amount(need.kind, need.limit)}"
            for need in self.needs
            if need.share > 1 + TOLERANCE
        )


def chips_fit(problem: Problem, plan: Plan, chip: Chip | None = None) -> list[ChipFit]:
    """Check whether a plan fits the chips of its fabric or, if `chip` is given, that chip in every switch.

    Raises `InputError` if neither names a chip, and `FabricError` for a chip with too few ports.
    """
    fabric = problem.fabric if chip is None else with_chip_as_wired(problem.fabric, chip)
    installed = {each.switch: each for each in entries(problem, plan).switches}
    needs = list(needs_of(replace(problem, fabric=fabric), plan, installed))
    found = {switch.chip.name: switch.chip for switch in fabric.switches if switch.chip}
    if not found:
        raise InputError(f"no switch of fabric '{fabric.name}' names a chip: give one, such as --chip tofino1")
    fits = []
    for each in found.values():
        names = {switch.name for switch in fabric.switches if switch.chip == each}
        own = [need for need in needs if need.where.partition(",")[0] in names]
        most = {need.kind: need for need in sorted(own, key=lambda need: need.share)}
        fits.append(ChipFit(each, len(names), tuple(most[kind] for kind in dict.fromkeys(need.kind for need in own))))
    return fits


def needs_of(problem: Problem, plan: Plan, installed: dict[str, SwitchEntries]) -> Iterator[UsedLimit]:
    chips = {switch.name: switch.chip for switch in problem.fabric.switches if switch.chip}
    yield from used_slots(plan, chips)
    yield from used_bitmaps(problem, plan)
    summed = used_summing(problem.fabric, evaluate(problem, plan))
    yield from (limit for limit in summed if limit.kind == RECIRCULATION)
    for name, chip in chips.items():
        own = installed.get(name, SwitchEntries(name))
        for table, count in Counter(entry.table for entry in own.tables).items():
            yield UsedLimit(ENTRIES, f"{name}, {table}", count, chip.table_entries)
        yield UsedLimit(GROUPS, name, len(own.groups), chip.multicast_groups)


def used_slots(plan: Plan, chips: dict[str, Chip]) -> Iterator[UsedLimit]:
    """The slots of each pipeline up to the last one that a tree owns, and the memory of their sums."""
    ends: dict[tuple[str, int], int] = {}
    for aggregator in (a for planned in plan.trees for a in planned.tree.aggregators):
        ends[aggregator.inp] = max(ends.get(aggregator.inp, 0), aggregator.first_slot + aggregator.slots)
    for (switch, pipeline), end in ends.items():
        chip, where = chips.get(switch), f"{switch}, pipeline {pipeline}"
        if chip is not None:
            yield UsedLimit(SLOTS, where, end, chip.slots_per_pipeline)
            if chip.register_bytes is not None:
                yield UsedLimit(MEMORY, where, 4 * VALUES_PER_PACKET * end, chip.register_bytes)


def print_fit(console: Console, found: Iterable[ChipFit]) -> None:
    for fit in found:
        title = f"{fit.chip.name} in {fit.switches} switch{'es' * (fit.switches > 1)}"
        table = Table(*names("most needed"), "at", *figures("needed", "has", "share"), title=title)
        for need in fit.needs:
            needed, has = (amount(need.kind, value) for value in (need.used, need.limit))
            share = f"{need.share:.1%}" if need.share <= 1 + TOLERANCE else f"[bold red]{need.share:.1%}[/]"
            table.add_row(need.kind, need.where, needed, has, share)
        console.print(table)
        word = "fits" if fit.fits else "does not fit"
        passes = f"{fit.chip.passes} passes" if fit.chip.passes > 1 else "one pass"
        line = f"the plan {word} {fit.chip.name}, where a packet of {VALUES_PER_PACKET} values takes {passes}"
        console.print(line, highlight=False, soft_wrap=True)


def print_recorded(console: Console, chip: Chip, found: Iterable[Recorded]) -> None:
    """Print the records of `ina_hw` for a chip, or that there are none."""
    for each in found:
        print_program(console, each.resources)
        console.print(provenance(each), highlight=False, soft_wrap=True)
    if not any(each.values == chip.values_per_pass for each in found):
        line = f"no figures are recorded of ina_hw for {chip.name} with {chip.values_per_pass} values a pass"
        console.print(line, highlight=False, soft_wrap=True)


def provenance(found: Recorded) -> str:
    """The program of recorded figures, and whether its sources have changed."""
    stale = "; THE SOURCES HAVE CHANGED SINCE: compile again" if found.source_sha256 != source_sha256() else ""
    return f"recorded, for ina_hw with {found.values} values a pass, sources {found.source_sha256[:12]}{stale}"


def print_program(console: Console, found: Resources) -> None:
    """Print the resources of the P4 program that the chip's compiler reports."""
    title = f"{found.program} on {found.chip}, by its compiler {found.compiler}"
    table = Table("of a pipeline", *figures("takes", "has", "share"), title=title)
    for name, each in found.amounts.items():
        table.add_row(name, f"{each.used:,}", f"{each.has:,}", f"{each.used / each.has:.1%}")
    console.print(table)
    console.print(f"the P4 program {'fits' if found.fits else 'does not fit'} {found.chip}", highlight=False)


def amount(kind: str, value: float) -> str:
    factor, unit = UNITS.get(kind, (1, ""))
    return f"{value * factor:,.6g} {unit}".rstrip()


def load_plan_folder(folder: Path) -> tuple[Problem, Plan]:
    """Load the problem and the checked plan of a folder. Raises `InputError`, also for a folder without a plan."""
    if not (folder / "plan.json").is_file():
        raise InputError(f"{folder}: no plan.json in it; `inakit plan --output {folder}` writes such a folder")
    problem = Problem(load_fabric(folder / "fabric.yml"), load_jobs(folder / "jobs.yml"), FRAGMENT)
    plan = load_plan(folder / "plan.json")
    check(problem, plan)
    return problem, plan
