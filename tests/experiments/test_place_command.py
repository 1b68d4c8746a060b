"""`inakit place`: the table, and files that planners take."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.cli.commands.place import place_and_print
from inakit.experiments.run.scenario import FabricChoice
from inakit.planner.core.files import load_jobs
from inakit.planner.placement import InaOptions
from inakit.topo.errors import InputError

QUEUE = """
version: 1
jobs:
  - {workers: 4, gradient_bytes: 54800, iterations: 3}
  - {workers: 3, gradient_bytes: 54800, iterations: 3, arrival_s: 0.05}
  - {workers: 12, gradient_bytes: 54800, iterations: 3, arrival_s: 0.06}
"""


def place(folder: Path, *names: str, at_s: float | None = None) -> str:
    (folder / "queue.yml").write_text(QUEUE)
    console = Console(record=True, width=100, quiet=False, file=(folder / "said.txt").open("w"))
    place_and_print(console, FabricChoice("fattree"), folder / "queue.yml", names, InaOptions(), at_s, folder / "out")
    return console.export_text()


def test_the_jobs_that_run_together_are_written_with_their_hosts(tmp_path: Path) -> None:
    assert "netpack" in place(tmp_path, "netpack")
    first, second = load_jobs(tmp_path / "out" / "jobs.yml")
    assert (len(first.workers), len(second.workers)) == (4, 3)
    assert not {*first.workers, *first.servers} & {*second.workers, *second.servers}
    lines = (tmp_path / "out" / "placement.csv").read_text().splitlines()
    assert lines[0].startswith("job,arrival_s,start_s")
    assert len(lines) == 4


def test_several_policies_are_compared_and_have_a_folder_each(tmp_path: Path) -> None:
    text = place(tmp_path, "mina", "first")
    assert "mina" in text
    assert "first" in text
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["first", "mina"]


def test_a_time_at_which_nothing_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no job runs at 99 s"):
        place(tmp_path, "mina", at_s=99.0)
