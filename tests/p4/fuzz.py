"""Random entries and packets that make use of one another: most packets are sound, each rule is broken at times."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from scenarios import CHILDREN, ROOT_PORT, SERVER_IP, SLOTS, UNAGGREGATED, example_entries, packet, worker_ip
from sequences import PORTS, Step

from switch.entries import MulticastGroup, SwitchEntries, TableEntry
from traffic.packet import FRAGMENT, Flag, Kind

SMALLEST_FRAME = 14
# Ports that a program may name: attached ones, none, and the one that BMv2 takes for "drop".
ANY_PORT = (*PORTS, 0, 9, 511)
CORNERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**30, -(2**30))
OTHER_VALUES = {
    "flags": 8, "job": 16, "tree": 16, "label": 16, "seq": 32, "slot": 32,
    "bitmap": 64, "workers": 16, "priority": 8, "part": 8,
}  # fmt: skip


def random_entries(rng: Random) -> SwitchEntries:
    """The example's entries, some of them missing and some of them different."""
    example = example_entries()
    tables = tuple(disturbed(rng, entry) for entry in example.tables if rng.random() > 0.04)
    groups = tuple(disturbed_group(rng, group) for group in example.groups)
    return replace(example, tables=tables, groups=groups)


def disturbed(rng: Random, entry: TableEntry) -> TableEntry:
    if rng.random() > 0.15:
        return entry
    if entry.action.endswith("aggregate"):
        child, full, _, _, _, is_root = entry.params
        params = (
            rng.choice([child, child, 0, rng.getrandbits(64)]),
            rng.choice([full, full, full | child, child, rng.getrandbits(64)]),
            rng.choice([0, 1, 510, rng.getrandbits(32)]),
            rng.choice([1, SLOTS, 512, 2**32 - 1]),
            rng.choice([0, 20, 11, rng.getrandbits(16)]),
            rng.choice([is_root, 1 - is_root]),
        )
        return replace(entry, params=params)
    if entry.action.endswith("send"):
        return replace(entry, params=(rng.choice(ANY_PORT),))
    if entry.action.endswith("replicate"):
        return replace(entry, params=(rng.choice([0, 1, 2, 3, 4000]),))
    if entry.action.endswith("set_pipeline"):
        return replace(entry, params=(rng.randrange(8),))
    return entry


def disturbed_group(rng: Random, group: MulticastGroup) -> MulticastGroup:
    if rng.random() > 0.3:
        return group
    return replace(group, ports=tuple(sorted(rng.sample(ANY_PORT[:-1], rng.randrange(5)))))


def random_steps(rng: Random, count: int) -> list[Step]:
    """`count` packets, whose fragments advance through the window, and around the end of the numbers."""
    base = rng.choice([0, 2**31 - count // 48, 2**32 - count // 48])
    return [damaged(rng, random_packet(rng, base + i // 24)) for i in range(count)]


def random_packet(rng: Random, newest: int) -> Step:
    if rng.random() < 0.12:
        return packet_from_root(rng, newest)
    job, tree, label, port = rng.choice([child[:4] for child in CHILDREN] * 4 + list(UNAGGREGATED))
    seq = (newest - rng.choice([0, 0, 0, 1, 1, 2, SLOTS])) % 2**32
    ina = {
        "kind": Kind.GRADIENT,
        "job": job,
        "tree": tree,
        "label": label,
        "seq": seq,
        "slot": seq % SLOTS,
        "workers": 1,
    }
    if rng.random() < 0.15:
        ina["flags"] = rng.choice([*Flag, Flag.RETRANSMITTED, Flag.RETRANSMITTED | Flag.OVERFLOW])
    if rng.random() < 0.05:
        port = rng.choice(PORTS)
    return packet(port, values=random_values(rng), **strange(rng, ina))


def packet_from_root(rng: Random, newest: int) -> Step:
    job, tree = rng.choice([(1, 1), (1, 2), (2, 1), (3, 1)])
    kind = rng.choice([Kind.RESULT, Kind.RESULT, Kind.NOTICE, 0, 200])
    ina: dict[str, Any] = {
        "kind": kind,
        "job": job,
        "tree": tree,
        "seq": newest % 2**32,
        "flags": rng.choice([0, 0, *Flag]),
    }
    to = rng.choice([SERVER_IP, *(worker_ip(port) for port in PORTS)])
    values = None if kind == Kind.NOTICE else random_values(rng)
    return packet(ROOT_PORT, dst_ip=to, values=values, **strange(rng, ina))


def strange(rng: Random, ina: dict[str, Any]) -> dict[str, Any]:
    """The same fields, now and then one of them anything."""
    if rng.random() < 0.1:
        name, bits = rng.choice(list(OTHER_VALUES.items()))
        return ina | {name: rng.choice([rng.getrandbits(bits), rng.randrange(8), 2**bits - 1])}
    return ina


def random_values(rng: Random) -> list[int]:
    """Often small numbers, whose sums fit, else numbers whose sums do not."""
    if rng.random() < 0.7:
        return [rng.randrange(-1000, 1000) for _ in range(FRAGMENT.values)]
    numbers = np.array([rng.choice([*CORNERS, rng.randrange(-(2**31), 2**31)]) for _ in range(FRAGMENT.values)])
    return [int(number) for number in numbers]


def damaged(rng: Random, step: Step) -> Step:
    """Now and then cut short, longer than said, or with a changed byte in its headers."""
    chance = rng.random()
    content = bytearray(step.packet)
    if chance < 0.03:
        return Step(step.port, bytes(content[: rng.randrange(SMALLEST_FRAME, len(content))]))
    if chance < 0.05:
        return Step(step.port, bytes(content) + rng.randbytes(rng.randrange(1, 64)))
    if chance < 0.1:
        content[rng.randrange(70)] = rng.randrange(256)
    return Step(step.port, bytes(content))
