"""`ValueSetEntry`: the values of parser value sets, each written as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.server.p4runtime.entities.container import Container, expect_id
from inakit.switch.server.p4runtime.protocol.bytestrings import encode
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.matches import read_match
from inakit.switch.server.p4runtime.schema.schema import ValueSetSchema


class ValueSets(Container):
    """A value of the program is the fields of a member, the first in its highest bits."""

    member = "value_set_entry"

    def scope(self, message: Message) -> int:
        """The id of the value set."""
        return int(message.value_set_id)

    def modify(self, message: Message) -> None:
        """Let a value set have these members and no others."""
        expect_id(message.value_set_id, "value set")
        schema = self.schema.find(self.schema.value_sets, message.value_set_id, "value set")
        values = [value_of(schema, member) for member in message.members]
        if len(set(values)) < len(values):
            raise Fault(Code.ALREADY_EXISTS, f"value set '{schema.name}': a member is given twice")
        if schema.size and len(values) > schema.size:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"value set '{schema.name}' has room for {schema.size} members")
        present = self.control.values(schema.name)
        for value in values:
            self.control.add_value(schema.name, value)
        for value in present:
            if value not in values:
                self.control.remove_value(schema.name, value)

    def read(self, message: Message) -> Iterator[Message]:
        """One value set, or all."""
        if message.value_set_id:
            found = [self.schema.find(self.schema.value_sets, message.value_set_id, "value set")]
        else:
            found = list(self.schema.value_sets.values())
        return iter([self.message_of(schema) for schema in found])

    def message_of(self, schema: ValueSetSchema) -> Message:
        """A value set as clients read it."""
        members = [member_of(schema, value) for value in self.control.values(schema.name)]
        return v1.ValueSetEntry(value_set_id=schema.id, members=members)


def value_of(schema: ValueSetSchema, member: Message) -> int:
    """The value that a member stands for; a fault unless it has each field once, matched exactly."""
    given = {match.field_id: match for match in member.match}
    if len(given) < len(member.match) or set(given) != {field.id for field in schema.fields}:
        wanted = ", ".join(str(field.id) for field in schema.fields)
        raise invalid(f"value set '{schema.name}': a member has each of the fields {wanted} once")
    value = 0
    for field in schema.fields:
        part = read_match(field, given[field.id])
        if not isinstance(part, int):
            raise Fault(Code.UNIMPLEMENTED, f"value set '{schema.name}': BMv2 matches values exactly, not {field.kind}")
        value = value << field.bits | part
    return value


def member_of(schema: ValueSetSchema, value: int) -> Message:
    """The member that a value stands for."""
    member, below = v1.ValueSetMember(), sum(field.bits for field in schema.fields)
    for field in schema.fields:
        below -= field.bits
        part = value >> below & (1 << field.bits) - 1
        member.match.add(field_id=field.id, exact=v1.FieldMatch.Exact(value=encode(part)))
    return member
