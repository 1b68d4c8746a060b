"""The table of commands: it says what the commands say of themselves, and nothing is loaded that is not called."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from inakit.experiments.cli import commands
from inakit.experiments.cli.app import LazyCommand, app
from inakit.experiments.cli.known_commands import COMMANDS, Command, Group
from inakit.topo.errors import EXTRAS


def rows(table: Mapping[str, Command | Group] = COMMANDS) -> Iterator[Command]:
    for row in table.values():
        yield from rows(row.commands) if isinstance(row, Group) else (row,)


def loaded(command: TyperGroup) -> TyperGroup:
    """The group with each of its commands loaded, as typer makes a group of commands that are all imported."""
    kinds = {name: each.loaded() if isinstance(each, LazyCommand) else each for name, each in command.commands.items()}
    return TyperGroup(name=command.name, help=command.help, params=command.params, commands=kinds)


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: row.function.rpartition(".")[2])
def test_a_line_is_the_first_paragraph_of_the_command(row: Command) -> None:
    module, _, function = row.function.partition(":")
    text = inspect.getdoc(getattr(import_module(module), function)) or ""
    assert row.help == " ".join(text.partition("\n\n")[0].split())


def test_every_module_of_commands_is_in_the_table() -> None:
    folder = Path(*commands.__path__)
    paths = [path.relative_to(folder).with_suffix("") for path in folder.rglob("[!_]*.py")]
    found = {".".join((commands.__name__, *path.parts)) for path in paths}
    assert found == {row.function.partition(":")[0] for row in rows()}


@pytest.mark.parametrize("width", ["40", "80", "200"])
@pytest.mark.parametrize("name", ["", "labs", "switch"])
def test_a_list_of_commands_looks_as_if_all_were_loaded(
    name: str, width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)
    group = whole.commands[name] if name else whole
    assert isinstance(group, TyperGroup)
    lazy, eager = (shown(each, name, capsys) for each in (group, loaded(group)))
    assert all(each in lazy for each in group.commands)
    assert lazy == eager


def shown(group: TyperGroup, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The help of a group."""
    group.main(["--help"], prog_name=f"inakit {name}", standalone_mode=False)
    return capsys.readouterr().out


def in_a_new_process(arguments: str, before: str = "", after: str = "pass") -> subprocess.CompletedProcess[str]:
    """What comes of `inakit` with these arguments in a process that has nothing loaded, with code around it."""
    lines = ("import sys", before, "from inakit.experiments.cli.main import main", "try: main()", f"finally: {after}")
    command = [sys.executable, "-c", "\n".join(lines), *arguments.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        ("--help", "numpy pydantic yaml inakit.experiments.cli.commands inakit.experiments.run"),
        ("study --help", "numpy yaml inakit.experiments.cli.commands inakit.experiments.run"),
        ("emulate --help", "matplotlib"),
        ("calibrate --help", "matplotlib"),
        (
            "plan",
            "matplotlib networkx scapy psutil joblib pyarrow google grpc inakit.switch.program",
        ),
    ],
)
def test_only_what_a_command_needs_is_loaded(arguments: str, absent: str) -> None:
    done = in_a_new_process(arguments, after=f"print([name for name in {absent.split()} if name in sys.modules])")
    assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (0, "[]", "")


def test_garbage_is_collected_while_a_command_runs() -> None:
    look = "import gc, inakit.experiments.run.planning as p\n"
    look += "p.print_plan = lambda *given: print(gc.isenabled(), gc.get_freeze_count() > 50_000)"
    done = in_a_new_process("plan", before=look)
    assert done.stdout == "True True\n", done.stderr
    assert gc.isenabled()


def without(*packages: str) -> str:
    """Code after which the packages are not found."""
    return f"""
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())"""


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [("study run study.yml", "study"), ("hardware export plan", "hardware"), ("report study.yml", "study")],
)
def test_a_command_names_the_extra_that_it_lacks_in_a_line(arguments: str, extra: str) -> None:
    done = in_a_new_process(arguments, without(*EXTRAS))
    package = {"study": "pyarrow", "hardware": "protobuf"}[extra]
    said = f"inakit: this needs {package}, which is not installed: pip install 'inakit[{extra}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_only_what_needs_an_extra_lacks_it() -> None:
    """Every module of experiments/ is loaded without extras but those that read and write what extras are for."""
    kept = ("hardware.handover", "study.commands")
    names = [".".join(path.with_suffix("").parts) for path in sorted(experiments_files())]
    lines = (
        "from importlib import import_module",
        f"for name in {[name for name in names if name.removeprefix('inakit.experiments.') not in kept]}:",
        "    import_module(name)",
    )
    command = [sys.executable, "-c", "\n".join(("import sys", without(*EXTRAS), *lines))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def experiments_files() -> Iterator[Path]:
    """The modules of experiments/, as paths below the folder of the package."""
    folder = Path(*commands.__path__).parents[1]
    return (Path("inakit", "experiments", path.relative_to(folder)) for path in folder.rglob("[!_]*.py"))


def test_a_plan_is_written_without_what_only_hardware_takes(tmp_path: Path) -> None:
    done = in_a_new_process(f"plan --topo leafspine --output {tmp_path}", without(*EXTRAS))
    assert (done.returncode, done.stderr) == (0, "")
    said = "aro: the export to hardware needs protobuf, which is not installed: pip install 'inakit[hardware]'\n"
    assert said in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"plan.json", "fabric.yml", "jobs.yml", "entries"}
