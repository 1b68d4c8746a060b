"""The Vagrantfile, the pins and the scripts as they stand: each pin is used, and the tools that judge them agree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_machine import FAKE_COMMAND, ROOT, read_pins

PINS = read_pins()
SCRIPTS = [*sorted((ROOT / "vagrant").rglob("*.sh")), FAKE_COMMAND]
STEPS = sorted((ROOT / "vagrant" / "steps").glob("*.sh"))


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"needs {tool} (it is not installed)")


def run(*command: str | Path, **variables: str) -> None:
    environment = {**os.environ, **variables}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("pin", PINS)
def test_pin_is_used(pin: str) -> None:
    users = [ROOT / "Vagrantfile", *SCRIPTS]
    assert any(re.search(rf"\b{pin}\b", path.read_text()) for path in users)


def test_versions_are_said_nowhere_else() -> None:
    values = [value for value in PINS.values() if value.startswith("http") or len(value) == 40]
    assert values
    assert not [path for path in SCRIPTS for value in values if value in path.read_text()]


def test_pins_have_their_form() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", PINS["P4_UTILS_COMMIT"]), "a branch or a tag can move, a commit cannot"
    assert re.fullmatch(r"\d{6}\.\d{2}\.\d", PINS["BOX_VERSION"])
    for name in ("BMV2_VERSION", "P4C_VERSION", "MININET_VERSION"):
        assert re.fullmatch(r"\d+\.\d+\.\*", PINS[name])


def test_links_of_the_package_stay_links_in_the_machine() -> None:
    """Vagrant's own arguments copy what they lead to, and a change of `topo/` would then be none of `inakit/topo/`."""
    assert 'rsync__args: ["--archive", "--delete", "-z"]' in (ROOT / "Vagrantfile").read_text()


def test_every_step_is_run_and_none_is_missing() -> None:
    listed = re.search(r"^STEPS=\((.*)\)$", (ROOT / "vagrant" / "provision.sh").read_text(), re.MULTILINE)
    assert listed
    assert sorted(listed[1].split()) == [path.stem for path in STEPS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_parses(script: Path) -> None:
    run("bash", "-n", script)


@needs("shellcheck")
def test_shellcheck_finds_nothing() -> None:
    run("shellcheck", "--external-sources", *SCRIPTS, ROOT / "vagrant" / "versions.env")


@needs("vagrant")
def test_vagrantfile_is_valid(tmp_path: Path) -> None:
    folders = {"HOME": str(tmp_path), "VAGRANT_HOME": str(tmp_path), "VAGRANT_DOTFILE_PATH": str(tmp_path / "dotfile")}
    run("vagrant", "validate", "--ignore-provider", VAGRANT_CWD=str(ROOT), **folders)
