"""`inakit labs leaderboard`: the planners of lab 6, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from inakit.experiments.labs.plan.leaderboard import Entry, board_of, ranked
from inakit.experiments.labs.plan.leaderboard import leaderboard as measured
from inakit.topo.errors import writing


def leaderboard(
    folder: Annotated[Path, typer.Argument(help="a folder with a submission of lab 6 for each student")],
    seed: Annotated[str, typer.Option(help="what the networks are drawn from: any text")] = "0",
    table: Annotated[Path, typer.Option(help="one line for each student, the best first")] = Path("leaderboard.csv"),
) -> None:
    """Rank the planners of lab 6 on larger networks: the mean part of a bound that no plan exceeds."""

    def show(entries: list[Entry]) -> None:
        for rank, entry in ranked(entries):
            print(f"{rank:3} {entry.student:24} {entry.mean:6.1%}  {entry.problem}".rstrip())
        with writing(table):
            table.write_text(board_of(entries))
        print(f"wrote {table}")

    measured(folder, seed, Console(), show)
