"""Every command in the README and the site can be typed; what needs no root and takes seconds is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_lines import OutdatedError, check, words
from pages import PAGES, ROOT, Command, commands, files_of
from typer.testing import CliRunner

from inakit.experiments.cli.app import app

QUICK = ("plan", "topo", "jobs", "planners", "check", "design", "dissector", "switch", "schedule")
"""Commands of `inakit` that need no root and take a second or two; those of them that stand in blocks are run."""
INPUTS = re.compile(r"\.(json|txt|pcap|stf)$|/jobs\.yml$")
"""Files that other commands write, jobs in a folder of theirs among them. What reads one that is absent is not run."""


def is_quick(command: Command) -> bool:
    """Whether a command of a block is to be run here."""
    program, *arguments = words(command.text) or [""]
    mine = program == "inakit" and arguments[0] in QUICK and "sudo" not in command.text
    return command.block and mine and all(Path(word).exists() for word in arguments if INPUTS.search(word))


def write_files(page: Path, folder: Path) -> None:
    """Put into a folder what the commands of a page read: the files that it writes down, and the project's tests."""
    for name, text in files_of(page).items():
        (folder / name).write_text(text)
    (folder / "tests").symlink_to(ROOT / "tests")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for command in commands(page):
        try:
            check(command.text, tmp_path)
            if is_quick(command):
                run(command)
        except Exception as error:
            raise AssertionError(f"{command.place}: `{command.text}`: {error}") from error


def test_commands_are_checked_under_make_as_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--durations=10")
    monkeypatch.setenv("ARGS", "--durations=10")
    check("sudo make emulate TOPO=fattree", ROOT)


def run(command: Command) -> None:
    """Run a command of `inakit` in this process; it ends well, and prints what the page says."""
    width = re.match(r"COLUMNS=(\d+) ", command.text)
    environment = {"COLUMNS": width[1] if width else "80", "NO_COLOR": "1"}
    done = CliRunner().invoke(app, words(command.text)[1:], env=environment)
    if done.exit_code:
        raise OutdatedError(f"exit code {done.exit_code}: {done.output}") from done.exception
    if command.output is not None:
        assert without_times(done.stdout) == without_times(command.output)


def without_times(output: str) -> list[str]:
    """The lines of an output, in which every duration in seconds is 0.00."""
    return [re.sub(r"\d+\.\d\d s\b", "0.00 s", line.rstrip()) for line in output.strip().splitlines()]


def test_pages_have_commands() -> None:
    """Else the other tests would look at nothing."""
    assert len(commands(ROOT / "docs" / "recipes.md")) > 30
    assert sum(command.output is not None for page in PAGES for command in commands(page)) >= 3
    main = [command.text.split("#")[0].strip() for command in commands(ROOT / "README.md")]
    assert {"sudo make emulate TOPO=fattree", "sudo make test"} <= set(main)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("inakit emulat --topo fattree", "has no command 'emulat'"),
        ("inakit emulate --topos fattree", "--topos"),
        ("inakit --versions", "has no command '--versions'"),
        ("inakit plan --topo fatree", "fatree"),
        ("inakit plan --planners aroo", "aroo"),
        ("inakit topo --planners aroo", "aroo"),
        ("inakit plan --planner aro", "--planner is now --planners"),
        ("inakit reproduce aro fig99", "fig99"),
        ("inakit reproduce arro --simulated", "arro"),
        ("sudo make emulate TOPO=fatree", "fatree"),
        ('sudo make emulate ARGS="--polices atp"', "--polices"),
        ('sudo make emulate ARGS="--policies apt"', "apt"),
        ("sudo make emulate SWITCH=fats", "fats"),
        ("sudo make emulate TOPOLOGY=fattree", "TOPOLOGY"),
        ("make doc", "doc"),
        (".venv/bin/pytest tests/planer", "tests/planer"),
        ("python -m inakit.switch.feature", "inakit.switch.feature"),
        ("inakitt plan", "inakitt"),
        ("sudo inakit top", "sudo .venv/bin/inakit"),
    ],
)
def test_a_command_that_does_not_exist_is_found(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=re.escape(why)):
        check(text, tmp_path)
