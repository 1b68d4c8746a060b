"""Runs the tasks of a sweep that are not kept yet, and gives what came of all."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from experiments.tasks.engines import Engine, surviving
from experiments.tasks.kept import Finished, Kept
from experiments.tasks.task import Task
from experiments.tasks.time_left import countdown


def run_tasks(tasks: Sequence[Task], kept: Kept, engine: Engine, console: Console, title: str) -> dict[str, Finished]:
    """What came of all tasks, by key, in their order; what is kept is not run again.

    A result of a worker that does not share this machine's folder is kept here as well. Raises `OutputError`.
    """
    found = {task.key: finished for task in tasks if (finished := kept.get(task.key)) is not None}
    missing = [task for task in tasks if task.key not in found]
    if missing:
        with countdown(console, title, tasks, found.values(), engine.width) as note:
            for finished in surviving(engine, missing, kept):
                keep_here(finished, kept)
                found[finished.key] = finished
                note(finished)
    return {task.key: found[task.key] for task in tasks}


def keep_here(finished: Finished, kept: Kept) -> None:
    """Keep a result that a worker kept on a disk of its own. Raises `OutputError`."""
    if not kept.path(finished.key).exists():
        with kept.claim(finished.key) as claim:
            if claim.finished is None:
                claim.keep(finished)
