"""Dumps of switches, in each format, against the plan: what is wrong is found and named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from planned_switch import parts, planned, program

from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handover.bfrt import documents
from inakit.switch.handover.differences import Difference, differences
from inakit.switch.handover.dumps import load_dump, read_dump
from inakit.switch.running_switch import PROGRAM
from inakit.topo.errors import InputError

FORWARD = "InaIngress.forward"
FIELD = "scalars.metadata_t._pipeline16"
"""The name that p4c had made for the field of `meta.pipeline` in the program of which the output was recorded."""
PRINTED = (
    (Path(__file__).parent / "simple_switch_cli.txt")
    .read_text()
    .replace(FIELD, str(program().table("InaIngress.aggregation").key[0].value))
)
"""What simple_switch_CLI printed of the planned switch: `table_dump` of its six tables, and `mc_dump`."""


def of_kit(entries: SwitchEntries) -> str:
    """The entries as `inakit dump --format json` writes them."""
    tables: dict[str, list[object]] = {name: [] for name, table in program().tables.items() if table.key}
    for each in entries.tables:
        tables[each.table].append({"key": list(each.key), "action": each.action, "params": list(each.params)})
    return json.dumps({"tables": tables, "groups": {group.group: list(group.ports) for group in entries.groups}})


def of_p4runtime(entries: SwitchEntries) -> str:
    pytest.importorskip("google.protobuf")
    from inakit.switch.handover.p4runtime_text import load_schema, write_text  # noqa: PLC0415

    return write_text(load_schema(PROGRAM), entries)


def of_bfrt(entries: SwitchEntries) -> str:
    return json.dumps(documents(program(), entries))


FORMATS = pytest.mark.parametrize("written", [of_kit, of_p4runtime, of_bfrt], ids=["kit", "p4runtime", "bfrt"])


def test_what_simple_switch_cli_prints_is_the_plan() -> None:
    assert parts(read_dump(PRINTED, PROGRAM, "l1")) == parts(planned())


@FORMATS
def test_a_dump_is_read_whatever_its_format(written: object) -> None:
    assert callable(written)
    assert parts(read_dump(written(planned()), PROGRAM, "l1")) == parts(planned())


@FORMATS
def test_a_wrong_a_missing_and_an_extra_entry_are_found(written: object) -> None:
    assert callable(written)
    forward = [each for each in planned().tables if each.table == FORWARD]
    wrong, extra = replace(forward[0], params=(2,)), TableEntry(FORWARD, (9, 9, 9), "InaIngress.send", (1,))
    kept = tuple(each for each in planned().tables if each not in forward[:2])
    held = read_dump(written(replace(planned(), tables=(*kept, wrong, extra))), PROGRAM, "l1")
    assert set(differences(program(), planned(), held)) == {
        Difference(forward[0], wrong),
        Difference(forward[1], None),
        Difference(None, extra),
    }


def test_a_group_with_another_port_is_found_and_the_order_of_entries_is_none() -> None:
    other = MulticastGroup(1, (1,))
    held = SwitchEntries("l1", planned().tables[::-1], (other,))
    assert differences(program(), planned(), held) == [Difference(planned().groups[0], other)]


def test_an_entry_of_simple_switch_cli_with_another_port_is_found() -> None:
    changed = PRINTED.replace("Action entry: InaIngress.send - 04", "Action entry: InaIngress.send - 01", 1)
    (found,) = differences(program(), planned(), read_dump(changed, PROGRAM, "l1"))
    assert isinstance(found.planned, TableEntry)
    assert (found.kind, found.held) == ("wrong", replace(found.planned, params=(1,)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty; expected P4Runtime's text"),
        ("[1]", "BF-Runtime's JSON: TypeError"),
        ("{}", "KeyError 'tables'"),
        ("{", "not JSON"),
        ("hello", "neither a WriteRequest nor a ReadResponse"),
        ("TABLE ENTRIES\nDumping entry 0x0\n* a.b : EXACT 01\n", "without its action"),
        ("TABLE ENTRIES\nDumping entry 0x0\n* a.b : EXACT 01\nAction entry: x - 01\n", "fits no table"),
        ('{"tables": {"InaIngress.forwrd": []}, "groups": {"70000": []}}', "groups are 1 to 65535"),
    ],
)
def test_a_file_that_is_no_dump_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "l1.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=f"{path}: .*{message}"):
        load_dump(path, PROGRAM, "l1")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        load_dump(path, PROGRAM, "l1")
