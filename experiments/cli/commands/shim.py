"""`inakit shim`: the kit's switches under the names of p4lang's."""

from __future__ import annotations

from inakit.switch.server.serve import make_shim


def shim() -> None:
    """Print a folder in which `simple_switch` and `simple_switch_grpc` are the kit's: PATH=$(inakit shim):$PATH."""
    print(make_shim())
