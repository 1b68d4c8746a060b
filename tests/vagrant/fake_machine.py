"""A machine to provision without one: a copy of `vagrant/`, and a PATH on which the commands that matter are fakes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAKE_COMMAND = Path(__file__).with_name("fake_command.sh")
FAKED = ["apt-get", "curl", "dpkg", "dpkg-query", "id", "make", "p4c-bm2-ss", "python3.11", "simple_switch", "sleep"]
REAL = ["awk", "basename", "bash", "cat", "cp", "dirname", "env", "mkdir", "mv"]


def read_pins(path: Path = ROOT / "vagrant" / "versions.env") -> dict[str, str]:
    """The pins of `versions.env`, by name."""
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if line[:1].isupper())


class FakeMachine:
    """Runs the scripts of `vagrant/` with nothing but fakes and a few text tools on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.kit = folder / "kit"
        self.etc = folder / "etc"
        self.state = folder / "state"
        self._bin = folder / "bin"
        shutil.copytree(ROOT / "vagrant", self.kit / "vagrant")
        for directory in (self.etc, self.state / "packages", self.state / "site-packages", self._bin):
            directory.mkdir(parents=True)
        self.set_release("ubuntu", read_pins()["UBUNTU_RELEASE"])
        self._fill_path()

    def _fill_path(self) -> None:
        for name in FAKED:
            (self._bin / name).symlink_to(FAKE_COMMAND)
        for name in REAL:
            real = shutil.which(name)
            assert real, f"the tests need {name}"
            (self._bin / name).symlink_to(real)

    def set_release(self, distribution: str, version: str) -> None:
        (self.etc / "os-release").write_text(f'ID={distribution}\nVERSION_ID="{version}"\n')

    def run(self, script: str = "provision.sh", **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of `vagrant/`; `variables` steer the fakes (FAKE_FAILURE, FAKE_USER_ID, ...)."""
        environment = {"PATH": str(self._bin), "ETC": str(self.etc), "FAKE_STATE": str(self.state), **variables}
        command = [str(self._bin / "bash"), str(self.kit / "vagrant" / script)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def take_calls(self) -> list[str]:
        """The faked commands run since the last time, in order."""
        log = self.state / "calls"
        calls = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return calls

    def files(self) -> dict[Path, str]:
        """Everything that provisioning has written, by path."""
        written = [path for folder in (self.kit, self.etc, self.state) for path in folder.rglob("*") if path.is_file()]
        return {path: path.read_text() for path in written if path.name != "calls"}
