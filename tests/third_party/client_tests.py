"""Runs the tests that clients of P4Runtime bring on simple_switch_grpc and on the kit's, and prints where they differ.

    python tests/third_party/client_tests.py FOLDER SUITES.yml [--only TEXT,...] [--on bmv2,shim] [--python FOLDER]

A file of suites (such as `finsy.yml`, beside this file) says which files of pytest a client has in its folder, and what
is done before each of them. Nothing of the client is changed. A test must end on both switches in the same way.

Needs what the client's tests need, simple_switch_grpc and root. `--python` is the folder of a `python3` with the client
and with pytest.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import yaml
from exercise_trials import BMV2, SHIM
from rich.console import Console as Screen
from rich.progress import track
from rich.table import Table
from sandbox import Console, NoAnswerError, make_tools

from inakit.switch.server.serve import make_shim

PLUGINS = Path(__file__).with_name("plugins")
END, RESULTS = "-- the tests have ended --", "results.xml"
PATIENCE_S = 400.0
"""So long one file of tests may take."""
TRIALS = 2
"""So often a file is run on both before a difference counts: tests wait for times that a busy machine exceeds."""
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Suite:
    """Files of tests: the folder in which pytest runs, which files, and the lines of shell before each."""

    name: str
    folder: str
    files: str
    before: str = ""
    arguments: str = ""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How one test ended on a switch, and why, if it did not pass."""

    how: str
    why: str = ""


@dataclass(frozen=True)
class Setting:
    """What all runs share: the client's folder, the switches, a folder for all output, the folder of its Python."""

    folder: Path
    on: tuple[str, ...]
    keep: Path
    python: Path


def read_suites(path: Path) -> list[Suite]:
    """The suites of a file."""
    return [Suite(**each) for each in yaml.safe_load(path.read_text())]


def files_of(suite: Suite, folder: Path) -> Iterator[str]:
    """The files of a suite, as pytest is given them."""
    within = folder / suite.folder
    for pattern in suite.files.split():
        yield from (str(path.relative_to(within)) for path in sorted(within.glob(pattern)))


def run(suite: Suite, file: str, switch: str, setting: Setting) -> dict[str, Ended]:
    """Run a file of tests on a switch, in a copy of the client's folder: how each test ended."""
    with tempfile.TemporaryDirectory(dir=setting.keep) as scratch:
        copied = Path(scratch, "client")
        shutil.copytree(setting.folder, copied, ignore=shutil.ignore_patterns(".git"))
        results = Path(scratch, RESULTS)
        options = f"-p no:cacheprovider --junitxml={results} {suite.arguments}"
        pytest = f"PYTHONPATH={PLUGINS}:$PYTHONPATH python3 -m pytest {options} {file}"
        output = said(f"{suite.before}\n{pytest}\necho '{END}'", copied / suite.folder, switch, suite, setting)
        name = "-".join((suite.name, *Path(file).with_suffix("").parts, switch))
        (setting.keep / f"{name}.txt").write_text(output)
        return read_results(results) if results.exists() else {}


def said(script: str, folder: Path, switch: str, suite: Suite, setting: Setting) -> str:
    """What a script says in a sandbox where `simple_switch_grpc` is the one of BMv2, or the kit's."""
    path = [make_tools(folder.parent / "tools"), setting.python]
    path = [make_shim(), *path] if switch == SHIM else path
    script = "\n".join((*(f"export {name}='{value}'" for name, value in suite.environment.items()), script))
    try:
        with Console(["sh", "-c", script], folder, path, {}) as console:
            return console.read(PATIENCE_S, until=END)
    except NoAnswerError as error:
        return str(error)


def read_results(path: Path) -> dict[str, Ended]:
    """How each test of a JUnit file ended."""
    found: dict[str, Ended] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        reasons = [each for each in case if each.tag in ("failure", "error", "skipped")]
        how = PASSED if not reasons else SKIPPED if reasons[0].tag == "skipped" else FAILED
        found[case.attrib["name"]] = Ended(how, reasons[0].attrib.get("message", "") if reasons else "")
    return found


def tried(suite: Suite, file: str, setting: Setting) -> dict[str, dict[str, Ended]]:
    """How the tests of a file ended on each switch: in the first trial that is the same on all, or in the last."""
    seen: dict[str, dict[str, Ended]] = {}
    for _ in range(TRIALS):
        seen = {switch: run(suite, file, switch, setting) for switch in setting.on}
        if not any(differing(seen)):
            break
    return seen


def tests_of(seen: dict[str, dict[str, Ended]]) -> list[str]:
    """The names of all tests that ran anywhere."""
    return list(dict.fromkeys(name for ended in seen.values() for name in ended))


def differing(seen: dict[str, dict[str, Ended]]) -> Iterator[str]:
    """What differs between the switches: the test, how it ended on each, and why."""
    for name in tests_of(seen):
        ends = {switch: ended.get(name, Ended("not run")) for switch, ended in seen.items()}
        if len({end.how for end in ends.values()}) > 1:
            yield f"{name}: " + "; ".join(f"{switch}: {end.how} {end.why[:300]}" for switch, end in ends.items())


def counted(ended: dict[str, Ended]) -> str:
    """How many tests ended how."""
    return ", ".join(f"{count} {how}" for how, count in Counter(end.how for end in ended.values()).items()) or "none"


def print_table(suites: Sequence[Suite], wanted: Sequence[str], setting: Setting) -> bool:
    """Run all files, print a row for each, and say whether all tests ended in the same way."""
    screen, table = Screen(width=160), Table("suite", "tests", *setting.on, "differ")
    chosen = [(suite, file) for suite in suites for file in files_of(suite, setting.folder)]
    chosen = [each for each in chosen if not wanted or any(text in f"{each[0].name} {each[1]}" for text in wanted)]
    total = same = 0
    for suite, file in track(chosen, "files", console=Screen(stderr=True)):
        seen = tried(suite, file, setting)
        differences = list(differing(seen))
        for each in differences:
            screen.print(f"{suite.name} {file}: {each}", markup=False, highlight=False)
        total, same = total + len(tests_of(seen)), same + len(tests_of(seen)) - len(differences)
        table.add_row(suite.name, file, *(counted(seen[switch]) for switch in setting.on), str(len(differences)))
    screen.print(table)
    screen.print(f"{same} of {total} tests end in the same way ({same / max(total, 1):.0%})")
    return same == total


def main() -> None:
    """Run all suites of a file; the exit code is 1 if a test ends differently."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("suites", type=Path)
    parser.add_argument("--only", default="", help="texts, one of which must be in a file's name")
    parser.add_argument("--on", default=f"{BMV2},{SHIM}")
    parser.add_argument("--keep", type=Path, default=Path("/var/tmp/client_tests"), help="for all output; not in /tmp")
    parser.add_argument("--python", type=Path, default=Path(sys.executable).parent, help="the folder of a python3")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    on = tuple(given.on.split(","))
    setting = Setting(given.folder.resolve(), on, given.keep.resolve(), given.python.absolute())
    wanted = [text for text in given.only.split(",") if text]
    raise SystemExit(not print_table(read_suites(given.suites), wanted, setting))


if __name__ == "__main__":
    main()
