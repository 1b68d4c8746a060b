"""Commands for the queues in front of egress, which a switch that is served has."""

from __future__ import annotations

from inakit.switch.control.commands.command import Command, CommandedSwitch
from inakit.switch.control.commands.words import Words
from inakit.switch.control.commands.words import parse_number as number


def set_rate(switch: CommandedSwitch, words: Words) -> None:
    """`set_queue_rate`: packets/s of all queues, of those of a port, or of one."""
    rate, *where = map(number, words)
    assert switch.queues is not None
    switch.queues.set_rate(rate, *port_and_priority(where))


def set_depth(switch: CommandedSwitch, words: Words) -> None:
    """`set_queue_depth`: how many packets all queues hold, those of a port, or one."""
    depth, *where = map(number, words)
    assert switch.queues is not None
    switch.queues.set_depth(depth, *port_and_priority(where))


def port_and_priority(numbers: list[int]) -> tuple[int | None, int | None]:
    """The port and the priority that are given, in this order; `ValueError` for more numbers."""
    if len(numbers) > 2:
        raise ValueError(f"{len(numbers)} numbers behind the first: a port and a priority are all there is")
    port, priority = (*numbers, None, None)[:2]
    return port, priority


COMMANDS = {
    "set_queue_rate": Command("PACKETS_PER_SECOND [PORT [PRIORITY]]", set_rate),
    "set_queue_depth": Command("PACKETS [PORT [PRIORITY]]", set_depth),
}
