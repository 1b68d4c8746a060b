"""Writes the entries of a plan in the formats that hardware takes, and what its end hosts need to know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from urllib.parse import quote

from experiments.hardware.end_hosts import end_hosts, save_end_hosts
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.install.plan_entries import entries
from switch.entries import Entries
from switch.handover.bfrt import documents
from switch.handover.bfrt_schema import check_documents, load_schema
from switch.handover.bfrt_scripts import add_script, dump_script, lines, remove_script
from switch.program.read import read_program
from switch.running_switch import PROGRAM
from topo.errors import MachineError, writing

BFRT, P4RUNTIME, HOSTS = "bfrt", "p4runtime", "hosts"
"""The folders in that of a plan."""


def write_handover(
    folder: Path, problem: Problem, plan: Plan, *, program: Path = PROGRAM, schema: Path | None = None
) -> list[str]:
    """Write `bfrt/`, `p4runtime/` and `hosts/` into the folder of a plan; returns lines about what is not written.

    The entries of BF-Runtime are held to the `bf-rt.json` of the chip's compiler, where `schema` names one. Raises
    `InputError`, `OutputError`.
    """
    installed = entries(problem, plan)
    write_bfrt(folder / BFRT, installed, program, schema)
    save_end_hosts(folder / HOSTS, end_hosts(problem, plan))
    return [*write_p4runtime(folder / P4RUNTIME, installed, program), *left_out(plan)]


def write_bfrt(folder: Path, installed: Entries, program: Path, schema: Path | None) -> None:
    """For each switch the entries as JSON, and the scripts that add and remove them; and the script that dumps."""
    compiled, known = read_program(program), None if schema is None else load_schema(schema)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dump.py").write_text(dump_script(program.stem, compiled))
        for each in installed.switches:
            listed, name = documents(compiled, each), quote(each.switch, safe=" ")
            if known is not None:
                check_documents(known, listed)
            (folder / f"{name}.json").write_text(lines(listed) + "\n")
            (folder / f"{name}.add.py").write_text(add_script(program.stem, each.switch, listed))
            (folder / f"{name}.remove.py").write_text(remove_script(program.stem, each.switch, compiled, listed))


def write_p4runtime(folder: Path, installed: Entries, program: Path) -> list[str]:
    """For each switch the requests that add and remove its entries, and the P4Info; a line if packages are missing."""
    try:
        from switch.handover import p4runtime_text as text  # noqa: PLC0415, needs protobuf
    except MachineError as error:
        return [f"no {P4RUNTIME}/: {error}"]
    info = text.load_schema(program)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        copyfile(text.p4info_of(program), folder / "p4info.txt")
        for each in installed.switches:
            name = quote(each.switch, safe=" ")
            (folder / f"{name}.add.txt").write_text(text.write_text(info, each))
            (folder / f"{name}.remove.txt").write_text(text.write_text(info, each, removal=True))
    return []


def left_out(plan: Plan) -> Iterator[str]:
    """A line for each job without files of its hosts."""
    for each in plan.collectives:
        yield f"job {each.job}: no files of its hosts, for it is a collective; plan.json has the steps of its ranks"
