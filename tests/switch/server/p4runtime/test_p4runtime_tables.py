"""Entries of tables: every kind of match, priorities, defaults, const entries, and what clients read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from p4runtime_client import Client, Refusal, exact, lpm, optional, ranged, ternary, update

from inakit.switch.control.codecs import Code
from inakit.switch.entries import Lpm, Range, Ternary
from inakit.switch.server.p4runtime.messages import v1

if TYPE_CHECKING:
    from inakit.switch.server.p4runtime.messages import Message
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]

MOST = (1 << 31) - 1


def refused(client: Client, kind: int, entry: Message) -> int:
    """The code with which an update of an entry is refused."""
    with pytest.raises(Refusal) as raised:
        client.write(update(kind, table_entry=entry))
    assert raised.value.code == "UNKNOWN"
    return raised.value.codes[0]


def matches(client: Client) -> dict[str, Message]:
    """An entry of each kind of match."""
    send = client.action("send", 3)
    return {
        "exact": client.entry("exact_match", exact(5), call=send),
        "lpm": client.entry("longest_prefix", lpm(0x0A000000, 8), call=send),
        "ternary": client.entry("masked", ternary(0x0A00, 0xFF00), None, call=send, priority=9),
        "range": client.entry("in_range", ranged(5, 9), call=send, priority=1),
        "optional": client.entry("maybe", optional(7), call=send, priority=MOST),
        "everything": client.entry("masked", call=send, priority=2),
        "every prefix": client.entry("longest_prefix", call=send),
    }


@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary", "range", "optional", "everything", "every prefix"])
def test_an_entry_is_read_as_it_was_written(client: Client, kind: str) -> None:
    entry = matches(client)[kind]
    entry.metadata, entry.controller_metadata = b"mine", 12
    client.insert(table_entry=entry)
    assert client.read(table_entry=v1.TableEntry()) == [entry, *given(client)]


def given(client: Client) -> list[Message]:
    """The entries that the program gives, as clients read them."""
    send = [client.action("send", port) for port in (1, 2)]
    return [client.entry("given", exact(port), call=send[port - 1], is_const=True) for port in (1, 2)]


def test_the_control_plane_has_the_entries_that_were_written(server: tuple[ServedSwitch, str], client: Client) -> None:
    for entry in matches(client).values():
        client.insert(table_entry=entry)
    control = server[0].control
    keys = {
        name: control.tables.entries(f"ServedIngress.{name}")[0].entry.key for name in ("longest_prefix", "in_range")
    }
    assert keys == {"longest_prefix": (Lpm(0x0A000000, 8),), "in_range": (Range(5, 9),)}
    assert control.tables.entries("ServedIngress.maybe")[0].entry.key == (Ternary(7, 0xFFFFFFFF),)
    masked = [each.entry.priority for each in control.tables.entries("ServedIngress.masked")]
    assert masked == [MOST - 9, MOST - 2]  # of P4Runtime's priorities the highest wins, of BMv2's the lowest


@pytest.mark.parametrize(
    ("table", "match", "code"),
    [
        ("exact_match", None, Code.INVALID_ARGUMENT),
        ("exact_match", lpm(1, 32), Code.INVALID_ARGUMENT),
        ("exact_match", exact(1 << 32), Code.OUT_OF_RANGE),
        ("exact_match", v1.FieldMatch(exact=v1.FieldMatch.Exact()), Code.OUT_OF_RANGE),
        ("longest_prefix", lpm(0x0A000000, 0), Code.INVALID_ARGUMENT),
        ("longest_prefix", lpm(0x0A000000, 33), Code.INVALID_ARGUMENT),
        ("longest_prefix", lpm(0x0A000001, 8), Code.INVALID_ARGUMENT),
        ("masked", ternary(1, 0), Code.INVALID_ARGUMENT),
        ("masked", ternary(3, 2), Code.INVALID_ARGUMENT),
        ("in_range", ranged(9, 5), Code.INVALID_ARGUMENT),
        ("in_range", ranged(0, (1 << 32) - 1), Code.INVALID_ARGUMENT),
        ("maybe", optional(1 << 40), Code.OUT_OF_RANGE),
        ("given", exact(3), Code.PERMISSION_DENIED),
        ("keyless", None, Code.INVALID_ARGUMENT),
    ],
)
def test_a_key_that_is_not_canonical_is_refused(client: Client, table: str, match: Message, code: Code) -> None:
    priority = 1 if table in ("masked", "in_range", "maybe") else 0
    entry = client.entry(table, match, call=client.action("send", 1), priority=priority)
    assert refused(client, 1, entry) == code


def test_a_byte_string_may_have_leading_zeros_and_is_read_in_the_shortest_form(client: Client) -> None:
    entry = client.entry("exact_match", v1.FieldMatch(exact=v1.FieldMatch.Exact(value=bytes(20) + b"\x05")))
    entry.action.action.CopyFrom(client.action("send", 3))
    client.insert(table_entry=entry)
    (found,) = client.read(table_entry=v1.TableEntry(table_id=entry.table_id))
    assert found.match[0].exact.value == b"\x05"


def test_priorities_are_for_keys_that_can_overlap_only(client: Client) -> None:
    send = client.action("send", 1)
    assert refused(client, 1, client.entry("masked", ternary(1, 1), call=send)) == Code.INVALID_ARGUMENT
    assert refused(client, 1, client.entry("masked", ternary(1, 1), call=send, priority=-1)) == Code.INVALID_ARGUMENT
    assert refused(client, 1, client.entry("exact_match", exact(1), call=send, priority=1)) == Code.INVALID_ARGUMENT
    for priority in (1, 2):  # the same key with another priority is another entry
        client.insert(table_entry=client.entry("masked", ternary(1, 1), call=send, priority=priority))


def test_an_action_has_each_of_its_parameters_once(client: Client) -> None:
    entry = client.entry("exact_match", exact(1), call=client.action("mark", 1))
    assert refused(client, 1, entry) == Code.INVALID_ARGUMENT  # the second is missing
    entry.action.action.params.add(param_id=1, value=b"\1")
    assert refused(client, 1, entry) == Code.INVALID_ARGUMENT  # the first is given twice
    wrong = client.entry("longest_prefix", lpm(1 << 31, 1), call=client.action("learn"))
    assert refused(client, 1, wrong) == Code.INVALID_ARGUMENT  # an action of another table
    assert refused(client, 1, client.entry("exact_match", exact(1))) == Code.INVALID_ARGUMENT
    wide = client.entry("exact_match", exact(1), call=client.action("send", 1 << 9))
    assert refused(client, 1, wide) == Code.OUT_OF_RANGE


def test_updates_of_entries_that_are_there_or_are_not(client: Client) -> None:
    entry = client.entry("exact_match", exact(1), call=client.action("send", 1))
    assert refused(client, 2, entry) == Code.NOT_FOUND
    assert refused(client, 3, entry) == Code.NOT_FOUND
    client.insert(table_entry=entry)
    assert refused(client, 1, entry) == Code.ALREADY_EXISTS
    entry.action.action.CopyFrom(client.action("mark", 2, 3))
    client.modify(table_entry=entry)
    assert client.read(table_entry=v1.TableEntry(table_id=entry.table_id)) == [entry]
    client.modify(table_entry=client.entry("exact_match", exact(1)))  # without an action, it stays
    assert client.read(table_entry=v1.TableEntry(table_id=entry.table_id)) == [entry]
    client.delete(table_entry=client.entry("exact_match", exact(1)))
    assert client.read(table_entry=v1.TableEntry(table_id=entry.table_id)) == []


def test_a_table_has_room_for_its_size(client: Client) -> None:
    entries = [client.entry("longest_prefix", lpm(1 << 31 - n, 1 + n), call=client.action("drop")) for n in range(9)]
    for entry in entries[:8]:
        client.insert(table_entry=entry)
    assert refused(client, 1, entries[8]) == Code.RESOURCE_EXHAUSTED


def test_a_default_is_modified_and_goes_back_to_the_program_s(client: Client) -> None:
    default = client.entry("exact_match", call=client.action("send", 4), is_default_action=True, metadata=b"d")
    request = client.entry("exact_match", is_default_action=True)
    (own,) = client.read(table_entry=request)
    assert own.action.action == client.action("drop")
    assert refused(client, 1, default) == Code.INVALID_ARGUMENT
    assert refused(client, 3, default) == Code.INVALID_ARGUMENT
    client.modify(table_entry=default)
    assert client.read(table_entry=request) == [default]
    client.modify(table_entry=request)
    assert client.read(table_entry=request) == [own]
    const = client.entry("given", call=client.action("send", 4), is_default_action=True)
    assert refused(client, 2, const) == Code.PERMISSION_DENIED


def test_const_entries_are_read_and_stay(client: Client) -> None:
    assert client.read(table_entry=client.entry("given")) == given(client)
    for kind in (1, 2, 3):
        entry = client.entry("given", exact(1), call=client.action("send", 4))
        assert refused(client, kind, entry) == Code.PERMISSION_DENIED
    entry = client.entry("exact_match", exact(1), call=client.action("send", 4), is_const=True)
    assert refused(client, 1, entry) == Code.INVALID_ARGUMENT


def test_reads_select_by_key_priority_action_and_metadata(client: Client) -> None:
    send, drop = client.action("send", 1), client.action("drop")
    entries = [
        client.entry("masked", ternary(1, 1), call=send, priority=1, metadata=b"a"),
        client.entry("masked", ternary(1, 1), call=drop, priority=2, metadata=b"b", controller_metadata=5),
        client.entry("masked", ternary(2, 2), call=drop, priority=2),
    ]
    for entry in entries:
        client.insert(table_entry=entry)

    def selected(*match: Message, **more: object) -> list[int]:
        found = client.read(table_entry=client.entry("masked", *match, **more))
        return [entries.index(entry) for entry in found]

    assert selected() == [0, 1, 2]
    assert selected(priority=2) == [1, 2]
    assert selected(ternary(1, 1)) == [0, 1]
    assert selected(ternary(1, 1), priority=2) == [1]
    assert selected(ternary(4, 4), priority=2) == []
    assert selected(call=v1.Action(action_id=drop.action_id)) == [1, 2]
    assert selected(metadata=b"a") == [0]
    assert selected(controller_metadata=5) == [1]


def test_ids_that_nothing_has_are_not_found(client: Client) -> None:
    entry = client.entry("exact_match", exact(1), call=client.action("send", 1))
    entry.table_id = 0x02FFFFFF
    assert refused(client, 1, entry) == Code.NOT_FOUND
    entry.table_id = 0
    assert refused(client, 1, entry) == Code.INVALID_ARGUMENT
    with pytest.raises(Refusal) as raised:
        client.read(table_entry=v1.TableEntry(table_id=0x02FFFFFF))
    assert raised.value.codes == [Code.NOT_FOUND]
