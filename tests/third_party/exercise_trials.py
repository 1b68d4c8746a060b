"""Runs an exercise on BMv2 and on the kit's switches, each in a sandbox, and keeps what its checks show."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from exercise_list import Exercise
from sandbox import Console, NoAnswerError, make_tools

from inakit.switch.server.serve import make_shim

BMV2, SHIM = "bmv2", "shim"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
START_S, CHECK_S = 600.0, 600.0


@dataclass(frozen=True)
class Seen:
    """What the checks of an exercise showed, with all output, and what ran the programs."""

    shown: list[list[str]]
    output: str = ""
    ran: str = ""
    failure: str = ""


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


def seen_on(on: Sequence[str], exercise: Exercise, folder: Path, scratch: Path, python: Path) -> dict[str, Seen]:
    """Run an exercise on several switches, side by side, each in a copy of its folder."""
    tools = [make_tools(scratch / "tools"), python]
    with ThreadPoolExecutor() as pool:
        runs = {switch: pool.submit(run_exercise, exercise, folder, switch, scratch / switch, tools) for switch in on}
        return {switch: run.result() for switch, run in runs.items()}


def run_exercise(exercise: Exercise, folder: Path, switch: str, copied: Path, tools: Sequence[Path]) -> Seen:
    """Run an exercise on a switch, in a copy of its folder."""
    work, path = prepared(exercise, folder, switch, copied, tools)
    with Console(["sh", "-c", exercise.start], work, path, exercise.environment) as console:
        seen = seen_in(console, exercise)
    return Seen(seen.shown, seen.output, ran_by(work), seen.failure)


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
        found["interpreted" if "is interpreted" in text else "kernel" if "in the kernel" in text else ""] += 1
    return ", ".join(f"{count} {name}" for name, count in found.items() if name)
