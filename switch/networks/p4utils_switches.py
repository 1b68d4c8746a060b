"""Switches for networks of p4-utils: `net.addP4Switch("s1", cls=InakitP4Switch)` runs the kit's switch, not BMv2."""

from __future__ import annotations

from typing import Any

from p4utils.mininetlib import node
from p4utils.mininetlib.node import P4RuntimeSwitch, P4Switch

from inakit.switch.server.serve import make_shim

START_TIMEOUT_S = 60
"""The time for a switch to compile its program and listen; p4-utils allows 10 s, too little on a busy machine."""


def arguments(program: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a p4-utils switch that runs a program of the kit, with a sufficient timeout."""
    node.SWITCH_START_TIMEOUT = max(node.SWITCH_START_TIMEOUT, START_TIMEOUT_S)
    return {"sw_bin": str(make_shim() / program), **given}


class InakitP4Switch(P4Switch):  # type: ignore[misc]
    """A switch of p4-utils that runs the kit's `simple_switch`."""

    def __init__(self, *names: Any, **params: Any) -> None:
        super().__init__(*names, **arguments("simple_switch", params))


class InakitP4RuntimeSwitch(P4RuntimeSwitch):  # type: ignore[misc]
    """A switch of p4-utils that runs the kit's `simple_switch_grpc`."""

    def __init__(self, *names: Any, **params: Any) -> None:
        super().__init__(*names, **arguments("simple_switch_grpc", params))
