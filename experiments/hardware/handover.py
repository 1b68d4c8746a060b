"""Writes the entries of a plan in the formats that hardware takes, and what its end hosts need to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from urllib.parse import quote

from inakit.experiments.hardware.end_hosts import end_hosts, save_end_hosts
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.data_plane_program import INA, INA_HW, DataPlaneProgram
from inakit.planner.install.plan_entries import entries
from inakit.planner.install.program import PIPELINE
from inakit.switch.entries import Entries
from inakit.switch.handover import p4runtime_text as text
from inakit.switch.handover.bfrt import documents
from inakit.switch.handover.bfrt_schema import check_documents, load_schema
from inakit.switch.handover.bfrt_scripts import add_script, dump_script, lines, remove_script
from inakit.switch.program.read import read_program
from inakit.topo.errors import PlanError, writing
from inakit.topo.fabric.fabric import Fabric

BFRT, P4RUNTIME, HOSTS = "bfrt", "p4runtime", "hosts"
"""The folders in that of a plan."""
PORTS_PER_PIPE = 128
"""On a chip, device port p belongs to pipeline p // 128."""


def write_handover(
    folder: Path, problem: Problem, plan: Plan, *, program: DataPlaneProgram = INA, schema: Path | None = None
) -> list[str]:
    """Write `bfrt/`, `p4runtime/` and `hosts/` into the folder of a plan; returns lines about what is not written.

    Entries of P4Runtime are for `program`, those of BF-Runtime for the chip's shell of `ina_hw`; these are held to the
    `bf-rt.json` of the chip's compiler, where `schema` names one. Raises `InputError`, `OutputError`.
    """
    save_end_hosts(folder / HOSTS, end_hosts(problem, plan))
    write_p4runtime(folder / P4RUNTIME, entries(problem, program.fitted(plan)), program.path)
    return [*write_bfrt(folder / BFRT, problem, plan, schema), *left_out(plan)]


def chip_entries(problem: Problem, plan: Plan) -> Entries:
    """The entries of a plan on chips: those of `ina_hw` but for pipelines, which a chip has by its ports.

    Raises `PlanError` for a plan that the program cannot do.
    """
    installed = entries(problem, INA_HW.fitted(plan)).switches
    return Entries(
        tuple(replace(each, tables=tuple(row for row in each.tables if row.table != PIPELINE)) for each in installed)
    )


def write_bfrt(folder: Path, problem: Problem, plan: Plan, schema: Path | None) -> list[str]:
    """For each switch the entries as JSON, and the scripts that add and remove them; and the script that dumps.

    Returns lines about what is not written, or would not be the plan on a chip.
    """
    try:
        installed = chip_entries(problem, plan)
    except PlanError as error:
        return [f"no {BFRT}/: {error}"]
    compiled, known = read_program(INA_HW.path), None if schema is None else load_schema(schema)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dump.py").write_text(dump_script(INA_HW.name, compiled, without=(PIPELINE,)))
        for each in installed.switches:
            listed, name = documents(compiled, each), quote(each.switch, safe=" ")
            if known is not None:
                check_documents(known, listed)
            (folder / f"{name}.json").write_text(lines(listed) + "\n")
            (folder / f"{name}.add.py").write_text(add_script(INA_HW.name, each.switch, listed))
            (folder / f"{name}.remove.py").write_text(remove_script(INA_HW.name, each.switch, compiled, listed))
    return list(misplaced(problem.fabric))


def misplaced(fabric: Fabric) -> Iterator[str]:
    """A line where switches have ports in other pipelines than a chip has them."""
    found = [
        (switch.name, port, number)
        for switch in fabric.switches
        for number, ports in enumerate(switch.pipelines)
        for port in ports
        if port // PORTS_PER_PIPE != number
    ]
    if found:
        name, port, number = found[0]
        yield (
            f"{BFRT}/ is not the plan on a chip yet: port {port} of switch '{name}' is in pipeline {number}, on a chip "
            f"device port {port} is in pipeline {port // PORTS_PER_PIPE} ({len(found)} such ports): give device ports "
            "in the fabric's file (a_port, b_port)"
        )


def write_p4runtime(folder: Path, installed: Entries, program: Path) -> None:
    """Write for each switch the requests that add and remove its entries, and the P4Info."""
    info = text.load_schema(program)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        copyfile(text.p4info_of(program), folder / "p4info.txt")
        for each in installed.switches:
            name = quote(each.switch, safe=" ")
            (folder / f"{name}.add.txt").write_text(text.write_text(info, each))
            (folder / f"{name}.remove.txt").write_text(text.write_text(info, each, removal=True))


def left_out(plan: Plan) -> Iterator[str]:
    """A line for each job without files of its hosts."""
    for each in plan.collectives:
        yield f"job {each.job}: no files of its hosts, for it is a collective; plan.json has the steps of its ranks"
