"""What simple_switch is started with beside the program, as far as packets see it."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.program.expressions import DROP_PORT


@dataclass(frozen=True)
class Target:
    """`drop_port` is the port by which nothing leaves; each port has `priorities` queues."""

    drop_port: int = DROP_PORT
    priorities: int = 1
