"""Runs exercises of others on BMv2 and on the kit's switches under its names, and prints where they differ.

    python tests/third_party/exercises.py FOLDER LIST.yml [--only TEXT,...] [--on bmv2,shim] [--python FOLDER]

A list (such as `p4_learning.yml`, beside this file) says for each exercise of a folder which network it starts, and
which lines of Mininet's command line check it, mostly those of the exercise's own README. Nothing of the exercise is
changed; its solution is laid over it. What the checks say must be the same on both, and as the list expects, if it says
so.

Needs Mininet, p4-utils, p4c-bm2-ss, simple_switch and root. `--python` is the folder of the `python3` that runs their
scripts, which need other packages than the kit.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console as Screen
from rich.progress import track
from rich.table import Table
from sandbox import Console, NoAnswerError, make_tools

from switch.server.shim import make_shim

BMV2, SHIM = "bmv2", "shim"
SHOWN = r"^\w+ -> .*|Results: .*|\d+ received"
"""What is compared of a check's output, unless it says otherwise: what Mininet and ping say of reachability."""

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TRIALS = 2
"""So often an exercise is run on both before a difference counts: on a busy machine BMv2 loses packets."""

START_S, CHECK_S = 120.0, 150.0


@dataclass(frozen=True)
class Check:
    """A line for Mininet's command line, and what is compared of its output: all that matches `keep`.

    It is `expect`, if that is known. A check that says what it keeps must show something, or else say that it expects
    nothing; other lines may only do something.
    """

    run: str
    keep: str = SHOWN
    expect: list[str] | None = None

    @property
    def must_show(self) -> bool:
        """Whether an output in which nothing matches says nothing at all."""
        return self.keep is not SHOWN and self.expect is None


@dataclass(frozen=True)
class Exercise:
    """An exercise: the files over it, the command that starts its network, and its checks.

    One that `needs` something that this machine does not have is only named. BMv2 takes part in those with `grpc` only
    where simple_switch_grpc is installed; elsewhere what they expect is the judge. `traffic` are two hosts between
    which throughput can be measured, once the lines `before_traffic` have run.
    """

    name: str
    start: str
    checks: tuple[Check, ...]
    folder: str
    over: str | None = None
    needs: str | None = None
    grpc: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    traffic: tuple[str, str] | None = None
    before_traffic: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What the checks of an exercise showed, with all output, and what ran the programs."""

    shown: list[list[str]]
    output: str
    ran: str = ""
    failure: str = ""


def read_list(path: Path) -> Iterator[Exercise]:
    """The exercises of a list."""
    for each in yaml.safe_load(path.read_text()):
        for start in each.pop("starts", None) or [each.pop("start", "")]:
            name = f"{each['folder']}: {start}" if start else each["folder"]
            yield Exercise(name, start, tuple(checks_of(each.get("checks", ()))), **without(each, "checks"))


def without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """A dictionary without some keys."""
    return {name: value for name, value in given.items() if name not in names}


def checks_of(given: Iterable[str | dict[str, Any]]) -> Iterator[Check]:
    """Checks, each a line or a dictionary with what `Check` has."""
    for each in given:
        yield Check(each) if isinstance(each, str) else Check(**each)


def prepared(
    exercise: Exercise, folder: Path, switch: str, copied: Path, tools: Sequence[Path]
) -> tuple[Path, list[Path]]:
    """Copy an exercise, and give the folder in which it starts and the folders in which commands are looked for first.

    `tools` come before other commands.
    """
    shutil.copytree(folder, copied, ignore=shutil.ignore_patterns(".git", "*.pcap", "images", "slides"))
    work = copied / exercise.folder
    if exercise.over is not None:
        shutil.copytree(work / exercise.over, work, dirs_exist_ok=True)
    return work, [make_shim(), *tools] if switch == SHIM else list(tools)


def run_exercise(exercise: Exercise, folder: Path, switch: str, copied: Path, tools: Sequence[Path]) -> Seen:
    """Run an exercise on a switch, in a copy of its folder."""
    work, path = prepared(exercise, folder, switch, copied, tools)
    with Console(["sh", "-c", exercise.start], work, path, exercise.environment) as console:
        seen = seen_in(console, exercise)
    return Seen(seen.shown, seen.output, ran_by(work), seen.failure)


def seen_on(on: Sequence[str], exercise: Exercise, folder: Path, scratch: Path, python: Path) -> dict[str, Seen]:
    """Run an exercise on several switches, side by side."""
    tools = [make_tools(scratch / "tools"), python]
    with ThreadPoolExecutor() as pool:
        runs = {switch: pool.submit(run_exercise, exercise, folder, switch, scratch / switch, tools) for switch in on}
        return {switch: run.result() for switch, run in runs.items()}


def seen_in(console: Console, exercise: Exercise) -> Seen:
    """Run the checks one after the other."""
    shown: list[list[str]] = []
    output = ""
    try:
        output += console.read(START_S)
        for check in exercise.checks:
            said = COLOURS.sub("", console.run(check.run, CHECK_S)).replace("\r", "")
            output += f"\nmininet> {check.run}\n{said}"
            shown.append(re.findall(check.keep, said, re.M))
    except NoAnswerError as error:
        return Seen(shown, f"{output}{error}", failure=last_line(str(error)))
    return Seen(shown, output)


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(COLOURS.sub("", text).splitlines()) if line.strip()), "nothing was said")


def ran_by(folder: Path) -> str:
    """How many switches ran in the kernel and interpreted, as their logs say."""
    found: Counter[str] = Counter()
    for log in (path for pattern in ("log/*.log", "logs/*.log") for path in folder.glob(pattern)):
        text = log.read_text(errors="replace")
        found["kernel"] += "in the kernel" in text
        found["interpreted"] += "interpreted" in text
    return ", ".join(f"{count} {name}" for name, count in found.items() if count)


@dataclass(frozen=True)
class Verdict:
    """How an exercise went: `word`, and why, in short and in full."""

    word: str
    why: str = ""
    ran: str = ""


def judge(exercise: Exercise, seen: dict[str, Seen]) -> Verdict:
    """Compare what the switches showed with one another, and with what is expected."""
    shim = seen.get(SHIM)
    for switch, each in seen.items():
        if each.failure and not (switch == SHIM and BMV2 in seen and seen[BMV2].failure == each.failure):
            return Verdict("fails on BMv2" if switch == BMV2 else "DIFFERS", f"{switch}: {each.failure}")
    for number, check in enumerate(exercise.checks):
        shown = {name: each.shown[number] for name, each in seen.items() if number < len(each.shown)}
        if check.expect is not None and any(found != check.expect for found in shown.values()):
            word = "DIFFERS" if len(set(map(str, shown.values()))) > 1 or BMV2 not in seen else "not as its README says"
            return Verdict(word, f"{check.run}: {shown}, expected {check.expect}", shim.ran if shim else "")
        if check.must_show and not any(shown.values()):
            return Verdict("shows nothing", check.run, shim.ran if shim else "")
        if len(set(map(str, shown.values()))) > 1:
            return Verdict("DIFFERS", f"{check.run}: {shown}", shim.ran if shim else "")
    return Verdict("as with BMv2" if BMV2 in seen else "as expected", "", shim.ran if shim else "")


def decide(exercise: Exercise, folder: Path, on: Sequence[str], keep: Path, python: Path) -> Verdict:
    """Run an exercise until the verdict is clear."""
    if exercise.needs is not None:
        return Verdict("not run", exercise.needs)
    if exercise.grpc and shutil.which("simple_switch_grpc") is None:
        on = [SHIM]
    verdict = Verdict("not run")
    for _ in range(TRIALS):
        with tempfile.TemporaryDirectory(dir=keep) as scratch:
            seen = seen_on(on, exercise, folder, Path(scratch), python)
        for switch, each in seen.items():
            name = re.sub(r"\W+", "-", exercise.name)
            (keep / f"{name}.{switch}.txt").write_text(f"{each.output}\n\n{each.failure}\n")
        verdict = judge(exercise, seen)
        if verdict.word.startswith("as "):
            break
    return verdict


def main() -> None:
    """Run all exercises of a list, and print a table; the exit code is 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", default="", help="texts, one of which must be in an exercise's name")
    parser.add_argument("--on", default=f"{BMV2},{SHIM}")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "exercises"), help="for all output")
    parser.add_argument("--python", type=Path, default=Path(sys.executable).parent, help="the folder of their python3")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    wanted = [text for text in given.only.split(",") if text]
    chosen = [each for each in read_list(given.list) if not wanted or any(text in each.name for text in wanted)]
    screen, table, words = Screen(width=200), Table("exercise", "verdict", "ran", "why"), Counter[str]()
    for exercise in track(chosen, "exercises", console=Screen(stderr=True)):
        on, keep = given.on.split(","), given.keep.resolve()
        verdict = decide(exercise, given.folder.resolve(), on, keep, given.python.absolute())
        screen.print(exercise.name, verdict.word, verdict.ran, verdict.why, markup=False, highlight=False)
        table.add_row(exercise.name, verdict.word, verdict.ran, verdict.why[:80])
        words[verdict.word] += 1
    screen.print(table)
    screen.print(", ".join(f"{word}: {count}" for word, count in words.most_common()))
    raise SystemExit(bool(words["DIFFERS"]))


if __name__ == "__main__":
    main()
