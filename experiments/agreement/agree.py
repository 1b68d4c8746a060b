"""`inakit agree`: the same plans in two worlds, an emulated one and virtual time, and how far their figures differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from inakit.experiments.agreement.combinations import Combination
from inakit.experiments.agreement.comparison import Compared, Extent, compare
from inakit.experiments.agreement.report import Summary, agreement_table, link_rows, print_summary, row, words_of
from inakit.experiments.run.record import RunFolder, check_results, machine, versions
from inakit.experiments.sweeps.rows import Row, measure_rows
from inakit.experiments.worlds.world import World
from inakit.topo.kit import this_kit
from inakit.traffic.measure.verdict import Verdict


def run_agreement(
    combinations: Sequence[Combination],
    worlds: tuple[World, World],
    extent: Extent,
    results: Path,
    console: Console,
) -> Summary:
    """Run every combination in both worlds, print and write what was found, and return the summary.

    The files are written after each combination; however it ends, what was compared is printed. Raises `InakitError`
    where no folder can be made in `results`.
    """
    check_results(results)
    folder, names = RunFolder(results, "agreement"), (worlds[0].name, worlds[1].name)
    about = {"worlds": names, "extent": asdict(extent)}
    about |= {"source": this_kit().source._asdict(), "versions": versions(), "machine": machine()}

    def show(rows: Sequence[Row[Combination, Compared]]) -> Summary:
        found = compared(rows)
        if found:
            console.print(agreement_table(found, names))
            print_summary(console, found)
            console.print(f"everything of these runs: {folder.path}", highlight=False)
        return Summary.of(found)

    def keep(rows: Sequence[Row[Combination, Compared]]) -> None:
        write(folder, about, compared(rows))

    return measure_rows(combinations, lambda each: compare(each, worlds, extent), words_of, show, console, keep)


def compared(rows: Sequence[Row[Combination, Compared]]) -> list[Compared]:
    """What was compared; a combination whose comparison broke has failed."""
    return [row.found or Compared(row.asked, Verdict.FAILED, (row.error or "",)) for row in rows]


def write(folder: RunFolder, about: dict[str, Any], found: Sequence[Compared]) -> None:
    """Write `agreement.json`, `agreement.csv` with a row for each combination, and `links.csv`."""
    rows = [row(one) for one in found]
    entries = [entry | {"reasons": list(one.reasons)} for entry, one in zip(rows, found, strict=True)]
    folder.write_json("agreement.json", about | {"summary": Summary.of(found).as_json(), "combinations": entries})
    folder.write_rows("agreement.csv", list(rows[0]), [list(each.values()) for each in rows])
    links = [each for one in found for each in link_rows(one)]
    folder.write_rows("links.csv", ("combination", "node", "peer", "difference"), links)
