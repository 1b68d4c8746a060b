"""The export of a plan to hardware: its entries in the formats of switches, and a JSON file for each end host.

A worker sends the fragments of its trees, each under its label, and gets their sums. A parameter server (PS) sums the
fragments that arrive under the labels of a tree, or stands by for a root in a switch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from shutil import copyfile
from typing import Literal
from urllib.parse import quote

from inakit.experiments.inspect.dump import call, copies, key_texts, short
from inakit.experiments.run.console import Screen
from inakit.planner.core.files import FILE, to_json
from inakit.planner.core.plan import ROOT_LABEL, Plan, fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.install.ina_program import INA, INA_HW, PIPELINE, DataPlaneProgram
from inakit.planner.install.plan_entries import entries
from inakit.switch.entries import Entries, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handover import p4runtime_text as text
from inakit.switch.handover.bfrt import (
    add_script,
    check_documents,
    documents,
    dump_script,
    lines,
    load_schema,
    remove_script,
)
from inakit.switch.handover.differences import Difference, Part, differences
from inakit.switch.handover.dumps import is_of_bfrt, load_dump
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError, PlanError, unknown_name, writing
from inakit.topo.fabric.fabric import Fabric, addresses
from inakit.topo.files.reader import read_file, validate


@dataclass(frozen=True)
class Peer:
    """A host and its addresses."""

    name: str
    ipv4: str
    mac: str


@dataclass(frozen=True)
class SentTree:
    """A tree in which the host is a worker.

    It sends `fragments` fragments of the job's gradient from `first_fragment` on to `server`, under `label`, at
    `rate_bps` of whole frames, with at most `window` fragments in flight (None: slots set no bound). Fragment n
    of the run goes to slot n modulo `slots`, counted from the tree's first slot, or with `shared_slots` to one by a
    hash. `reach`: a fragment that is this much later than another is sent only when all workers have the earlier one's
    result; 0 is no bound.
    """

    job: int
    tree: int
    label: int
    server: Peer
    first_fragment: int
    fragments: int
    rate_bps: float
    slots: int | None
    shared_slots: bool
    window: int | None
    reach: int
    policy: str
    priority: int


@dataclass(frozen=True)
class ServedTree:
    """A tree that ends at the host. Sums are complete when all labels of `arriving` have come.

    `arriving`: the number of workers behind each label. `workers`: by label, the hosts that get results on request.
    `stands_by`: the root is a switch, and the host sums only what the switch cannot.
    """

    job: int
    tree: int
    first_fragment: int
    fragments: int
    arriving: dict[int, int]
    workers: dict[int, Peer]
    stands_by: bool


@dataclass(frozen=True)
class HostJob:
    """A job in which the host takes part; `values` is the number of 32-bit integers in a fragment."""

    number: int
    gradient_bytes: int
    iterations: int
    values: int
    fragment_wire_bytes: int


@dataclass(frozen=True)
class EndHost:
    """The contents of a host's file."""

    version: Literal[1]
    host: Peer
    jobs: tuple[HostJob, ...]
    sends: tuple[SentTree, ...]
    serves: tuple[ServedTree, ...]


def end_hosts(problem: Problem, plan: Plan) -> list[EndHost]:
    """The files of the hosts of the plan's trees. Ranks of collectives are left out: they have no trees."""
    peers = {name: Peer(name, each.ipv4_text, each.mac_text) for name, each in addresses(problem.fabric).items()}
    ranges, fragment = fragment_ranges(problem, plan), problem.fragment
    sends: defaultdict[str, list[SentTree]] = defaultdict(list)
    serves: defaultdict[str, list[ServedTree]] = defaultdict(list)
    for planned in plan.trees:
        tree, carried = planned.tree, ranges[planned.job, planned.tree.number]
        for label, worker in tree.workers.items():
            sends[worker].append(
                SentTree(
                    job=planned.job,
                    tree=tree.number,
                    label=label,
                    server=peers[tree.server or tree.root],
                    first_fragment=carried.start,
                    fragments=len(carried),
                    rate_bps=planned.rate_bps,
                    slots=tree.slots,
                    shared_slots=policy_of(tree.policy).shared,
                    window=tree.window,
                    reach=tree.reach,
                    policy=tree.policy,
                    priority=tree.priority,
                )
            )
        if tree.server is not None:
            arriving = [branch.label for branch in tree.branches if branch.parent == ROOT_LABEL]
            serves[tree.server].append(
                ServedTree(
                    job=planned.job,
                    tree=tree.number,
                    first_fragment=carried.start,
                    fragments=len(carried),
                    arriving={label: len(tree.workers_below[label]) for label in arriving},
                    workers={label: peers[worker] for label, worker in tree.workers.items()},
                    stands_by=tree.in_network_root,
                )
            )
    found = []
    for host in dict.fromkeys([*sends, *serves]):
        numbers = {tree.job for tree in sends[host]} | {tree.job for tree in serves[host]}
        jobs = (
            HostJob(job.number, job.gradient_bytes, job.iterations, fragment.values, fragment.wire_bytes)
            for job in problem.jobs
            if job.number in numbers
        )
        found.append(EndHost(1, peers[host], tuple(jobs), tuple(sends[host]), tuple(serves[host])))
    return found


def load_end_host(path: Path) -> EndHost:
    """Load the file of a host. Raises `InputError`."""
    return validate(read_file(path, FILE), EndHost)


BFRT, P4RUNTIME, HOSTS = "bfrt", "p4runtime", "hosts"
"""The folders in a plan's folder."""
PORTS_PER_PIPE = 128
"""On a chip, device port p belongs to pipeline p // 128."""


def write_handover(
    folder: Path, problem: Problem, plan: Plan, *, program: DataPlaneProgram = INA, schema: Path | None = None
) -> list[str]:
    """Write `bfrt/`, `p4runtime/` and `hosts/` into the folder of a plan; return lines about missing files.

    P4Runtime's entries are for `program`, BF-Runtime's for the chip's shell of `ina_hw`. If `schema` names a bf-rt.json
    of the chip's compiler, the latter are checked against it. Raises `InputError`, `OutputError`.
    """
    with writing(folder / HOSTS):
        (folder / HOSTS).mkdir(parents=True, exist_ok=True)
        for each in end_hosts(problem, plan):
            (folder / HOSTS / f"{quote(each.host.name, safe=' ')}.json").write_text(to_json(each))
    write_p4runtime(folder / P4RUNTIME, entries(problem, program.fitted(plan)), program.path)
    return [*write_bfrt(folder / BFRT, problem, plan, schema), *left_out(plan)]


def chip_entries(problem: Problem, plan: Plan) -> Entries:
    """Return the entries of a plan on chips: those of `ina_hw` without pipelines, which a chip derives from its ports.

    Raises `PlanError` for a plan that the program cannot run.
    """
    installed = entries(problem, INA_HW.fitted(plan)).switches
    return Entries(
        tuple(replace(each, tables=tuple(row for row in each.tables if row.table != PIPELINE)) for each in installed)
    )


def write_bfrt(folder: Path, problem: Problem, plan: Plan, schema: Path | None) -> list[str]:
    """Write for each switch the entries as JSON and the scripts that add and remove them; and the script that dumps.

    Return lines about missing files, and about differences from the plan on a chip.
    """
    try:
        installed = chip_entries(problem, plan)
    except PlanError as error:
        return [f"no {BFRT}/: {error}"]
    compiled, known = read_program(INA_HW.path), None if schema is None else load_schema(schema)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dump.py").write_text(dump_script(INA_HW.name, compiled, without=(PIPELINE,)))
        for each in installed.switches:
            listed, name = documents(compiled, each), quote(each.switch, safe=" ")
            if known is not None:
                check_documents(known, listed)
            (folder / f"{name}.json").write_text(lines(listed) + "\n")
            (folder / f"{name}.add.py").write_text(add_script(INA_HW.name, each.switch, listed))
            (folder / f"{name}.remove.py").write_text(remove_script(INA_HW.name, each.switch, compiled, listed))
    return list(misplaced(problem.fabric))


def misplaced(fabric: Fabric) -> Iterator[str]:
    """Yield a line if ports are in other pipelines than on a chip."""
    found = [
        (switch.name, port, number)
        for switch in fabric.switches
        for number, ports in enumerate(switch.pipelines)
        for port in ports
        if port // PORTS_PER_PIPE != number
    ]
    if found:
        name, port, number = found[0]
        yield (
            f"{BFRT}/ differs from the plan: port {port} of switch '{name}' is in pipeline {number}, on a chip "
            f"device port {port} is in pipeline {port // PORTS_PER_PIPE} ({len(found)} such ports): give device ports "
            "in the fabric's file (a_port, b_port)"
        )


def write_p4runtime(folder: Path, installed: Entries, program: Path) -> None:
    """Write for each switch the requests that add and remove its entries, and the P4Info."""
    info = text.load_schema(program)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        copyfile(text.p4info_of(program), folder / "p4info.txt")
        for each in installed.switches:
            name = quote(each.switch, safe=" ")
            (folder / f"{name}.add.txt").write_text(text.write_text(info, each))
            (folder / f"{name}.remove.txt").write_text(text.write_text(info, each, removal=True))


def left_out(plan: Plan) -> Iterator[str]:
    """Yield a line for each job without files of its hosts."""
    for each in plan.collectives:
        yield f"job {each.job}: no files of its hosts, because it is a collective; plan.json has the steps of its ranks"


# -- The comparison of the entries of switches with those of a plan: `inakit hardware diff`.

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
    for argument in given:
        name, equals, place = argument.partition("=")
        if not equals or not place:
            raise InputError(f"'{argument}': expected SWITCH=DUMP, SWITCH=HOST:PORT/DEVICE, or a folder of dumps")
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


def print_differences(screen: Screen, program: Path, found: Mapping[str, list[Difference]]) -> None:
    """Print a line for every switch, and one for each of its differences; JSON and CSV have all of them."""
    compiled = read_program(program)
    for name, listed in found.items():
        if not listed:
            screen.row(f"{name}: as planned", {"switch": name, "kind": "as planned", "difference": ""})
        for number, each in enumerate(listed):
            told = words(compiled, each)
            line = f"  {each.kind}: {told}" if number < SHOWN else ""
            if number == 0:
                line = f"{name}: {len(listed)} difference{'s' * (len(listed) > 1)}\n{line}"
            elif number == SHOWN:
                line = f"  and {len(listed) - SHOWN} more"
            screen.row(line, {"switch": name, "kind": each.kind, "difference": told})


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
    return copies(part)
