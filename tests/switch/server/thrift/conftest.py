"""Tests of Thrift are skipped, with the reason, where its packages are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = ("thriftpy2", "pynng")


class WithoutPackages(pytest.Module):
    """A file of tests that is not imported."""

    def collect(self) -> Iterator[pytest.Item]:
        """Skip it."""
        pytest.skip(f"needs {', '.join(PACKAGES)} (pip install 'inakit[server]')", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Leave a file alone, unless packages are missing."""
    if all(find_spec(package) for package in PACKAGES):
        return None
    module: pytest.Module = WithoutPackages.from_parent(parent, path=module_path)
    return module
