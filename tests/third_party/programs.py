"""Compares folders of P4 programs for v1model with BMv2: what runs in the kernel, and does it send the same packets?

    python tests/third_party/programs.py FOLDER... [--packets 128] [--only TEXT,...] [--build FOLDER] [--reference bmv2]
        [--compiled]

Every program gets random packets, with random entries and with each file of commands or s1-runtime.json that lies
beside it and that names its tables. A program that the kernel refuses is compared as the interpreter runs it. BMv2 is
the judge (`--reference interpreted` takes the interpreter instead, which is quicker). Needs p4c-bm2-ss, simple_switch
and root.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from p4c import Compiled, compile_p4, compiled_programs, v1model_programs
from rich.console import Console
from rich.progress import track
from rich.table import Table

from inakit.switch.control.entry_files import read_entries
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.random_packets import Draw
from inakit.switch.testing.target_comparison import Outcome, compare
from inakit.topo.errors import InakitError, InputError, RunError, UnsupportedError

KERNEL, INTERPRETED, NOWHERE = "kernel", "interpreted", "nowhere"
FAILED, REFUSED, NOT_COMPILED = "FAILED", "refused", "not compiled"
REFERENCE_DIED = "BMv2 died"
"""simple_switch crashes where a program indexes an array beyond its end."""
WITH_HEADERS = "identical*"
"""Identical for packets that have all headers: of a header that is not there BMv2 reads what another packet left."""
WALKS = 200

COMMAND = re.compile(
    r"^\s*(table_add|table_set_default|mc_mgrp_create|mirroring_add|register_write|meter_|\"table_entries\")", re.M
)
"""What a line of a file with commands for `simple_switch_CLI`, or with entries of the tutorials, looks like."""
FILES_OF_ENTRIES = ("*.txt", "*-runtime.json")

OF_AN_EXERCISE = ("README.md", "Makefile", "topology.json", ".git")
"""Files that lie in the folder of an exercise, and not above it."""

REFUSAL = re.compile(r"uses (.*?)(?: of table| in table| \(|, which)|takes no (.*?) for|verifier", re.S)
QUOTED = re.compile(r"'[^']*\.[^']*'")


@dataclass(frozen=True)
class Given:
    """Sizes that every comparison shares."""

    packets: int
    reference: str


@dataclass(frozen=True)
class Row:
    """One comparison: a program with some entries, where it ran, how it went, and what the kernel refused."""

    program: str
    entries: str
    runs_in: str
    outcome: str
    refused: str = ""
    detail: str = ""


def command_files(program: Path, folder: Path) -> Iterator[Path]:
    """The files of entries of a program in `folder`: below its own folder, or else below that of its exercise."""
    for around in program.parents:
        texts: dict[str, Path] = {}
        for path in sorted(path for pattern in FILES_OF_ENTRIES for path in around.rglob(pattern)):
            texts.setdefault(path.read_text(errors="replace"), path)
        found = [path for text, path in texts.items() if COMMAND.search(text)]
        whole = around == folder or any((around / name).exists() for name in OF_AN_EXERCISE)
        if found or whole or any(around.glob("network*.py")):
            yield from found
            return


def is_for(commands: Path, program: Program) -> bool:
    """Whether a file's commands can be given to a program: it may well be meant for another one beside it."""
    try:
        read_entries(commands, program)
    except InputError:
        return False
    return True


def compared(name: str, json: Path, commands: Path | None, given: Given) -> Row:
    """Compare a program in the kernel or, where that refuses it, interpreted, with the reference."""
    entries = "random" if commands is None else commands.name
    refusals: list[str] = []
    for target in (KERNEL, INTERPRETED):
        try:
            outcome, detail = judged(json, target, commands, given)
        except UnsupportedError as error:
            refusals.append(str(error))
        except InakitError as error:
            if target == INTERPRETED or "kernel refuses" not in str(error):
                return Row(name, entries, target, FAILED, kind_of(refusals), str(error))
            refusals.append(f"verifier: {error}")
        else:
            return Row(name, entries, target, outcome, kind_of(refusals), "; ".join([detail, *refusals]).strip("; "))
    return Row(name, entries, NOWHERE, REFUSED, kind_of(refusals), "; ".join(refusals))


def judged(json: Path, target: str, commands: Path | None, given: Given) -> tuple[str, str]:
    """How a target does beside the reference, and what differs.

    Where it differs, packets that have all headers say whether that comes only of headers that are not there. Where
    BMv2 dies, the interpreter stands for it.
    """
    targets = (target, given.reference)
    try:
        result = compare(json, targets, given.packets, commands=commands)
    except RunError as error:
        if given.reference != "bmv2" or "kernel refuses" in str(error):
            raise
        instead = compare(json, (target, INTERPRETED), given.packets, commands=commands)
        return REFERENCE_DIED, f"{error}; beside the interpreter: {instead.outcome}"
    if result.outcome is not Outcome.DIFFERENT:
        return result.outcome, result.difference or ""
    whole = compare(json, targets, given.packets, commands=commands, headers=headers_together(json))
    if whole.outcome is Outcome.IDENTICAL:
        return WITH_HEADERS, result.difference or ""
    return whole.outcome, whole.difference or ""


def headers_together(json: Path) -> list[str]:
    """The most headers that one packet of the program can have, as far as random ways through its parser show."""
    draw = Draw(read_program(json), Random(0))
    ways = [list(draw.walked().places) for _ in range(WALKS)]
    return max(ways, key=len)


def kind_of(refusals: Sequence[str]) -> str:
    """What was refused first, without names of one program."""
    if not refusals:
        return ""
    found = REFUSAL.search(refusals[0])
    return QUOTED.sub("", found[1] or found[2] or found[0]).strip() if found else refusals[0][:80]


def rows_of(program: Path, folder: Path, build: Path, given: Given) -> Iterator[Row]:
    """All comparisons of one program."""
    name = str(program.relative_to(folder.parent).with_suffix(""))
    if program.suffix == ".json":
        compiled = Compiled(program)
    else:
        compiled = compile_p4(program, build / f"{name.replace('/', '~')}.json", folder)
    if compiled.json is None:
        yield Row(name, "", NOWHERE, NOT_COMPILED, detail=compiled.error)
        return
    try:
        read = read_program(compiled.json)
    except InakitError as error:
        yield Row(name, "", NOWHERE, REFUSED, "unreadable", str(error))
        return
    yield compared(name, compiled.json, None, given)
    for commands in command_files(program, folder) if program.suffix == ".p4" else ():
        if is_for(commands, read):
            yield compared(name, compiled.json, commands, given)


def table_of(rows: Sequence[Row]) -> Table:
    """A row per comparison."""
    table = Table("program", "entries", "runs in", "packets", "the kernel refuses")
    for row in rows:
        table.add_row(row.program, row.entries, row.runs_in, row.outcome, row.refused)
    return table


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """How many programs run where, how many comparisons ended how, and what the kernel refuses how often."""
    compiled = [row for row in rows if row.outcome != NOT_COMPILED]
    worst: dict[str, int] = {}
    for row in compiled:
        worst[row.program] = max(row_rank(row), worst.get(row.program, 0))
    programs, total = Counter(worst.values()), max(len(worst), 1)
    counts = (f"{name} {programs[rank]} ({programs[rank] / total:.0%})" for rank, name in enumerate(RUNS_IN))
    yield f"{len(worst)} programs by where all of their comparisons ran: {', '.join(counts)}"
    yield f"{len(rows)} comparisons: {', '.join(f'{o} {n}' for o, n in Counter(r.outcome for r in rows).most_common())}"
    for refused, names in sorted(refusing(rows).items(), key=lambda item: -len(item[1])):
        yield f"refused by the kernel: {len(names):3} programs: {refused}"


RUNS_IN = (KERNEL, INTERPRETED, NOWHERE)


def row_rank(row: Row) -> int:
    """The place of a comparison in `RUNS_IN`."""
    return RUNS_IN.index(row.runs_in)


def refusing(rows: Sequence[Row]) -> dict[str, set[str]]:
    """The programs that meet each refusal."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if row.refused:
            found.setdefault(row.refused, set()).add(row.program)
    return found


def main() -> None:
    """Compare all programs of the folders, and print a table; the exit code is 1 if one sends other packets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--packets", type=int, default=128, help="for each comparison")
    parser.add_argument("--reference", choices=("bmv2", INTERPRETED), default="bmv2")
    parser.add_argument("--only", default="", help="texts, one of which must be in a program's path")
    parser.add_argument("--compiled", action="store_true", help="take BMv2 JSON that others have compiled, not P4")
    parser.add_argument("--build", type=Path, help="where compiled programs are kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        wanted = [text for text in arguments.only.split(",") if text]
        given = Given(arguments.packets, arguments.reference)
        build = arguments.build or Path(scratch)
        rows = list(run(arguments.folders, wanted, build, given, arguments.compiled))
    console = Console(width=200)
    console.print(table_of(rows))
    for line in summary(rows):
        console.print(line, markup=False, highlight=False)
    raise SystemExit(any(row.outcome in (Outcome.DIFFERENT, FAILED) for row in rows))


def run(
    folders: Sequence[Path], wanted: Sequence[str], build: Path, given: Given, compiled: bool = False
) -> Iterator[Row]:
    """All comparisons of P4 programs, or of `compiled` ones; those that are not identical are told at once."""
    found = compiled_programs if compiled else v1model_programs
    programs = [(path, folder) for folder in folders for path in found(folder.resolve())]
    chosen = [each for each in programs if not wanted or any(text in str(each[0]) for text in wanted)]
    console = Console(soft_wrap=True)
    for program, folder in track(chosen, "programs", console=Console(stderr=True)):
        for row in rows_of(program, folder.resolve(), build, given):
            if row.detail:
                told = f"{row.program} ({row.entries}): {row.runs_in}, {row.outcome}: {row.detail}"
                console.print(told, markup=False, highlight=False)
            yield row


if __name__ == "__main__":
    main()
