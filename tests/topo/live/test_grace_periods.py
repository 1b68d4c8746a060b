"""Grace periods are expedited while a network comes and goes, and as they were at all other times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inakit.topo.live import ledger
from inakit.topo.live.ledger import GracePeriods, Ledger, clean_dead_runs


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for ledgers that other runs of this machine do not share."""
    monkeypatch.setattr(ledger, "ROOT", tmp_path / "ledgers")
    return tmp_path / "ledgers"


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """Stands in for the kernel's switch."""
    path = tmp_path / "rcu_expedited"
    path.write_text("0\n")
    return path


def test_they_are_expedited_for_a_while(setting: Path) -> None:
    with Ledger.open() as opened:
        periods = GracePeriods(opened, setting)
        periods.expedite()
        assert setting.read_text() == "1"
        periods.relax()
        assert setting.read_text() == "0"


def test_they_are_ordinary_after_a_run_that_failed(setting: Path) -> None:
    with Ledger.open() as opened:
        GracePeriods(opened, setting).expedite()
    assert setting.read_text() == "0"


def test_who_has_them_expedited_all_the_time_keeps_them_so(setting: Path) -> None:
    setting.write_text("1\n")
    with Ledger.open() as opened:
        periods = GracePeriods(opened, setting)
        periods.expedite()
        periods.relax()
    assert setting.read_text() == "1\n"


def test_of_two_runs_the_later_leaves_nothing_behind(setting: Path) -> None:
    """The second finds the first one's setting, which is not the machine's."""
    with Ledger.open() as first, Ledger.open() as second:
        GracePeriods(first, setting).expedite()
        later = GracePeriods(second, setting)
        later.expedite()
        first.close()
        later.relax()
    assert setting.read_text() == "0"


def test_where_they_may_not_be_set_they_stay(tmp_path: Path) -> None:
    with Ledger.open() as opened:
        periods = GracePeriods(opened, tmp_path / "absent")
        periods.expedite()
        periods.relax()
    assert not (tmp_path / "absent").exists()


def test_the_next_run_restores_them_after_kill_9(setting: Path, root: Path) -> None:
    killed = f"""
import os
from pathlib import Path
from inakit.topo.live import ledger
from inakit.topo.live.ledger import GracePeriods
ledger.ROOT = Path({str(root)!r})
GracePeriods(ledger.Ledger.open(), Path({str(setting)!r})).expedite()
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -9
    assert setting.read_text() == "1"
    assert len(clean_dead_runs()) == 1
    assert setting.read_text() == "0"
