"""`inakit agree`: the same plans in two worlds, an emulated one and virtual time, and how far their figures differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.agreement.combinations import Combination
from experiments.agreement.comparison import Compared, Extent, compare
from experiments.agreement.report import Summary, agreement_table, line_of, link_rows, print_summary, row
from experiments.run.printed.progress import working
from experiments.run.record import RunFolder, check_results, machine, versions
from experiments.worlds.world import World


def run_agreement(
    combinations: Sequence[Combination],
    worlds: tuple[World, World],
    extent: Extent,
    results: Path,
    console: Console,
) -> Summary:
    """Run every combination in both worlds, print and write what was found, and return the summary.

    The files are written after each combination. Raises `InakitError` where no folder can be made in `results`.
    """
    check_results(results)
    folder, names = RunFolder(results, "agreement"), (worlds[0].name, worlds[1].name)
    about = {"worlds": names, "versions": versions(), "machine": machine(), "extent": asdict(extent)}
    found: list[Compared] = []
    for number, combination in enumerate(combinations, start=1):
        with working(console, f"{number} of {len(combinations)}: {combination}"):
            found.append(compare(combination, worlds, extent))
        console.print(f"{number} of {len(combinations)}: {line_of(found[-1])}", highlight=False, soft_wrap=True)
        write(folder, about, found)
    console.print(agreement_table(found, names))
    print_summary(console, found)
    console.print(f"everything of these runs: {folder.path}", highlight=False)
    return Summary.of(found)


def write(folder: RunFolder, about: dict[str, Any], found: Sequence[Compared]) -> None:
    """Write `agreement.json`, `agreement.csv` with a row for each combination, and `links.csv`."""
    rows = [row(one) for one in found]
    entries = [entry | {"reasons": list(one.reasons)} for entry, one in zip(rows, found, strict=True)]
    folder.write_json("agreement.json", about | {"summary": Summary.of(found).as_json(), "combinations": entries})
    folder.write_rows("agreement.csv", list(rows[0]), [list(each.values()) for each in rows])
    links = [each for one in found for each in link_rows(one)]
    folder.write_rows("links.csv", ("combination", "node", "peer", "difference"), links)
