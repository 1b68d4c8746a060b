"""Switches for networks of p4-utils: `net.addP4Switch("s1", cls=InakitP4Switch)` runs the kit's switch, not BMv2."""

from __future__ import annotations

from typing import Any

from p4utils.mininetlib.node import P4RuntimeSwitch, P4Switch

from switch.server.shim import make_shim


class InakitP4Switch(P4Switch):  # type: ignore[misc]
    """A switch of p4-utils that runs the kit's `simple_switch`."""

    def __init__(self, *arguments: Any, **params: Any) -> None:
        super().__init__(*arguments, **{"sw_bin": str(make_shim() / "simple_switch"), **params})


class InakitP4RuntimeSwitch(P4RuntimeSwitch):  # type: ignore[misc]
    """A switch of p4-utils that runs the kit's `simple_switch_grpc`."""

    def __init__(self, *arguments: Any, **params: Any) -> None:
        super().__init__(*arguments, **{"sw_bin": str(make_shim() / "simple_switch_grpc"), **params})
