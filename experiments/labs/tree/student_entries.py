"""A student's entries: asked of the sandbox, switch by switch, and taken only if they are entries of the tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from inakit.experiments.labs.loss.nodes import worker_limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, printable
from inakit.experiments.labs.tree.plans import Drawn
from inakit.experiments.labs.tree.tables import DOWN, TABLES
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.topo.errors import InputError

FILE = "entries.py"
HIGHEST_PORT = 511
NO_GROUP = MulticastGroup(0, ())


class StudentEntries:
    """The student's function, in a sandbox."""

    def __init__(self, text: str) -> None:
        self.process = Sandboxed("inakit.experiments.labs.runners.entries_runner", worker_limits())
        try:
            self.ask("load", text)
        except BaseException:
            self.close()
            raise

    def of(self, drawn: Drawn, switch: str, wanted: Collection[str] = tuple(TABLES)) -> SwitchEntries:
        """The entries for a switch, of the tables that are wanted; `InputError` for a mistake of the student's code.

        Multicast groups belong to table `down`.
        """
        tables: dict[tuple[str, tuple[int, ...]], TableEntry] = {}
        groups: dict[int, MulticastGroup] = {}
        for row in self.ask("entries", drawn.document(), switch):
            match row:
                case ["entry", str() as table, list() as key, str() as action, list() as params]:
                    entry = entry_of(switch, table, (numbers(key), numbers(params)), action)
                    known = tables.setdefault((table, numbers(key)), entry)
                    if known != entry and table in wanted:
                        raise InputError(f"{FILE}: {switch}: table '{table}' has two entries for key {tuple(key)}")
                case ["group", int() as number, list() as ports]:
                    groups[number] = group_of(switch, number, numbers(ports), groups) if DOWN in wanted else NO_GROUP
                case _:
                    raise EndedError("its answer is none")
        chosen = tuple(entry for entry in tables.values() if entry.table in wanted)
        return SwitchEntries(switch, chosen, tuple(groups.values()) if DOWN in wanted else ())

    def ask(self, *question: Any) -> list[Any]:
        """The rows of an answer."""
        match self.process.ask(list(question)):
            case ["ok", list() as rows]:
                return rows
            case ["mistake", str() as message]:
                told = printable(message)
                raise InputError(told if told.startswith(FILE) else f"{FILE}: {told}")
        raise EndedError("its answer is none")

    def close(self) -> None:
        """End the process."""
        self.process.close()


def numbers(found: list[Any]) -> tuple[int, ...]:
    """Whole numbers of 16 bits."""
    if not all(type(each) is int and 0 <= each < 1 << 16 for each in found):
        raise EndedError("its answer has something else than numbers")
    return tuple(found)


def entry_of(switch: str, table: str, parts: tuple[Sequence[int], Sequence[int]], action: str) -> TableEntry:
    """An entry of a known table; `InputError` for another table or action, and for numbers that do not fit."""
    where = f"{FILE}: {switch}: Entry({printable(table)[:40]!r}, ...)"
    if table not in TABLES:
        raise InputError(f"{where}: unknown table; expected one of {', '.join(TABLES)}")
    known = TABLES[table]
    if action != known.action:
        raise InputError(f"{where}: action {printable(action)[:40]!r}: expected '{known.action}'")
    for what, fields, found in (("key", known.key, parts[0]), ("parameters", known.params, parts[1])):
        if len(found) != len(fields):
            names = ", ".join(fields) or "none"
            raise InputError(f"{where}: {len(found)} numbers as {what}, expected {len(fields)} ({names})")
        for (name, bits), value in zip(fields.items(), found, strict=True):
            if value >= 1 << bits:
                raise InputError(f"{where}: {name} {value} does not fit {bits} bits")
    return TableEntry(table, tuple(parts[0]), action, tuple(parts[1]))


def group_of(switch: str, number: int, ports: tuple[int, ...], known: dict[int, MulticastGroup]) -> MulticastGroup:
    """A multicast group; `InputError` for one that is given twice, or has a port twice or beyond the last."""
    where = f"{FILE}: {switch}: Group({number}, ...)"
    if number in known and known[number].ports != ports:
        raise InputError(f"{where}: given twice, with other ports")
    if number == 0 or len(set(ports)) != len(ports) or max(ports, default=0) > HIGHEST_PORT:
        raise InputError(f"{where}: expected a number from 1, and different ports up to {HIGHEST_PORT}")
    return MulticastGroup(number, ports)
