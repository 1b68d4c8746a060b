"""Random requests to a control plane of the program served.p4: right ones, and wrong ones of every kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from inakit.switch.entries import DefaultAction, KeyPart, Lpm, MirrorSession, Range, TableEntry, Ternary

Request = tuple[str, tuple[Any, ...]]
"""A method of `ControlPlane` with its arguments."""

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
        return "add_entry", (TableEntry(table, self.key(table), action, params, self.random.randrange(3)),)

    def add_indirect(self) -> Request:
        table = self.choice((*INDIRECT, *INDIRECT, "exact_match", "missing"))
        method = self.random.choice(("add_indirect", "add_indirect_group"))
        return method, (table, self.key(table), self.small(), 0)

    def entry(self) -> Request:
        table, handle, keyed = self.table_name(), self.handle(), self.choice((*DIRECT, *INDIRECT))
        action, params = self.call(table)
        return self.random.choice(
            [
                ("modify_entry", (table, handle, action, params)),
                ("delete_entry", (table, handle)),
                ("modify_indirect", (table, handle, self.small())),
                ("modify_indirect_group", (table, handle, self.small())),
                ("find", (keyed, self.key(keyed), self.random.randrange(3))),
                ("set_timeout", (table, handle, 1000)),
            ]
        )

    def table(self) -> Request:
        table = self.choice(("longest_prefix", "masked", "counting", *OTHERS))
        return self.random.choice([("clear_table", (table, self.random.random() < 0.5)), ("entry_count", (table,))])

    def default(self) -> Request:
        table = self.table_name()
        action, params = self.call(table)
        return self.random.choice(
            [
                ("set_default", (DefaultAction(table, action, params),)),
                ("reset_default", (table,)),
                ("set_indirect_default", (table, self.small())),
                ("set_indirect_group_default", (table, self.small())),
            ]
        )

    def member(self) -> Request:
        profile, action = self.choice(PROFILES), self.choice(("send", "mark", "drop", "missing"))
        return self.random.choice(
            [
                ("add_member", (profile, action, self.params(action))),
                ("modify_member", (profile, self.small(), action, self.params(action))),
                ("delete_member", (profile, self.small())),
            ]
        )

    def group(self) -> Request:
        profile = self.choice(("groups", "groups", "missing"))  # without a selector, BMv2 dies of a group
        return self.random.choice(
            [
                ("create_group", (profile,)),
                ("delete_group", (profile, self.small())),
                ("add_member_to_group", (profile, self.small(), self.small())),
                ("add_member_to_group", (profile, self.small(), self.small())),
                ("remove_member_from_group", (profile, self.small(), self.small())),
            ]
        )

    def array(self) -> Request:
        name = self.choice(("kept", "kept", "counted", "metered", "missing"))
        index, rates = self.random.choice((0, 1, 3, 99)), ((0.5, 2), (1.0, 4))
        return self.random.choice(
            [
                ("read_register", (name, index)),
                ("write_register", (name, index, self.random.randrange(1 << 16))),
                ("write_register_range", (name, index, self.random.choice((2, 4, 16, 17)), 7)),
                ("reset_register", (name,)),
                ("read_counter", (name, index)),
                ("write_counter", (name, index, 3, 400)),
                ("reset_counters", (name,)),
                ("set_meter_rates", (name, index, self.random.choice((rates, rates[:1], rates[::-1])))),
                ("set_meter_rates", (name, None, rates)),
                ("set_meter_rates", (INGRESS + "speed", self.random.choice((None, index)), rates)),
                ("meter_rates", (INGRESS + "speed", index)),
                ("add_value", ("ServedParser.known", self.random.randrange(4))),
                ("remove_value", ("ServedParser.known", self.random.randrange(4))),
            ]
        )

    def counts(self) -> Request:
        table, handle, rates = self.choice(("counting", "metering", "exact_match")), self.handle(), ((0.5, 2), (1.0, 4))
        return self.random.choice(
            [
                ("entry_counter", (table, handle)),
                ("write_entry_counter", (table, handle, 5, 600)),
                ("set_entry_meter", (table, handle, self.random.choice((rates, rates[:1])))),
                ("entry_meter", (table, handle)),
            ]
        )

    def replication(self) -> Request:
        ports = tuple(self.random.sample(range(1, 6), self.random.randrange(4)))
        lags = tuple(self.random.sample(range(3), self.random.randrange(2)))
        number = self.random.randrange(1, 4)
        return self.random.choice(
            [
                ("create_mgrp", (number,)),
                ("create_node", (self.small(), ports, lags)),
                ("associate_node", (number, self.small())),
                ("associate_node", (number, self.small())),
                ("dissociate_node", (number, self.small())),
                ("update_node", (self.small(), ports, lags)),
                ("destroy_node", (self.small(),)),
                ("set_lag", (self.random.choice((0, 1, 2, 300)), ports)),
            ]
        )

    def session(self) -> Request:
        number = self.random.randrange(1, 4)
        return self.random.choice(
            [
                ("put_session", (MirrorSession(number, self.random.randrange(4)),)),
                ("put_session", (MirrorSession(number, None, 2),)),
                ("remove_session", (number,)),
                ("session", (number,)),
            ]
        )
