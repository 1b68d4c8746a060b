"""Entries for BF-Runtime: the JSON read back, the scripts run on a tree of tables, the compiler's schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from planned_switch import parts, planned, program

from inakit.switch.control.tables import PIPE, Document
from inakit.switch.entries import MulticastGroup, SwitchEntries
from inakit.switch.handover.bfrt import (
    add_script,
    check_documents,
    documents,
    dump_script,
    entries_of,
    load_schema,
    remove_script,
)
from inakit.switch.program.bmv2_json import parse_program
from inakit.switch.testing.random_packets import random_entries
from inakit.topo.errors import InputError

GROUPS = (MulticastGroup(1, (3,)), MulticastGroup(9, (1, 2), ((0, 1), (2, 2))), MulticastGroup(10, ()))
PROGRAMS = Path(__file__).parents[1] / "programs"


class Table:
    """A table of `bfrt_python`: what is added and removed, in order, in `log`."""

    def __init__(self, name: str, log: list[tuple[str, str]]) -> None:
        self.name, self.log, self.held = name, log, dict[str, Document]()

    def add_from_json(self, text: str) -> None:
        for each in json.loads(text):
            assert each["table_name"] == self.name
            short = {name.rpartition(".")[2].replace("$", ""): value for name, value in each["key"].items()}
            self.held[json.dumps(short, sort_keys=True)] = each
            self.log.append(("add", self.name))

    def delete(self, **key: int) -> None:
        del self.held[json.dumps(key, sort_keys=True)]
        self.log.append(("delete", self.name))

    def dump(self, *, json: bool = False, return_ents: bool = False) -> Any:
        assert json != return_ents
        return dumped(self.held) if json else list(self.held)


def dumped(held: dict[str, Document]) -> str:
    return json.dumps(list(held.values()))


class Shell:
    """The tree of tables that `bfshell` gives a script as `bfrt`."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.tables: dict[str, Table] = {}

    def run(self, script: str) -> None:
        """Run a script as some releases do: functions in it would not see its names."""
        exec(compile(script, "script", "exec"), {"bfrt": Node(self, "")}, {})

    def table(self, name: str) -> Table:
        return self.tables.setdefault(name, Table(name, self.log))


class Node:
    """What stands at a path of the tree."""

    def __init__(self, shell: Shell, path: str) -> None:
        self.shell, self.path = shell, path

    def complete_operations(self) -> None:
        """Nothing waits."""

    def __getattr__(self, part: str) -> Any:
        path = f"{self.path}.{part}".lstrip(".")
        if path.startswith("pre.") and path.count(".") == 1:
            return self.shell.table(f"${path}")
        name = path.removeprefix("ina.")
        return self.shell.table(name) if name.removeprefix(PIPE) in program().tables else Node(self.shell, path)


def with_groups() -> SwitchEntries:
    return replace(planned(), groups=GROUPS)


def test_json_is_read_back_as_equal_entries() -> None:
    assert entries_of(program(), json.loads(json.dumps(documents(program(), with_groups()))), "l1") == with_groups()


def test_numbers_of_dumps_may_be_texts() -> None:
    listed = documents(program(), with_groups())
    for each in listed:
        each["data"] = {k: hex(v) if isinstance(v, int) else v for k, v in each["data"].items()}
    assert entries_of(program(), listed, "l1") == with_groups()


def test_prefixes_masks_and_ranges_are_read_back() -> None:
    compiled = parse_program((PROGRAMS / "doors" / "served.json").read_bytes(), "served.json")
    drawn = random_entries(compiled, Random(1), per_table=5)
    assert {type(part).__name__ for entry in drawn.tables for part in entry.key} >= {"Lpm", "Ternary", "Range"}
    entries = SwitchEntries("s", drawn.tables)
    assert entries_of(compiled, documents(compiled, entries), "s") == entries


def test_scripts_add_and_remove_all_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shell, listed = Shell(), documents(program(), with_groups())
    shell.run(add_script("ina", "l1", listed))
    shell.run(dump_script("ina", program()))
    assert parts(entries_of(program(), json.loads(Path("dump.json").read_text()), "l1")) == parts(with_groups())
    added = [name for _, name in shell.log]
    assert sorted(added) == sorted(each["table_name"] for each in listed)
    assert added.index("$pre.mgid") < added.index("pipe.InaIngress.results")
    shell.run(remove_script("ina", "l1", program(), listed))
    assert shell.log[len(added) :] == [("delete", each["table_name"]) for each in reversed(listed)]
    assert not any(table.held for table in shell.tables.values())


def test_a_script_whose_entries_are_refused_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell()
    monkeypatch.setattr(shell.table("pipe.InaIngress.forward"), "add_from_json", lambda _: print("Error: no space"))
    with pytest.raises(RuntimeError, match="forward holds 0 entries of the plan's"):
        shell.run(add_script("ina", "l1", documents(program(), planned())))


def described(width: int = 0) -> dict[str, Any]:
    """A bf-rt.json of the program, by the published structure of such files, its ports `width` bits wide."""
    tables = []
    for table in program().tables.values():
        key = [
            {"name": part.name, "match_type": "Exact", "type": {"type": "bytes", "width": width or part.bits}}
            for part in table.key
        ]
        actions = [
            {
                "name": action.name,
                "data": [
                    {"name": each.name, "type": {"type": "bytes", "width": each.bits}} for each in action.parameters
                ],
            }
            for action in table.actions
        ]
        tables.append({"name": f"pipe.{table.name}", "size": table.size, "key": key, "action_specs": actions})
    return {"schema_version": "1.0.0", "tables": tables}


def test_entries_are_held_to_the_compilers_schema(tmp_path: Path) -> None:
    path = tmp_path / "bf-rt.json"
    path.write_text(json.dumps(described()))
    check_documents(load_schema(path), documents(program(), planned()))
    path.write_text(json.dumps(described(width=1)))
    with pytest.raises(InputError, match=r"'standard\.ingress_port', which has 1 bits"):
        check_documents(load_schema(path), documents(program(), planned()))


def test_a_name_or_a_number_of_entries_that_the_schema_does_not_have_is_found(tmp_path: Path) -> None:
    path, schema = tmp_path / "bf-rt.json", described()
    forward = next(table for table in schema["tables"] if table["name"].endswith("forward"))
    for change, message in (
        ({"size": 1}, "takes 1 entries, the plan has more"),
        ({"key": []}, "hdr.ina.job, hdr.ina.tree, hdr.ina.label is given, nothing expected"),
        ({"action_specs": []}, "unknown action"),
        ({"name": "pipe.InaIngress.forwrd"}, "did you mean 'pipe.InaIngress.forwrd'"),
    ):
        path.write_text(json.dumps(schema | {"tables": [*schema["tables"], forward | change]}))
        if "name" in change:
            others = [table for table in schema["tables"] if table is not forward]
            path.write_text(json.dumps(schema | {"tables": [*others, forward | change]}))
        with pytest.raises(InputError, match=message):
            check_documents(load_schema(path), documents(program(), planned()))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tables": [{"name": "pipe.x"}]}'])
def test_a_broken_schema_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "bf-rt.json").write_text(text)
    with pytest.raises(InputError, match=r"expected a bf-rt\.json of the compiler"):
        load_schema(tmp_path / "bf-rt.json")
