"""The commands of `simple_switch_CLI`, run on a control plane, or read as entries; `SwitchEntries.cli` writes them.

Each kind of entities has its own commands. A name can be any unique ending of a full name. Commands that only read, or
have no meaning here, are skipped with a reason. Commands that cannot be carried out raise `InputError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from inakit.switch.control.actions import parse_params
from inakit.switch.control.codecs import Command
from inakit.switch.control.control_plane import COMMANDS as ENTITY_COMMANDS
from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import by_priority
from inakit.switch.control.match_keys import parse_key, parse_number
from inakit.switch.control.recorded_entries import RecordedEntries
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.program import Program, Table
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files.reader import FileKind, read_text


def whole_name(what: str, name: str, known: Iterable[str]) -> str:
    """The name of `known` that `name` stands for. Raises `InputError`, with candidates, if none or several fit."""
    choices = list(known)
    return name if name in choices else one_of(what, name, ending_with(name, choices), choices)


def ending_with(name: str, known: Iterable[str]) -> list[str]:
    """The names of `known` whose last parts, between dots, are those of `name`."""
    return [each for each in known if each.endswith(f".{name}")]


def one_of(what: str, name: str, fitting: Sequence[str], known: Iterable[str]) -> str:
    """The only element of `fitting`; `InputError` if it has none or several."""
    if len(fitting) > 1:
        raise InputError(f"{what} '{name}' is ambiguous: it ends {' and '.join(fitting)}; write more of the name")
    if not fitting:
        raise unknown_name(what, name, known)
    return fitting[0]


class Queues(Protocol):
    """The queues in front of egress; no port means all, no priority means all of the port."""

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        """Set the rate of queues; 0: no limit."""

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Set the depth of queues."""


Words = Sequence[str]

NAMES: dict[str, tuple[str, Callable[[Program], Iterable[str]]]] = {
    "TABLE": ("table", lambda program: program.tables),
    "METER": ("meter", lambda program: program.meters | program.direct_meters),
    "COUNTER": ("counter", lambda program: program.counters | program.direct_counters),
    "REGISTER": ("register", lambda program: program.registers),
    "VALUE_SET": ("parser value set", lambda program: program.value_sets),
    "CALCULATION": ("calculation", lambda program: program.calculations),
}
"""Words of a usage that stand for a name: the kind of thing named, and the known names."""

ARGUMENTS = {
    "BYTES": "octets",
    "MILLISECONDS": "timeout_ms",
    "PACKETS_PER_SECOND": "packets_per_s",
    "PARAMETER...": "params",
    "RATE:BURST...": "rates",
    "PORT...": "ports",
    "LAG...": "lags",
}
"""The names of requests' arguments that differ from the words of a usage."""


class CommandedSwitch:
    """The control plane of a switch that takes commands. `queues` is None if the switch has none."""

    def __init__(self, control: ControlPlane, queues: Queues | None = None) -> None:
        self.control, self.program, self.queues = control, control.program, queues

    def run(self, kind: str, command: Command, words: Words) -> None:
        """Carry out a command for entities of a kind; `ValueError` for words that do not match its usage."""
        owners = {"queues": self.queues, "switch": self.control}
        owner = owners[kind] if kind in owners else getattr(self.control, kind)
        command.request(owner, **command.given, **self.arguments(command.usage, words))

    def arguments(self, usage: str, words: Words) -> dict[str, Any]:
        """The arguments in words, by name."""
        given: dict[str, Any] = {}
        expected, _, expected_behind = usage.partition(" => ")
        if expected_behind:
            at = words.index("=>") if "=>" in words else len(words)
            words, behind = words[:at], words[at + 1 :]
        words = list(words)
        for place in expected.split():
            if place == "[=>]":
                words = words[words[:1] == ["=>"] :]
            elif place.strip("[]").endswith("..."):
                words = self.take_all(place.strip("[]"), words, given)
            elif place != "[|" and (words or not place.startswith("[")):
                if not words:
                    raise ValueError(f"{place} is missing")
                self.take(place.strip("[]"), words.pop(0), given)
        if words:
            raise ValueError(f"too many words: {' '.join(words)}")
        if expected_behind:
            self.take_behind(expected_behind.split()[0], behind, given)
        return given

    def take(self, place: str, word: str, given: dict[str, Any]) -> None:
        """Read one word: a name, a flag, or a number."""
        if place in NAMES:
            what, known = NAMES[place]
            value: object = whole_name(what, word, known(self.program))
        elif place == "PROFILE":
            value = self.profile(word)
        elif place == "ACTION":
            actions = self.actions(given)
            value = whole_name("action", word, actions)
        elif place.startswith("REFLECT"):
            value = word.lower() == "true" if word.lower() in ("true", "false") else bool(int(word, 0))
        else:
            value = parse_number(word)
        given[ARGUMENTS.get(place, place.lower())] = value

    def take_all(self, place: str, words: list[str], given: dict[str, Any]) -> list[str]:
        """Read all words, or those before `|` if they are ports of a node; return the rest."""
        if place == "KEY...":
            given["key"] = parse_key(self.program.tables[given["table"]], words)
        elif place == "PARAMETER...":
            given["params"] = parse_params(self.actions(given)[given["action"]], words)
        elif place == "RATE:BURST...":
            pairs = (word.split(":") for word in words)
            given["rates"] = tuple((float(per_microsecond), int(burst)) for per_microsecond, burst in pairs)
        else:
            at = words.index("|") if "|" in words else len(words)
            given[ARGUMENTS[place]] = [parse_number(word) for word in words[:at]]
            return words[at + 1 :]
        return []

    def take_behind(self, place: str, words: Words, given: dict[str, Any]) -> None:
        """Read the words after `=>`: parameters or a handle, and a priority if the table's entries need one."""
        table: Table = self.program.tables[given["table"]]
        params = place == "PARAMETER..."
        count = len(self.actions(given)[given["action"]].parameters) if params else 1
        prioritised = by_priority(table)
        if len(words) != count + prioritised:
            priority = " and a priority" if prioritised else ""
            raise ValueError(f"{count} values{priority} expected behind =>, {len(words)} given")
        if prioritised:
            given["priority"] = int(words[count])
        if params:
            self.take_all(place, list(words[:count]), given)
        else:
            self.take(place, words[0], given)

    def profile(self, name: str) -> str:
        """The action profile that `name` stands for: its own name, or that of a table with the profile."""
        tables = {table.name: table.profile for table in self.program.tables.values() if table.profile is not None}
        found = whole_name("action profile", name, [*self.program.profiles, *tables])
        return tables.get(found, found)

    def actions(self, given: dict[str, Any]) -> dict[str, Any]:
        """The actions of the given table or action profile, by name."""
        if "profile" in given:
            return self.control.profiles.profiles[given["profile"]].actions
        return {action.name: action for action in self.program.tables[given["table"]].actions}


READS = "it only reads"
QUEUES = "a switch without a network has no queues"
DEFINED = "it only shows parts of the program"

SKIPPED = {
    "table_dump": READS,
    "table_dump_entry": READS,
    "table_dump_entry_from_key": READS,
    "table_dump_member": READS,
    "table_dump_group": READS,
    "table_num_entries": READS,
    "act_prof_dump": READS,
    "act_prof_dump_member": READS,
    "act_prof_dump_group": READS,
    "mc_dump": READS,
    "mirroring_get": READS,
    "meter_get_rates": READS,
    "counter_read": READS,
    "register_read": READS,
    "pvs_get": READS,
    "show_ports": READS,
    "switch_info": READS,
    "get_time_elapsed": READS,
    "get_time_since_epoch": READS,
    "write_config_to_file": READS,
    "serialize_state": READS,
    "show_tables": DEFINED,
    "show_actions": DEFINED,
    "show_pvs": DEFINED,
    "table_show_actions": DEFINED,
    "table_info": DEFINED,
    "set_queue_rate": QUEUES,
    "set_queue_depth": QUEUES,
    "help": "it is for people",
    "?": "it is for people",
    "greet": "it is for people",
    "shell": "nothing is run",
    "!": "nothing is run",
    "EOF": "files end by themselves",
}
"""Commands that are skipped, with the reason: they do not change how packets leave."""

REFUSED = {
    "load_new_config_file": "the program is the one that the command line names",
    "swap_configs": "the program is the one that the command line names",
    "port_add": "ports are chosen on the command line",
    "port_remove": "ports are chosen on the command line",
    "set_toeplitz_hash_key": "hashes of this kind are not supported",
}
"""Commands that are refused, with the reason: without them packets would leave in another way."""


COMMANDS: dict[str, tuple[str, Command]] = {
    **ENTITY_COMMANDS,
    "reset_state": ("switch", Command("", ControlPlane.reset_state)),
    "set_queue_rate": (
        "queues",
        Command("PACKETS_PER_SECOND [PORT [PRIORITY]]", lambda queues, **given: queues.set_rate(**given)),
    ),
    "set_queue_depth": (
        "queues",
        Command("PACKETS [PORT [PRIORITY]]", lambda queues, **given: queues.set_depth(**given)),
    ),
}
"""Every command that changes the switch, with the kind of entities that it is for."""

COMMENTS = ("#", "//")
COMMAND_FILE = FileKind("file of simple_switch_CLI's commands", max_bytes=64 << 20)


def run_command(switch: CommandedSwitch, words: Sequence[str]) -> str | None:
    """Carry out one command, given as words; return the reason if it is skipped."""
    if not words:
        return None
    name, *rest = words
    kind, command = COMMANDS.get(name, ("", None))
    if command is None or (kind == "queues" and switch.queues is None):
        return why_skipped(name)
    try:
        switch.run(kind, command, rest)
    except ValueError as error:
        raise InputError(f"'{' '.join(words)}': {error}; expected {name} {command.usage}".rstrip()) from error
    return None


def why_skipped(command: str) -> str:
    """The reason for skipping a command without effect; `InputError` if it must not be skipped.

    simple_switch_CLI ignores lines that are no commands; here a misspelt command is an error.
    """
    if command in SKIPPED:
        return f"'{command}' is skipped: {SKIPPED[command]}"
    if command in REFUSED:
        raise InputError(f"'{command}': {REFUSED[command]}")
    if difflib.get_close_matches(command, [*COMMANDS, *SKIPPED, *REFUSED], n=1):
        raise unknown_name("command", command, COMMANDS)
    return f"'{command}' is no command of simple_switch_CLI: the line is skipped"


def run_commands(path: Path, switch: CommandedSwitch, skipped: Callable[[str], None] = lambda _: None) -> None:
    """Carry out the commands of a file, one per line.

    `skipped` is called with a line for each skipped command. Raises `InputError`, with file and line, if a command
    fails.
    """
    for number, line in enumerate(read_text(path, COMMAND_FILE).splitlines(), start=1):
        try:
            said = run_command(switch, [] if line.lstrip().startswith(COMMENTS) else line.partition("#")[0].split())
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        if said is not None:
            skipped(f"{path}:{number}: {said}")


def read_commands(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries that the commands of a file install in a switch that runs `program`."""
    reader = CommandReader(program)
    run_commands(path, reader.switch, skipped)
    return reader.take()


class CommandReader:
    """Reads commands as entries, one after the other."""

    def __init__(self, program: Program) -> None:
        self.recorded = RecordedEntries(program)
        self.switch = CommandedSwitch(ControlPlane(self.recorded))

    def add(self, words: Sequence[str]) -> str | None:
        """Read one command, given as words; return the reason if it is skipped."""
        return run_command(self.switch, words)

    def take(self) -> SwitchEntries:
        """All entries read since the last call."""
        return self.recorded.take()
