"""What happens to a packet, line by line, in the words of BMv2's log; and a listener that hears and costs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from switch.interpret.state.packet import Packet, Places, Run, Value
from switch.interpret.state.tables import Installed
from switch.program.actions import ActionCall, Primitive
from switch.program.headers import Field
from switch.program.parser import ParserState
from switch.program.pipelines import Conditional, Table


class Trace:
    """Hears nothing: what it is given to watch it gives back as it is."""

    listens = False

    def note(self, line: str) -> None:
        """Something that the switch does."""

    def state(self, _state: ParserState, run: Value) -> Value:
        """A state of the parser."""
        return run

    def key(self, _state: ParserState, run: Value) -> Value:
        """What a state of the parser decides by."""
        return run

    def statement(self, _primitive: Primitive, run: Run) -> Run:
        """A statement of an action, of the parser or of the deparser."""
        return run

    def condition(self, _node: Conditional, run: Value) -> Value:
        """A condition of a pipeline."""
        return run

    def table(self, table: Table, key: Sequence[int], found: Installed | None, call: ActionCall | None) -> None:
        """A table that was searched, before the action runs."""


class Lines(Trace):
    """Keeps a line for each step."""

    listens = True

    def __init__(self, places: Places) -> None:
        self.places = places
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)

    def state(self, state: ParserState, run: Value) -> Value:
        def watched(packet: Packet) -> int:
            self.note(f"Parser 'parser' entering state '{state.name}'")
            following = run(packet)
            self.note(f"Bytes parsed: {packet.parsed}")
            return following

        return watched

    def key(self, state: ParserState, run: Value) -> Value:
        def watched(packet: Packet) -> int:
            value = run(packet)
            self.note(f"Parser state '{state.name}': key is {value:#x}")
            return value

        return watched

    def statement(self, primitive: Primitive, run: Run) -> Run:
        """The statement's line of P4, and what it leaves in the field that it writes first, if it writes one."""
        named = str(primitive.source) if primitive.source else primitive.name
        targets = [each for each in primitive.arguments[:1] if isinstance(each, Field)]

        def watched(packet: Packet) -> None:
            run(packet)
            values = "".join(f": {field} = {packet[self.places.field(field)]:#x}" for field in targets)
            self.note(f"Primitive {named}{values}")

        return watched

    def condition(self, node: Conditional, run: Value) -> Value:
        named = node.source.fragment if node.source else node.name

        def watched(packet: Packet) -> int:
            value = run(packet)
            self.note(f'Condition "{named}" ({node.name}) is {"true" if value else "false"}')
            return value

        return watched

    def table(self, table: Table, key: Sequence[int], found: Installed | None, call: ActionCall | None) -> None:
        self.note(f"Applying table '{table.name}'")
        for part, value in zip(table.key, key, strict=True):
            self.note(f"* {part.name}: {value:#x}")
        self.note(f"Table '{table.name}': {'miss' if found is None else 'hit'}")
        if call is not None:
            given = ", ".join(f"{p.name}={v:#x}" for p, v in zip(call.action.parameters, call.values, strict=True))
            self.note(f"Action {call.action.name}({given})")
