"""What a shell completes after `inakit`: commands, options, and the names that their values may be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import ENTRY, inakit

from inakit.experiments.cli import options as completion
from inakit.experiments.run.run import MODES
from inakit.experiments.worlds.registry import AUTO, WORLDS
from inakit.planner.registry import METHODS

NAMED = f"import sys; sys.argv[0] = 'inakit'; {ENTRY}"
"""The entry as it is found under the name by which a shell knows it."""


def completed(line: str, at: Path, entry: str = NAMED) -> list[str]:
    """What a shell gets for the last word of a line, as bash asks for it."""
    asked = {"_INAKIT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    answer = inakit(at=at, environment=asked, entry=entry)
    assert answer.error == ""
    return answer.output.split()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("inakit pla", ["plan", "planners", "place"]),
        ("inakit --ver", ["--version"]),
        ("inakit plan --pla", ["--planners"]),
        ("inakit hardware d", ["diff"]),
        ("inakit plan --topo inart", ["inart-testbed"]),
        ("inakit topo --planners inarouting", ["inarouting", "inarouting-opt"]),
        ("inakit emulate --planners aro,sha", ["aro,sharp"]),
        ("inakit emulate --switch ", ["virtual", "bmv2", "fast", "auto"]),
        ("inakit emulate --mode re", ["reliable", "replay"]),
        ("inakit train --policies atp,switch", ["atp,switchml", "atp,switchml-timeout"]),
        ("inakit plan --chip tofino", ["tofino1", "tofino2"]),
        ("inakit reproduce inarout", ["inarouting"]),
        ("inakit reproduce goat fig11", ["fig11"]),
        ("inakit plan --topo my", []),
        ("inakit report res", []),
        ("inakit nonsense --topo f", []),
    ],
)
def test_names_are_completed(line: str, names: list[str], tmp_path: Path) -> None:
    """Where there are none, the shell completes files."""
    assert completed(line, tmp_path) == names


def test_every_planner_is_completed_and_none_twice(tmp_path: Path) -> None:
    assert set(completed("inakit plan --planners ", tmp_path)) == set(METHODS)
    others = set(METHODS) - {"aro"}
    assert set(completed("inakit plan --planners aro,", tmp_path)) == {f"aro,{name}" for name in others}


def test_names_that_are_written_out_are_those_of_the_registries() -> None:
    """Their registries take too long to import for somebody who waits for a name."""
    assert set(completion.one_world("")) == {*WORLDS, AUTO}
    assert set(completion.one_mode("")) == set(MODES)


def test_an_error_is_not_printed_amid_what_is_typed(tmp_path: Path) -> None:
    broken = "import inakit.topo.fabric.generators as g; del g.FABRICS; "
    assert completed("inakit plan --topo fat", tmp_path, broken + NAMED) == []
    assert completed("inakit plan --topo 'fat", tmp_path) == ["fattree"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_a_command_that_is_called_by_its_path(tmp_path: Path) -> None:
    """As in a checkout, where it is `.venv/bin/inakit`."""
    program = tmp_path / ".venv" / "bin" / "inakit"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\n{ENTRY}\n")
    program.chmod(0o755)
    script = """
    eval "$(_INAKIT_COMPLETE=source_bash .venv/bin/inakit)"
    complete -p inakit
    COMP_WORDS=(.venv/bin/inakit plan --topo leaf) COMP_CWORD=3
    _inakit_completion .venv/bin/inakit && echo "${COMPREPLY[@]}"
    """
    where = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=where, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["complete -o default -F _inakit_completion inakit", "leafspine"]
    assert done.stderr == ""
