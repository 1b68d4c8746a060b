"""Runs exercises of others on BMv2 and on the kit's switches under its names, and prints where they differ.

    python tests/third_party/exercises.py FOLDER LIST.yml [--only TEXT,...] [--on bmv2,shim] [--python FOLDER]

A list (such as `p4_learning.yml`, beside this file) says for each exercise of a folder which network it starts, and
which lines of Mininet's command line check it, mostly those of the exercise's own README. Nothing of the exercise is
changed; its solution is laid over it. What the checks say must be the same on both, and as the list expects, if it says
so.

A verdict that is kept for the same switches (the last commit of their code) and the same checks is taken from `--keep`,
so that a run that was ended goes on where it was; `--anew` takes none. What does not come out alike is tried again, one
switch after the other: on a busy machine packets are lost.

Needs Mininet, p4-utils, p4c-bm2-ss, simple_switch and root. `--python` is the folder of the `python3` that runs their
scripts, which need other packages than the kit.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from exercise_list import Exercise, read_list
from exercise_trials import BMV2, SHIM, Seen, seen_on
from exercise_verdicts import FINE, Verdict, Word, judge
from rich.console import Console as Screen
from rich.table import Table
from sandbox import STOPPED

SWITCH_CODE = ("switch/*.py", "switch/*.[ch]", "topo/*.py")
"""The files whose code runs when a switch does."""
TRIALS = 3
"""So often an exercise is run on both before a difference counts."""


@dataclass(frozen=True)
class Setting:
    """What all exercises of a run share: their folder, the switches, a folder for all output, their Python's folder."""

    folder: Path
    on: tuple[str, ...]
    keep: Path
    python: Path


class KeptVerdicts:
    """The verdicts of a run by exercise, in a file that the next run of the same commit goes on with."""

    def __init__(self, path: Path, commit: str, anew: bool) -> None:
        self.path, self.lock = path, Lock()
        kept = json.loads(path.read_text()) if path.exists() and not anew else {}
        self.known: dict[str, dict[str, Any]] = kept.get("verdicts", {}) if kept.get("commit") == commit else {}
        self.commit = commit

    def get(self, exercise: Exercise) -> Verdict | None:
        """The verdict that is kept for these checks, if it is fine, or differs for a known cause."""
        found = self.known.get(exercise.digest)
        if found is None or (found["word"] not in FINE and exercise.differs is None):
            return None
        return Verdict(Word(found["word"]), found["why"], found["ran"], found["trials"], found["seconds"])

    def put(self, exercise: Exercise, verdict: Verdict) -> None:
        """Keep a verdict."""
        with self.lock:
            self.known[exercise.digest] = {"exercise": exercise.name, **asdict(verdict)}
            self.path.write_text(json.dumps({"commit": self.commit, "verdicts": self.known}, indent=1))


def decide(exercise: Exercise, setting: Setting) -> Verdict:
    """Run an exercise until the verdict is clear."""
    if exercise.needs is not None:
        return Verdict(Word.NOT_RUN, exercise.needs)
    began, trials = time.monotonic(), list[dict[str, Seen]]()
    while True:
        trials.append(tried(exercise, setting, together=not trials))
        verdict = judge(exercise, trials)
        if verdict.word in FINE or len(trials) == TRIALS:
            return replace(verdict, seconds=time.monotonic() - began)


def tried(exercise: Exercise, setting: Setting, together: bool) -> dict[str, Seen]:
    """Run an exercise once on each switch, at the same time or one after the other, and keep what was said."""
    on = setting.on
    if exercise.grpc and shutil.which("simple_switch_grpc") is None:
        on = (SHIM,)
    seen: dict[str, Seen] = {}
    with tempfile.TemporaryDirectory(dir=setting.keep) as scratch:
        for switches in [on] if together else [(each,) for each in on]:
            seen |= seen_on(switches, exercise, setting.folder, Path(scratch), setting.python)
    for switch, each in seen.items():
        name = re.sub(r"\W+", "-", exercise.name)
        (setting.keep / f"{name}.{switch}.txt").write_text(f"{each.output}\n\n{each.failure}\n")
    return seen


def commit_of_switches() -> str:
    """The last commit that changed what switches run, and `-dirty` if files differ from it."""
    commit = git("log", "-1", "--abbrev=12", "--format=%h", "--", *SWITCH_CODE)
    return f"{commit}-dirty" if git("status", "--porcelain", "--", *SWITCH_CODE) else commit


def git(*words: str) -> str:
    """What git says."""
    command = ["git", "-C", str(Path(__file__).parents[2]), *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", default="", help="texts, one of which must be in an exercise's name")
    parser.add_argument("--on", default=f"{BMV2},{SHIM}")
    parser.add_argument("--keep", type=Path, default=Path("/var/tmp/exercises"), help="for all output; not in /tmp")
    parser.add_argument("--anew", action="store_true", help="take no verdict of an earlier run")
    parser.add_argument("--at-once", type=int, default=1, help="so many exercises at the same time")
    parser.add_argument("--python", type=Path, default=Path(sys.executable).parent, help="the folder of their python3")
    return parser.parse_args()


def chosen(path: Path, only: str) -> list[Exercise]:
    """The exercises of a list whose names have one of these texts."""
    wanted = [text for text in only.split(",") if text]
    return [each for each in read_list(path) if not wanted or any(text in each.name for text in wanted)]


def run(exercises: Sequence[Exercise], setting: Setting, kept: KeptVerdicts, at_once: int) -> list[Verdict]:
    """The verdicts of exercises, each told when it is known."""
    screen = Screen(soft_wrap=True)

    def verdict_of(exercise: Exercise) -> Verdict:
        verdict = kept.get(exercise)
        if verdict is None:
            verdict = decide(exercise, setting)
            kept.put(exercise, verdict)
        told = (exercise.name, verdict.word, f"{verdict.seconds:.0f} s", verdict.ran, verdict.why)
        screen.print(*told, sep=" | ", markup=False, highlight=False)
        sys.stdout.flush()
        return verdict

    with ThreadPoolExecutor(at_once) as pool:
        try:
            return list(pool.map(verdict_of, exercises))
        except BaseException:
            STOPPED.set()
            raise


def table_of(exercises: Sequence[Exercise], verdicts: Sequence[Verdict]) -> Table:
    """A row per exercise; a known cause stands for what was seen to differ."""
    table = Table("exercise", "verdict", "ran", "trials", "why")
    for exercise, verdict in zip(exercises, verdicts, strict=True):
        why = exercise.differs if exercise.differs and verdict.word not in FINE else verdict.why[:80]
        table.add_row(exercise.name, verdict.word, verdict.ran, str(verdict.trials), why)
    return table


def unexplained(exercise: Exercise, verdict: Verdict) -> bool:
    """Whether an exercise differs without a known cause."""
    return verdict.word == Word.DIFFERS and exercise.differs is None


def main() -> None:
    """Run all exercises of a list, and print a table; the exit code is 1 if one differs without a known cause."""
    given, began = arguments(), time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given.keep.mkdir(parents=True, exist_ok=True)
    setting = Setting(given.folder.resolve(), tuple(given.on.split(",")), given.keep.resolve(), given.python.absolute())
    kept = KeptVerdicts(setting.keep / f"{given.list.stem}.json", commit_of_switches(), given.anew)
    exercises = chosen(given.list, given.only)
    verdicts = run(exercises, setting, kept, given.at_once)
    screen = Screen(width=200)
    screen.print(table_of(exercises, verdicts))
    words = Counter(verdict.word for verdict in verdicts)
    screen.print(f"{', '.join(f'{word}: {count}' for word, count in words.most_common())} (commit {kept.commit})")
    spent = sum(verdict.seconds for verdict in verdicts)
    screen.print(f"{time.monotonic() - began:.0f} s in this run, {spent:.0f} s for all verdicts")
    raise SystemExit(any(map(unexplained, exercises, verdicts)))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("ended: the same command goes on from here") from None
