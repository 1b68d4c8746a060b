"""Runs the trials of a sweep that are not kept yet, and gives what came of all."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from inakit.experiments.sweeps.engines import Engine, surviving
from inakit.experiments.sweeps.kept import Finished, Kept
from inakit.experiments.sweeps.one_trial import Trial
from inakit.experiments.sweeps.time_left import countdown


def run_trials(
    trials: Sequence[Trial], kept: Kept, engine: Engine, console: Console, title: str
) -> dict[str, Finished]:
    """What came of all trials, by key, in their order; what is kept is not run again.

    A result of a worker that does not share this machine's folder is kept here as well. What ends the sweep before all
    are done gets a note that says how many are. Raises `OutputError`.
    """
    found = {trial.key: finished for trial in trials if (finished := kept.get(trial.key)) is not None}
    missing = [trial for trial in trials if trial.key not in found]
    if missing:
        try:
            with countdown(console, title, trials, found.values(), engine.width) as note:
                for finished in surviving(engine, missing, kept):
                    keep_here(finished, kept)
                    found[finished.key] = finished
                    note(finished)
        except BaseException as ended:
            ended.add_note(f"{title}: {len(found)} of {len(trials)} are kept, and the same command goes on")
            raise
    return {trial.key: found[trial.key] for trial in trials}


def keep_here(finished: Finished, kept: Kept) -> None:
    """Keep a result that a worker kept on a disk of its own. Raises `OutputError`."""
    if not kept.path(finished.key).exists():
        with kept.claim(finished.key) as claim:
            if claim.finished is None:
                claim.keep(finished)
