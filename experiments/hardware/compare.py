"""`inakit hardware diff`: compares the entries of switches with those of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console

from inakit.experiments.hardware.handover import chip_entries
from inakit.experiments.inspect.dump import call, group_line, key_texts, short
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import INA_HW, DataPlaneProgram
from inakit.planner.install.plan_entries import entries
from inakit.switch.entries import Entries, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handover.differences import Difference, Part, differences
from inakit.switch.handover.dumps import is_of_bfrt, load_dump
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError, unknown_name

SHOWN = 20
"""The number of differences shown for a switch; further ones are counted."""


@dataclass(frozen=True)
class Source:
    """The source of a switch's entries: a dump in a file, or a P4Runtime server (`HOST:PORT`, `HOST:PORT/DEVICE`)."""

    place: str

    @property
    def of_chip(self) -> bool:
        """Whether it is a dump of BF-Runtime."""
        return Path(self.place).is_file() and is_of_bfrt(Path(self.place))

    def read(self, program: Path, switch: str) -> SwitchEntries:
        """Read the switch's entries. Raises `InakitError`."""
        if Path(self.place).is_file():
            return load_dump(Path(self.place), program, switch)
        address, _, device = self.place.partition("/")
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdecimal() and (device or "0").isdecimal()):
            raise InputError(
                f"{switch}: '{self.place}' is no file: expected a dump of the switch, or the address of its P4Runtime "
                "server as HOST:PORT or HOST:PORT/DEVICE"
            )
        from inakit.switch.handover.p4runtime_text import load_schema, read_switch  # noqa: PLC0415, needs protobuf

        return read_switch(address, int(device or 0), load_schema(program), switch)


def sources_of(given: Sequence[str], names: Sequence[str]) -> dict[str, Source]:
    """The source of each switch's entries, from arguments `SWITCH=PLACE` or from a folder with a dump of every switch.

    Raises `InputError` for switches that the plan does not have, and for a folder without a dump of some switch.
    """
    if len(given) == 1 and Path(given[0]).is_dir():
        return dumps_in(Path(given[0]), names)
    found = {}
    for text in given:
        name, equals, place = text.partition("=")
        if not equals or not place:
            raise InputError(f"'{text}': expected SWITCH=DUMP, SWITCH=HOST:PORT/DEVICE, or a folder of dumps")
        if name not in names:
            raise unknown_name("switch of the plan", name, names)
        if name in found:
            raise InputError(f"switch '{name}' is given twice")
        found[name] = Source(place)
    return found


def dumps_in(folder: Path, names: Iterable[str]) -> dict[str, Source]:
    """The dumps in a folder, by switch, whose name they have: `leaf1.txt` or `leaf1.json`. Raises `InputError`."""
    files = {path.name.split(".")[0]: path for path in sorted(folder.iterdir()) if path.is_file()}
    missing = [name for name in names if name not in files]
    if missing:
        raise InputError(
            f"{folder}: no dump of {', '.join(missing[:5])}{' and others' if len(missing) > 5 else ''}; expected a "
            f"file such as {missing[0]}.txt, or name single switches: SWITCH=DUMP"
        )
    return {name: Source(str(files[name])) for name in names}


def compare(
    problem: Problem, plan: Plan, program: DataPlaneProgram, sources: Mapping[str, Source]
) -> dict[str, list[Difference]]:
    """Return the differences from the plan by switch. Raises `InakitError` for a switch that cannot be read.

    Dumps of BF-Runtime are compared with the plan's entries on chips, all other sources with those of `program`.
    """

    @cache
    def planned(of_chip: bool) -> Entries:
        return chip_entries(problem, plan) if of_chip else entries(problem, program.fitted(plan))

    found = {}
    for name, source in sources.items():
        of_chip = source.of_chip
        path, expected = (INA_HW if of_chip else program).path, planned(of_chip).of(name)
        found[name] = differences(read_program(path), expected, source.read(path, name))
    return found


def print_differences(console: Console, program: Path, found: Mapping[str, list[Difference]]) -> None:
    """Print a line for every switch, and one for each of its differences."""
    compiled = read_program(program)
    for name, listed in found.items():
        told = "as planned" if not listed else f"{len(listed)} difference{'s' * (len(listed) > 1)}"
        console.print(f"{name}: {told}", style="red" if listed else "green", highlight=False, markup=False)
        for line in difference_lines(compiled, listed):
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def difference_lines(program: Program, listed: Sequence[Difference]) -> Iterator[str]:
    """Yield a line for each difference, up to `SHOWN`."""
    for each in listed[:SHOWN]:
        yield f"{each.kind}: {words(program, each)}"
    if len(listed) > SHOWN:
        yield f"and {len(listed) - SHOWN} more"


def words(program: Program, difference: Difference) -> str:
    """Describe a difference: the switch's entry or group, and the planned one."""
    planned, held = difference.planned, difference.held
    if planned is None or held is None:
        part = planned or held
        assert part is not None
        return f"{place_of(program, part)}: {content_of(program, part)}"
    return f"{place_of(program, held)}: holds {content_of(program, held)}, planned is {content_of(program, planned)}"


def place_of(program: Program, part: Part) -> str:
    """The place of a part: an entry's table and key, or a group's number."""
    if isinstance(part, MulticastGroup):
        return f"multicast group {part.group}"
    table = program.table(part.table)
    named = zip((short(each.name) for each in table.key), key_texts(table, part), strict=True)
    return f"table {part.table} ({', '.join(f'{name}={value}' for name, value in named)})"


def content_of(program: Program, part: Part) -> str:
    """The content of a part: an entry's action, or the ports of a group."""
    if isinstance(part, TableEntry):
        return call(program.table(part.table), part)
    return group_line(part).partition(" -> ")[2]
