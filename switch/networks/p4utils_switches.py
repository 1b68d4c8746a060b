"""Switches for networks of p4-utils: `net.addP4Switch("s1", cls=InakitP4Switch)` runs the kit's switch, not BMv2."""

from __future__ import annotations

from typing import Any

from p4utils.mininetlib import node
from p4utils.mininetlib.node import P4RuntimeSwitch, P4Switch

from inakit.switch.server.serve import make_shim

START_TIMEOUT_S = 60
"""How long a switch may take to compile its program and to listen; p4-utils gives it 10 s, few for a busy machine."""


class InakitP4Switch(P4Switch):  # type: ignore[misc]
    """A switch of p4-utils that runs the kit's `simple_switch`."""

    def __init__(self, *arguments: Any, **params: Any) -> None:
        super().__init__(*arguments, **{"sw_bin": str(make_shim() / "simple_switch"), **params})
        be_patient()


class InakitP4RuntimeSwitch(P4RuntimeSwitch):  # type: ignore[misc]
    """A switch of p4-utils that runs the kit's `simple_switch_grpc`."""

    def __init__(self, *arguments: Any, **params: Any) -> None:
        super().__init__(*arguments, **{"sw_bin": str(make_shim() / "simple_switch_grpc"), **params})
        be_patient()


def be_patient() -> None:
    """Let p4-utils wait as long as a switch may take."""
    node.SWITCH_START_TIMEOUT = max(node.SWITCH_START_TIMEOUT, START_TIMEOUT_S)
