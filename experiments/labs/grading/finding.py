"""What a check found wrong, and what shows it: the packets, the trace of the program, the lines of the task."""

from __future__ import annotations

from dataclasses import dataclass

Packets = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Exchange:
    """A packet that was sent to a port of a switch, and what the switch sent."""

    port: int
    packet: bytes
    got: tuple[tuple[int, bytes], ...]
    switch: str = ""


@dataclass(frozen=True)
class Finding:
    """Why an item has not all points. All texts are complete lines.

    `sent` are the packets in order, `expected` and `got` what should have left for the last of them and what did.
    """

    cause: str
    sent: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    task: tuple[str, ...] = ()


class WrongError(Exception):
    """A submission does not do what an item asks for.

    `exchanges` lead to it; `expected` is what should have left for the last of them. `field` names what is wrong in
    what left, such as `values.v3`, or `port`, for the trace. `part` is what the submission keeps of the item's points.
    `got` is told in place of what left.
    """

    def __init__(
        self,
        cause: str,
        exchanges: tuple[Exchange, ...] = (),
        expected: tuple[tuple[int, bytes], ...] | tuple[str, ...] = (),
        field: str = "port",
        part: float = 0.0,
        got: tuple[str, ...] = (),
    ) -> None:
        super().__init__(cause)
        self.cause, self.exchanges, self.expected, self.field = cause, exchanges, expected, field
        self.part, self.got = part, got
