"""Tiers: pure tests run anywhere, `root` builds real networks, `bmv2` needs the reference switch."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import threading

import pytest

pytest_plugins = ["fuzzing", "phases"]


def missing_for_root() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("mnexec") else "needs Mininet (mnexec is not installed)"


def missing_for_compiler() -> str | None:
    return None if shutil.which("clang") or shutil.which("cc") else "needs a C compiler"


def missing_for_bmv2() -> str | None:
    if shutil.which("simple_switch") is None:
        return "needs BMv2 (simple_switch is not installed)"
    return None if importlib.util.find_spec("p4utils") else "needs p4-utils (the module p4utils is not installed)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option of tests/p4."""
    parser.addoption("--record", action="store_true", help="keep what simple_switch answers as the corpus of tests/p4")


def pytest_configure() -> None:
    """Signals: a run of the tests that is terminated takes its networks down, as an interrupted one does.

    What a shell runs in the background ignores SIGINT, and all that it starts; runs that are tested must hear it.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = {"root": missing_for_root(), "bmv2": missing_for_bmv2(), "compiler": missing_for_compiler()}
    for item in items:
        for tier, reason in reasons.items():
            if reason and item.get_closest_marker(tier):
                item.add_marker(pytest.mark.skip(reason=reason))
