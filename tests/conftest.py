"""The tiers of tests: pure tests run anywhere; marked ones need root, BMv2 (the reference switch) or a C compiler."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from inakit.topo.live.needs import missing_for_networks
from inakit.topo.ownership import given_to_owners

pytest_plugins = ["fuzzing", "phases", "p4runtime_fixtures"]


PACKAGES = {
    "tests/switch/server/thrift": ("thriftpy2", "pynng"),
}
"""Packages of `inakit[server]` without which the files of a folder cannot be imported."""


class WithoutPackages(pytest.Module):
    """A file of tests that is not imported, for packages are missing."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Skip it."""
        pytest.skip("needs packages: pip install 'inakit[server]'", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Leave a file out whose folder's packages are missing."""
    folder = module_path.parent.relative_to(Path(__file__).parents[1]).as_posix()
    if all(importlib.util.find_spec(package) for package in PACKAGES.get(folder, ())):
        return None
    module: pytest.Module = WithoutPackages.from_parent(parent, path=module_path)
    return module


@pytest.fixture(autouse=True)
def _confined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that another test ran in this process with `--unconfined` has allowed it for all of the process."""
    monkeypatch.delenv("INAKIT_UNCONFINED", raising=False)


def missing_for_compiler() -> str | None:
    return None if shutil.which("clang") or shutil.which("cc") else "needs a C compiler"


def missing_for_bmv2() -> str | None:
    from inakit.switch.targets import TARGETS  # noqa: PLC0415, where no test needs it, the kit is not loaded

    missing = TARGETS["bmv2"].missing()
    return None if missing is None else f"needs BMv2: {missing}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--record` of tests/p4."""
    parser.addoption("--record", action="store_true", help="keep what simple_switch answers as the corpus of tests/p4")


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main() -> Iterator[None]:
    """What tests that root runs leave in the checkout belongs to whom the checkout belongs to."""
    with given_to_owners():
        return (yield)


def pytest_configure() -> None:
    """Handle SIGTERM as Ctrl-C, so that a terminated run of the tests takes its networks down as well.

    A process that a shell starts in the background ignores SIGINT, one that `nohup` starts ignores SIGHUP, and so do
    the processes that they start. Runs under test must receive both signals. This process goes on ignoring SIGHUP, but
    by a handler, which the processes that it starts do not inherit.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = {"root": missing_for_networks(), "bmv2": missing_for_bmv2(), "compiler": missing_for_compiler()}
    for item in items:
        for tier, reason in reasons.items():
            if reason and item.get_closest_marker(tier):
                item.add_marker(pytest.mark.skip(reason=reason))
