"""Plays a folder of P4 programs with STF tests, such as p4c's own samples, and prints how the embedded switch does.

    python tests/third_party/stf_samples.py FOLDER [--targets fast,kernel] [--only NAME,...] [--build FOLDER]

BMv2 plays every test first and is the judge: a target is *identical* where it sends the same packets, or passes
the test as BMv2 does, *refused* where it names what it does not support, and *wrong* otherwise. Programs for other
architectures than v1model are left out. Needs p4c-bm2-ss, simple_switch and root.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from p4c import compile_p4
from rich.console import Console
from rich.progress import track
from rich.table import Table

from inakit.switch.testing.stf_play import Result, StfVerdict, play
from inakit.switch.testing.stf_script import read_script
from inakit.topo.errors import InakitError


def samples(folder: Path, only: Sequence[str]) -> Iterator[Path]:
    """The programs for v1model that have a test beside them."""
    for test in sorted(folder.glob("*.stf")):
        program = test.with_suffix(".p4")
        wanted = program.is_file() and (not only or program.stem in only)
        if wanted and "v1model.p4" in program.read_text(errors="replace"):
            yield program


def played(program: Path, test: Path, target: str) -> Result | str:
    """The test's result, or the error in which the kit failed."""
    try:
        return play(program, read_script(test), target)
    except InakitError as error:
        return f"{type(error).__name__}: {error}"


def judged(result: Result | str, reference: Result | str) -> tuple[str, str]:
    """The verdict (identical, refused or wrong), and why."""
    if isinstance(result, str):
        return ("both fail" if isinstance(reference, str) else "wrong"), result
    if result.verdict is StfVerdict.UNSUPPORTED:
        return "refused", result.reasons[0]
    if isinstance(reference, str):
        return "wrong", f"BMv2: {reference}"
    if result.verdict is StfVerdict.PASS and reference.verdict is StfVerdict.PASS:
        return "identical", ""
    same = result.received == reference.received
    return ("identical", "") if same else ("wrong", "\n".join(result.reasons) or f"BMv2: {reference.reasons}")


def main() -> None:
    """Play all samples of a folder, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", default="fast,kernel")
    parser.add_argument("--only", default="")
    parser.add_argument("--build", type=Path, help="where compiled programs are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        build = given.build or Path(scratch)
        build.mkdir(parents=True, exist_ok=True)
        run(given.folder, given.targets.split(","), [name for name in given.only.split(",") if name], build)


def run(folder: Path, targets: Sequence[str], only: Sequence[str], build: Path) -> None:
    """Run a task for each sample, several at once."""
    console = Console(soft_wrap=True)
    counts = {target: Counter[str]() for target in targets}
    for program in track(list(samples(folder, only)), "samples", console=Console(stderr=True)):
        json = compile_p4(program, build / f"{program.stem}.json").json
        if json is None:
            for target in targets:
                counts[target]["p4c does not compile it"] += 1
            continue
        test = program.with_suffix(".stf")
        reference = played(json, test, "bmv2")
        for target in targets:
            outcome, why = judged(played(json, test, target), reference)
            counts[target][outcome] += 1
            if outcome != "identical":
                console.print(f"{target} {outcome} {program.stem}: {why}", markup=False, highlight=False)
    console.print(summary(counts))


def summary(counts: dict[str, Counter[str]]) -> Table:
    """A row per outcome, a column per target."""
    table = Table("", *counts)
    outcomes = ["identical", "refused", "wrong", *(name for each in counts.values() for name in each)]
    for outcome in dict.fromkeys(outcomes):
        cells = [f"{each[outcome]} ({each[outcome] / max(each.total(), 1):.0%})" for each in counts.values()]
        table.add_row(outcome, *cells)
    return table


if __name__ == "__main__":
    main()
