"""Random requests to a control plane of the program served.p4: right ones, and wrong ones of every kind."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from random import Random
from typing import Any

from inakit.switch.control.requests import Refused
from inakit.switch.entries import KeyPart, Lpm, MirrorSession, Range, TableEntry, Ternary

Request = tuple[str, tuple[Any, ...]] | tuple[str, tuple[Any, ...], dict[str, Any]]
"""A request to a kind of entities of a `ControlPlane`, with its arguments by position and by name."""


def asked(control: Any, request: Request) -> Any:
    """What a control plane answers to a request, or the kind of refusal."""
    name, arguments, *named = request
    try:
        return attrgetter(name)(control)(*arguments, **(named[0] if named else {}))
    except Refused as refused:
        return refused.kind


INGRESS = "ServedIngress."
DIRECT = ("exact_match", "longest_prefix", "masked", "in_range", "maybe", "given", "counting", "metering", "ageing")
INDIRECT = ("shared", "chosen")
OTHERS = ("keyless", "missing")
PROFILES = ("members", "groups", "missing")
ACTIONS = ("send", "mark", "drop", "counted_send", "metered_send", "missing")
KEYS = 6
HANDLES: list[int] = [*range(5), 1 << 24, 1 << 24 | 1, 99]


class RandomRequests:
    """Draws requests: small numbers, so that they meet what others have left."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def request(self) -> Request:
        """The next request."""
        drawn: Callable[[], Request] = self.random.choice(
            [self.add] * 4
            + [self.add_indirect] * 3
            + [self.member, self.group] * 3
            + [self.entry, self.default, self.array, self.counts, self.replication, self.session] * 2
            + [self.table]
        )
        return drawn()

    def choice(self, names: tuple[str, ...]) -> str:
        """One of these names, with the name of the control that has it."""
        return INGRESS + self.random.choice(names)

    def table_name(self) -> str:
        """The name of any table, or of none."""
        return self.choice((*DIRECT, *INDIRECT, *OTHERS))

    def handle(self) -> int:
        """The handle of an entry, perhaps."""
        return int(self.random.choice(HANDLES))

    def small(self) -> int:
        """The handle of a member, a group or a node, perhaps."""
        return self.random.randrange(5)

    def key(self, table: str) -> tuple[KeyPart, ...]:
        """The key of an entry."""
        number = self.random.randrange(KEYS)
        match table.removeprefix(INGRESS):
            case "longest_prefix":
                return (Lpm(number << 29, self.random.randrange(4)),)
            case "masked":
                return Ternary(number, self.random.choice((0, 3, 7))), Ternary(self.random.randrange(3), 0x1FF)
            case "in_range":
                return (Range(number, number + self.random.randrange(3)),)
            case "maybe":
                return (Ternary(number, self.random.choice((0, 0xFFFFFFFF))),)
            case "keyless" | "missing":
                return ()
        return (number,)

    def params(self, action: str) -> tuple[int, ...]:
        """The parameters of an action; now and then one too many."""
        right = {"send": 1, "mark": 2, "counted_send": 1, "metered_send": 1}.get(action.removeprefix(INGRESS), 0)
        return tuple(self.random.randrange(1, 4) for _ in range(right + (self.random.random() < 0.05)))

    def call(self, table: str) -> tuple[str, tuple[int, ...]]:
        """An action of the table with parameters; now and then another one."""
        special = {"counting": "counted_send", "metering": "metered_send"}
        fitting = (special.get(table.removeprefix(INGRESS), "send"), "drop")
        action = self.choice(fitting if self.random.random() < 0.9 else ACTIONS)
        return action, self.params(action)

    def add(self) -> Request:
        table = self.table_name()
        action, params = self.call(table)
        return "tables.add_entry", (TableEntry(table, self.key(table), action, params, self.random.randrange(3)),)

    def add_indirect(self) -> Request:
        table = self.choice((*INDIRECT, *INDIRECT, "exact_match", "missing"))
        return "tables.add", (table, self.key(table)), {**self.named(), "priority": 0}

    def named(self) -> dict[str, Any]:
        """A member or a group, perhaps."""
        return {self.random.choice(("member", "group")): self.small()}

    def entry(self) -> Request:
        table, handle, keyed = self.table_name(), self.handle(), self.choice((*DIRECT, *INDIRECT))
        action, params = self.call(table)
        requests: list[Request] = [
            ("tables.modify", (table, handle, action, params)),
            ("tables.delete", (table, handle)),
            ("tables.modify", (table, handle), self.named()),
            ("tables.modify", (table, handle), self.named()),
            ("tables.find", (keyed, self.key(keyed), self.random.randrange(3))),
            ("tables.set_timeout", (table, handle, 1000)),
        ]
        return self.random.choice(requests)

    def table(self) -> Request:
        table = self.choice(("longest_prefix", "masked", "counting", *OTHERS))
        return self.random.choice([("tables.clear", (table, self.random.random() < 0.5)), ("tables.count", (table,))])

    def default(self) -> Request:
        table = self.table_name()
        action, params = self.call(table)
        requests: list[Request] = [
            ("tables.set_default", (table, action, params)),
            ("tables.reset_default", (table,)),
            ("tables.set_default", (table,), self.named()),
            ("tables.set_default", (table,), self.named()),
        ]
        return self.random.choice(requests)

    def member(self) -> Request:
        profile, action = self.choice(PROFILES), self.choice(("send", "mark", "drop", "missing"))
        return self.random.choice(
            [
                ("profiles.add_member", (profile, action, self.params(action))),
                ("profiles.modify_member", (profile, self.small(), action, self.params(action))),
                ("profiles.delete_member", (profile, self.small())),
            ]
        )

    def group(self) -> Request:
        profile = self.choice(("groups", "groups", "missing"))  # without a selector, BMv2 dies of a group
        return self.random.choice(
            [
                ("profiles.create_group", (profile,)),
                ("profiles.delete_group", (profile, self.small())),
                ("profiles.add_to_group", (profile, self.small(), self.small())),
                ("profiles.add_to_group", (profile, self.small(), self.small())),
                ("profiles.remove_from_group", (profile, self.small(), self.small())),
            ]
        )

    def array(self) -> Request:
        name = self.choice(("kept", "kept", "counted", "metered", "missing"))
        index, rates = self.random.choice((0, 1, 3, 99)), ((0.5, 2), (1.0, 4))
        return self.random.choice(
            [
                ("registers.read", (name, index)),
                ("registers.write", (name, index, self.random.randrange(1 << 16))),
                ("registers.write_range", (name, index, self.random.choice((2, 4, 16, 17)), 7)),
                ("registers.write", (name, None, 0)),
                ("counters.read", (name, index)),
                ("counters.write", (name, index, 3, 400)),
                ("counters.write", (name, None, 0, 0)),
                ("meters.set_rates", (name, index, self.random.choice((rates, rates[:1], rates[::-1])))),
                ("meters.set_rates", (name, None, rates)),
                ("meters.set_rates", (INGRESS + "speed", self.random.choice((None, index)), rates)),
                ("meters.rates", (INGRESS + "speed", index)),
                ("value_sets.add", ("ServedParser.known", self.random.randrange(4))),
                ("value_sets.remove", ("ServedParser.known", self.random.randrange(4))),
            ]
        )

    def counts(self) -> Request:
        table, handle, rates = self.choice(("counting", "metering", "exact_match")), self.handle(), ((0.5, 2), (1.0, 4))
        return self.random.choice(
            [
                ("counters.read_entry", (table, handle)),
                ("counters.write_entry", (table, handle, 5, 600)),
                ("meters.set_entry_rates", (table, handle, self.random.choice((rates, rates[:1])))),
                ("meters.entry_rates", (table, handle)),
            ]
        )

    def replication(self) -> Request:
        ports = tuple(self.random.sample(range(1, 6), self.random.randrange(4)))
        lags = tuple(self.random.sample(range(3), self.random.randrange(2)))
        number = self.random.randrange(1, 4)
        return self.random.choice(
            [
                ("replication.create_group", (number,)),
                ("replication.create_node", (self.small(), ports, lags)),
                ("replication.associate", (number, self.small())),
                ("replication.associate", (number, self.small())),
                ("replication.dissociate", (number, self.small())),
                ("replication.update_node", (self.small(), ports, lags)),
                ("replication.destroy_node", (self.small(),)),
                ("replication.set_lag", (self.random.choice((0, 1, 2, 300)), ports)),
            ]
        )

    def session(self) -> Request:
        number = self.random.randrange(1, 4)
        return self.random.choice(
            [
                ("replication.put_session", (MirrorSession(number, self.random.randrange(4)),)),
                ("replication.put_session", (MirrorSession(number, None, 2),)),
                ("replication.remove_session", (number,)),
                ("replication.session", (number,)),
            ]
        )
