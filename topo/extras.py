"""Packages that a plain `pip install inakit` does not bring, and the extra of `pyproject.toml` that brings each."""

from __future__ import annotations

from inakit.topo.errors import MachineError

EXTRAS = {
    "pyarrow": ("pyarrow", "study"),
    "pandas": ("pandas", "notebook"),
    "google": ("protobuf", "hardware"),
    "grpc": ("grpcio", "hardware"),
    "p4": ("p4runtime", "hardware"),
    "pynng": ("pynng", "server"),
    "thriftpy2": ("thriftpy2", "server"),
    "ptf": ("ptf", "ptf"),
    "dask": ("dask", "cluster"),
    "distributed": ("distributed", "cluster"),
    "submitit": ("submitit", "cluster"),
}
"""By the name under which Python imports it, each package's own name and an extra. `inakit[all]` has them all."""


def lacking(imported: str, what: str) -> MachineError:
    """The error for `what` that needs a package of an extra, by the name under which it is imported."""
    package, extra = EXTRAS[imported]
    return MachineError(f"{what} needs {package}, which is not installed: pip install 'inakit[{extra}]'")


def lacking_import(error: ImportError, what: str) -> MachineError | None:
    """The error for `what` that an import has ended; None unless an extra brings the package that was not found."""
    imported = (error.name or "").partition(".")[0]
    return lacking(imported, what) if isinstance(error, ModuleNotFoundError) and imported in EXTRAS else None
