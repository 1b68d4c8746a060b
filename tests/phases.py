"""The two phases of `make test`: tests that can run beside others, on all processors; then networks, one by one.

    python tests/phases.py [options and folders of pytest]

Networks of the second phase have the machine to themselves, because their rates are measured. Single switches, and
networks whose packets or sums are only compared, run in the first. Each test process has a network namespace and a
folder of ledgers of its own, so that no process sees or removes another's networks, also on a shared machine. One line
for each phase gives its outcome, and the command fails if either phase fails.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

BESIDE, NETWORKS = "beside", "networks"
COMPARED = ("p4", "stf", "switch")
"""Folders whose tests that need root compare packets and measure no rate, unless they are marked `alone`.

Single tests of other folders are marked `beside`."""

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
LEDGERS = Path("/run/inakit")
TESTS = Path(__file__).resolve().parent
NOTHING_TO_RUN = int(pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--phase", choices=[BESIDE, NETWORKS], help="only the tests of one phase of `make test`")
    parser.addoption(
        "--handed-on", metavar="FILE", help="a file from the first phase with the places of the second phase's tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Separate the interfaces of test processes from each other, and from those of other users of the machine."""
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if config.getoption("phase", None) and runs_tests and os.geteuid() == 0:
        own_network()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without tests of the second phase in that phase: all were imported in the first."""
    handed_on = config.getoption("handed_on")
    if config.getoption("phase") != NETWORKS or not handed_on or not collection_path.is_file():
        return None
    files = read_files(Path(handed_on))
    return True if files is not None and collection_path not in files else None


@cache
def read_files(handed_on: Path) -> frozenset[Path] | None:
    """The files that the first phase lists; None if it ended earlier."""
    return frozenset(map(Path, handed_on.read_text().splitlines())) if handed_on.exists() else None


def write_files(handed_on: Path, items: list[pytest.Item]) -> None:
    """Write the files of the tests; each process of the first phase writes the same list, in one step."""
    own = handed_on.with_suffix(f".{os.getpid()}")
    own.write_text("".join(f"{path}\n" for path in sorted({item.path for item in items})))
    own.replace(handed_on)


def pytest_collection_finish() -> None:
    """Exclude the many objects of collected tests from all later garbage collections."""
    gc.freeze()


def own_network() -> None:
    """Give this process a network namespace with a /sys that shows it, and an empty folder for ledgers of networks.

    Control groups remain visible.

    If this is not allowed, as in some containers, networks cannot be built either, and their tests are skipped.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS | CLONE_NEWNET):
        if ctypes.get_errno() == errno.EPERM:
            return
        raise OSError(ctypes.get_errno(), "cannot create a network namespace for a test process")
    LEDGERS.mkdir(mode=0o755, exist_ok=True)
    with TemporaryDirectory() as aside:
        for command in (
            "mount --make-rslave /",
            f"mount --rbind /sys/fs {aside}",
            "mount -t sysfs sysfs /sys",
            f"mount --rbind {aside} /sys/fs",
            f"umount --lazy {aside}",
            f"mount -t tmpfs -o mode=0755 ledgers {LEDGERS}",
            "ip link set lo up",
        ):
            subprocess.run(command.split(), check=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--phase`, deselect the tests of the other one."""
    phase = config.getoption("phase")
    if phase is None:
        return
    found: dict[str, list[pytest.Item]] = {BESIDE: [], NETWORKS: []}
    for item in items:
        found[phase_of(item)].append(item)
    if phase == BESIDE and (handed_on := config.getoption("handed_on")):
        write_files(Path(handed_on), found[NETWORKS])
    items[:] = found.pop(phase)
    for others in found.values():
        config.hook.pytest_deselected(items=others)


def phase_of(item: pytest.Item) -> str:
    """The second phase has networks that are neither in `COMPARED` nor marked `beside`, and tests marked `alone`.

    BMv2 is too slow for networks that run beside other tests.
    """
    beside = item.get_closest_marker("beside") and not item.get_closest_marker("bmv2")
    measured = (
        item.get_closest_marker("root")
        and not beside
        and not any(item.path.is_relative_to(TESTS / folder) for folder in COMPARED)
    )
    return NETWORKS if measured or item.get_closest_marker("alone") else BESIDE


def main(arguments: Sequence[str]) -> int:
    """Run both phases, the second also if the first fails, and return the exit code. An interrupt ends both."""
    processors = len(os.sched_getaffinity(0))
    waiting = 1  # one process more than processors: single switches mostly wait for packets
    phases = {
        f"tests beside others, on {processors} processors": [
            "--phase",
            BESIDE,
            "-n",
            str(processors + waiting),
            "--dist",
            "loadfile",
            "--max-worker-restart",  # a test that kills its process is run again by each new process
            "1",
        ],
        "networks, one after the other": ["--phase", NETWORKS],
    }
    codes, lines = [], []
    with TemporaryDirectory() as folder:
        for name, options in phases.items():
            started = time.monotonic()
            codes.append(run([*options, f"--handed-on={folder}/networks", *arguments]))
            lines.append(f"{name}: {said(codes[-1])} after {time.monotonic() - started:.0f} s")
            if codes[-1] == pytest.ExitCode.INTERRUPTED:
                break
    print("", *lines, sep="\n", flush=True)
    return outcome(codes)


def run(arguments: Sequence[str]) -> int:
    """Run pytest and return its exit code. Compiled modules are kept, so that the many test processes share them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode
    except KeyboardInterrupt:  # pytest also received it, and has printed the interrupted test
        return int(pytest.ExitCode.INTERRUPTED)


def said(code: int) -> str:
    return {0: "passed", NOTHING_TO_RUN: "nothing to run"}.get(code, f"FAILED (exit code {code})")


def outcome(codes: Sequence[int]) -> int:
    """The exit code of the first phase that failed. A phase without tests counts only if both have none."""
    failed = [code for code in codes if code not in (0, NOTHING_TO_RUN)]
    return failed[0] if failed else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
