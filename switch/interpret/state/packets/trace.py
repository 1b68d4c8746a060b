"""What happens to a packet, line by line, in the words of BMv2's log.

`Trace` hears nothing and costs nothing: it returns the functions that it is given as they are. `TraceLines` wraps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from inakit.switch.interpret.state.packets.packet import Packet, PacketPlaces, Value
from inakit.switch.interpret.state.tables.table_state import Installed
from inakit.switch.program.program import ActionCall, Primitive
from inakit.switch.program.expressions import Field
from inakit.switch.program.program import ParserState
from inakit.switch.program.program import Conditional, Table

Result = TypeVar("Result")


class Trace:
    """A trace that is not kept."""

    listens = False

    def note(self, line: str) -> None:
        """Hear of something that the switch does."""

    def state(self, _state: ParserState, run: Value) -> Value:
        """The function of a parser state, watched."""
        return run

    def key(self, _state: ParserState, run: Value) -> Value:
        """The function of what a parser state looks at, watched."""
        return run

    def statement(self, _primitive: Primitive, run: Callable[[Packet], Result]) -> Callable[[Packet], Result]:
        """The function of a statement of an action, of the parser or of the deparser, watched."""
        return run

    def condition(self, _node: Conditional, run: Value) -> Value:
        """The function of a condition of a pipeline, watched."""
        return run

    def table(self, table: Table, key: Sequence[int], found: Installed | None, call: ActionCall | None) -> None:
        """Hear of a table that was searched, before the action runs."""


class TraceLines(Trace):
    """A trace that keeps a line for each step."""

    listens = True

    def __init__(self, places: PacketPlaces) -> None:
        self.places = places
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        """Keep a line."""
        self.lines.append(line)

    def state(self, state: ParserState, run: Value) -> Value:
        """The function of a parser state, which notes that it is entered and how far it parses."""

        def watched(packet: Packet) -> int:
            self.note(f"Parser 'parser' entering state '{state.name}'")
            following = run(packet)
            self.note(f"Bytes parsed: {packet.parsed}")
            return following

        return watched

    def key(self, state: ParserState, run: Value) -> Value:
        """The function of what a parser state looks at, which notes the value."""

        def watched(packet: Packet) -> int:
            value = run(packet)
            self.note(f"Parser state '{state.name}': key is {value:#x}")
            return value

        return watched

    def statement(self, primitive: Primitive, run: Callable[[Packet], Result]) -> Callable[[Packet], Result]:
        """The function of a statement, which notes its line of P4 and what it writes to a field, if it does."""
        named = str(primitive.source) if primitive.source else primitive.name
        targets = [each for each in primitive.arguments[:1] if isinstance(each, Field)]

        def watched(packet: Packet) -> Result:
            result = run(packet)
            values = "".join(f": {field} = {packet[self.places.field(field)]:#x}" for field in targets)
            self.note(f"Primitive {named}{values}")
            return result

        return watched

    def condition(self, node: Conditional, run: Value) -> Value:
        """The function of a condition, which notes whether it holds."""
        named = node.source.fragment if node.source else node.name

        def watched(packet: Packet) -> int:
            value = run(packet)
            self.note(f'Condition "{named}" ({node.name}) is {"true" if value else "false"}')
            return value

        return watched

    def table(self, table: Table, key: Sequence[int], found: Installed | None, call: ActionCall | None) -> None:
        """Note the key, hit or miss, and the action with its parameters."""
        self.note(f"Applying table '{table.name}'")
        for part, value in zip(table.key, key, strict=True):
            self.note(f"* {part.name}: {value:#x}")
        self.note(f"Table '{table.name}': {'miss' if found is None else 'hit'}")
        if call is not None:
            given = ", ".join(f"{p.name}={v:#x}" for p, v in zip(call.action.parameters, call.values, strict=True))
            self.note(f"Action {call.action.name}({given})")
