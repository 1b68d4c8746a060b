"""The sweeps of the papers' figures; kept results are not measured again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console

from inakit.experiments.sweeps import trial as one_trial
from inakit.experiments.sweeps.run_trials import run_trials
from inakit.experiments.sweeps.trial import ROOT, Finished, Kept, code_version
from inakit.experiments.sweeps.trial_engines import Loky
from inakit.planner.registry import OWN
from inakit.topo.errors import RunError
from inakit.traffic.measure.verdict import VALID

CODE = ("topo", "planner", "switch", "traffic", "p4/build", "experiments/run", "experiments/worlds")
"""The code on which results depend, in addition to the paper's own and that of user-defined planners."""

PAPERS = ROOT / "experiments" / "papers"

Value = str | int | float
Trial = Mapping[str, Value]
"""A requested measurement: {"network": "fattree", "scheme": "aro", "workers": 90, "seed": 3}."""
Result = Mapping[str, Value]
"""The result of a measurement: {"rate_bps": 5.2e9, "seconds": 0.01}."""


def sweep(
    trials: Iterable[Trial], measure: Callable[[Trial], Result], folder: Path, console: Console, processes: int = 1
) -> dict[str, Result]:
    """Measure the trials that `folder` does not keep; return the results of all trials, keyed by `name_of`.

    With several processes, `measure` has to be a module-level function. A result whose `verdict` is not VALID is
    discarded and measured again. Raises `RunError` for a failed trial, after the other trials.
    """
    code, kept, run = code_of(measure), Kept(folder), partial(row_of, measure, OWN.added)
    calls = {
        name: one_trial.Trial(one_trial.key_of(trial=trial, code=[code, *own_code(trial)]), run, trial)
        for name, trial in {name_of(trial): trial for trial in trials}.items()
    }
    for call in calls.values():
        if not counts(kept.get(call.key)):
            kept.forget(call.key)
    found = run_trials(list(calls.values()), kept, Loky(processes), console, folder.name)
    try:
        return {name: result_of(name, found[call.key]) for name, call in calls.items()}
    except RunError as error:
        done = sum(finished.row is not None for finished in found.values())
        error.add_note(f"{done} of {len(found)} trials are kept in {folder}; the same command runs the others again")
        raise


def row_of(measure: Callable[[Trial], Result], added: Iterable[str], trial: Trial) -> dict[str, Value]:
    """The result of a trial, in a process that first registers the planners `added` by their paths."""
    for path in added:
        OWN.add(path)
    return dict(measure(trial))


def counts(finished: Finished | None) -> bool:
    return finished is not None and finished.row is not None and finished.row.get("verdict", VALID) == VALID


def result_of(name: str, finished: Finished) -> Result:
    """The result of a trial. Raises `RunError` if it failed."""
    if finished.row is None:
        raise RunError(f"{name}: {finished.error}")
    return finished.row


def code_of(measure: Callable[..., object]) -> str:
    """The version of the code that a measurement runs: the kit's and its paper's.

    A paper is a folder or a single file beside others; these files can import from each other.
    """
    function = measure.func if isinstance(measure, partial) else measure
    file = sys.modules[getattr(function, "__module__", type(function).__module__)].__file__
    folder = [] if file is None else [Path(file).parent]
    own = [each for at in folder for each in (at.glob("*.py") if at == PAPERS else [at])]
    return code_version(*(ROOT / part for part in CODE), *own, without=(ROOT / "planner" / "own",))


def own_code(trial: Trial) -> list[str]:
    return [OWN[value].sha256 for value in trial.values() if isinstance(value, str) and value in OWN]


def name_of(trial: Trial) -> str:
    """A trial as text; equal trials have the same text."""
    return json.dumps(trial, sort_keys=True)
