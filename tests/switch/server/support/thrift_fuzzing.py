"""Clients that treat a Thrift server badly, and clients beside them whose entries must not suffer."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from thrift_clients import Clients, connected
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TException, TMessageType, TType
from thriftpy2.transport.memory import TCyMemoryBuffer

from inakit.switch.server.thrift.listener import SERVICES
from inakit.switch.server.thrift.services import description

TYPES = description()
KEPT = "TestIngress.prefixes"
"""The table of those whose entries must stay; bad clients name all others."""

LEFT_ALONE = ("bm_reset_state", "bm_swap_configs", "bm_load_new_config")
"""Functions that take entries away where they succeed."""

NAMES = (
    *("TestIngress.exact_table", "TestIngress.masked", "TestIngress.ranges", "TestIngress.fixed", "keyless"),
    *("TestIngress.by_member", "TestIngress.by_group", "TestIngress.members", "TestIngress.paths"),
    *("TestIngress.to_port", "TestIngress.to_group", "TestIngress.clone_to", "TestIngress.learn", "NoAction"),
    *("TestIngress.coloured", "TestIngress.counted", "TestIngress.words", "TestIngress.long_words"),
    *("TestIngress.seen", "TestIngress.rate", "TestParser.tested", "calc", "calc_0", "learned_t", "01101"),
    *("TestIngress.keyless", "", "\0", "1" * 600, "\u00fc" * 100, "x" * 70_000),
)
NUMBERS = (*range(-2, 9), 16, 255, 256, 510, 511, 512, 4095, 4096, 1 << 15, 1 << 16, 1 << 24, (1 << 24) + 1)
BITS = {TType.I16: 16, TType.I32: 32, TType.I64: 64}
RATES = (0.0, 0.5, 1.0, -1.0, 1e300, float("inf"), float("nan"))


def drawn(draw: random.Random, kind: int, spec: Any = None) -> Any:
    """A value of a type, often at its borders; sometimes none."""
    if draw.random() < 0.02:
        return None
    if kind in BITS:
        least = -(1 << BITS[kind] - 1)
        value = draw.choice((*NUMBERS, *NUMBERS, least, -1 - least, draw.randrange(least, -least)))
        return max(least, min(value, -1 - least))
    return DRAWN[kind](draw, spec)


def drawn_structure(draw: random.Random, structure: Any) -> Any:
    """A structure with any fields."""
    fields = {each[1]: drawn(draw, each[0], *each[2:-1]) for each in structure.thrift_spec.values()}
    return structure(**fields)


def drawn_list(draw: random.Random, spec: Any) -> list[Any]:
    """A list of any length, most often a short one."""
    kind, of = spec if isinstance(spec, tuple) else (spec, None)
    length = draw.choice((0, 1, 1, 1, 2, 2, 3, 40))
    return [value for value in (drawn(draw, kind, of) for _ in range(length)) if value is not None]


DRAWN: dict[int, Callable[[random.Random, Any], Any]] = {
    TType.BOOL: lambda draw, _: draw.random() < 0.5,
    TType.DOUBLE: lambda draw, _: draw.choice(RATES),
    TType.STRING: lambda draw, _: draw.choice(NAMES),
    TType.BINARY: lambda draw, _: draw.randbytes(draw.choice((0, 1, 1, 2, 2, 4, 4, 6, 6, 7, 16, 5000))),
    TType.STRUCT: drawn_structure,
    TType.LIST: drawn_list,
}


@dataclass
class Fuzz:
    """Until `ends`, treats the server on `port` badly. `wrong` has what it did that it must not do."""

    port: int
    ends: float
    wrong: list[str] = field(default_factory=list)
    calls: int = 0
    broken: int = 0
    checks: int = 0

    def run(self) -> None:
        """Run clients of each kind at once."""
        kinds = [*[self.call, self.send_broken, self.keep] * 4, self.idle]
        threads = [
            threading.Thread(target=self.guarded, args=(kind, seed), name=kind.__name__, daemon=True)
            for seed, kind in enumerate(kinds)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, self.ends - time.monotonic()) + 60)
            if thread.is_alive():
                self.wrong.append(f"{thread.name} still waits for an answer")

    def guarded(self, kind: Callable[[random.Random], None], seed: int) -> None:
        """Note what a client meets that nobody should."""
        try:
            kind(random.Random(f"{kind.__name__}{seed}{time.time_ns()}"))
        except Exception as error:
            self.wrong.append(f"{kind.__name__}: {error!r}")

    def going(self) -> bool:
        """Whether to go on."""
        return time.monotonic() < self.ends and not self.wrong

    def call(self, draw: random.Random) -> None:
        """Call functions with any arguments: whatever they are, the answer is one that the service declares."""
        with connected(self.port) as clients:
            while self.going():
                name = draw.choice(list(SERVICES))
                self.call_one(draw, getattr(clients, name), getattr(TYPES, SERVICES[name]))
                self.calls += 1

    def call_one(self, draw: random.Random, client: Any, service: Any) -> None:
        """Call one function."""
        function = draw.choice([each for each in service.thrift_services if each not in LEFT_ALONE])
        arguments = drawn_arguments(draw, service, function)
        try:
            getattr(client, function)(**arguments)
        except TApplicationException as error:
            if "Traceback" in str(error):
                self.wrong.append(f"{function}{str(arguments)[:2000]}: {error}")
        except TException:
            return

    def send_broken(self, draw: random.Random) -> None:
        """Send messages with bytes that are wrong, missing or too many, and leave."""
        while self.going():
            with socket.create_connection(("localhost", self.port), 10) as connection:
                connection.settimeout(0.2)
                for _ in range(draw.randrange(1, 6)):
                    with suppress(OSError):
                        connection.sendall(broken(draw, message(draw)))
                        connection.recv(1 << 16)
            self.broken += 1

    def idle(self, draw: random.Random) -> None:
        """Connect often, with a part of a message or nothing, and stay."""
        kept: list[socket.socket] = []
        while self.going():
            kept.append(socket.create_connection(("localhost", self.port), 10))
            whole = message(draw)
            kept[-1].sendall(whole[: draw.randrange(min(len(whole), 100))])
            if len(kept) > 200:
                kept.pop(draw.randrange(len(kept))).close()
            time.sleep(0.005)
        for connection in kept:
            connection.close()

    def keep(self, draw: random.Random) -> None:
        """Add, change and remove entries of an own range of keys, and look whether all of them are there."""
        first = draw.randrange(1 << 16) << 16
        entries: dict[int, tuple[int, int]] = {}
        with connected(self.port) as clients:
            while self.going():
                for _ in range(20):
                    change_one(draw, clients, entries, first)
                self.check(clients, entries, first)

    def check(self, clients: Clients, entries: dict[int, tuple[int, int]], first: int) -> None:
        """Note entries of a range of keys that are lost, wrong or too many; `entries` are (handle, port) by key."""
        found = {}
        for entry in clients.standard.bm_mt_get_entries(0, KEPT):
            key = int.from_bytes(entry.match_key[0].lpm.key, "big")
            if key >> 16 == first >> 16:
                found[key] = entry.entry_handle, int.from_bytes(entry.action_entry.action_data[1], "big")
        if found != entries:
            self.wrong.append(f"entries are {found}, not {entries}")
        self.checks += 1


def change_one(draw: random.Random, clients: Clients, entries: dict[int, tuple[int, int]], first: int) -> None:
    """Add, change or remove one entry."""
    standard, key, port = clients.standard, first + draw.randrange(100), draw.randrange(1, 512)
    action = "TestIngress.mark", [bytes(6), port.to_bytes(2, "big")]
    if key not in entries:
        part = TYPES.KeyPart(1, lpm=TYPES.LpmPart(key.to_bytes(4, "big"), 32))
        entries[key] = standard.bm_mt_add_entry(0, KEPT, [part], *action, TYPES.Options()), port
    elif draw.random() < 0.5:
        standard.bm_mt_modify_entry(0, KEPT, entries[key][0], *action)
        entries[key] = entries[key][0], port
    else:
        standard.bm_mt_delete_entry(0, KEPT, entries.pop(key)[0])


def drawn_arguments(draw: random.Random, service: Any, function: str) -> dict[str, Any]:
    """Any arguments of a function, without those that are left out; the context is most often the one there is."""
    spec = getattr(service, f"{function}_args").thrift_spec.values()
    found = {each[1]: drawn(draw, each[0], *each[2:-1]) for each in spec}
    if "cxt_id" in found and draw.random() < 0.98:
        found["cxt_id"] = 0
    return {name: value for name, value in found.items() if value is not None}


def message(draw: random.Random) -> bytes:
    """The message of a call of any function with any arguments."""
    name = draw.choice(list(SERVICES))
    service = getattr(TYPES, SERVICES[name])
    function = draw.choice([each for each in service.thrift_services if each not in LEFT_ALONE])
    protocol = TCyBinaryProtocol(TCyMemoryBuffer())
    protocol.write_message_begin(f"{name}:{function}", TMessageType.CALL, draw.randrange(1 << 31))
    getattr(service, f"{function}_args")(**drawn_arguments(draw, service, function)).write(protocol)
    whole: bytes = protocol.trans.getvalue()
    return whole


def broken(draw: random.Random, whole: bytes) -> bytes:
    """A message with some bytes changed, cut out or put in, or other bytes altogether."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randrange(1, 2000))
    data = bytearray(whole)
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(data) + 1)
        size = draw.choice((1, 1, 2, 4, 4, 8, 100))
        put = draw.choice((draw.randbytes(size), b"\xff" * size, b"\x7f" + b"\xff" * 3, bytes(size), b""))
        data[at : at + draw.choice((0, len(put), size))] = put
    return bytes(data)
