"""Pipeline configs: verified, saved, run, and run with the state that there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from p4runtime_client import SET, Client, Refusal, exact, pipeline, primary

from inakit.switch.server.p4runtime.messages import Message, v1

if TYPE_CHECKING:
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]

GET = v1.GetForwardingPipelineConfigRequest


@pytest.fixture
def fresh(target: str) -> Iterator[Client]:
    """A primary without a pipeline."""
    with primary(target, program=None) as (client, _):
        yield client


def refused(client: Client, action: int, given: Message | None = None) -> str:
    """The code with which a config is refused."""
    with pytest.raises(Refusal) as raised:
        client.set(action, given)
    return raised.value.code


def entry(client: Client, number: int = 1) -> Message:
    """An entry of the program `served`."""
    return client.entry("exact_match", exact(number), call=client.action("send", 3))


def test_without_a_pipeline_nothing_is_written_or_read(fresh: Client) -> None:
    with pytest.raises(Refusal) as raised:
        fresh.get()
    assert raised.value.code == "FAILED_PRECONDITION"
    assert raised.value.message.startswith("no forwarding pipeline config")  # finsy goes by these words
    with pytest.raises(Refusal) as raised:
        fresh.insert(table_entry=v1.TableEntry(table_id=1))
    assert raised.value.code == "FAILED_PRECONDITION"
    with pytest.raises(Refusal) as raised:
        fresh.read(table_entry=v1.TableEntry())
    assert raised.value.code == "FAILED_PRECONDITION"


def test_each_response_type_has_its_fields(fresh: Client) -> None:
    given = pipeline("served", cookie=77)
    fresh.set(SET.VERIFY_AND_COMMIT, given)
    assert fresh.get(GET.ALL).config == given
    assert fresh.get(GET.COOKIE_ONLY).config == v1.ForwardingPipelineConfig(cookie=given.cookie)
    assert fresh.get(GET.P4INFO_AND_COOKIE).config == v1.ForwardingPipelineConfig(
        p4info=given.p4info, cookie=given.cookie
    )
    assert fresh.get(GET.DEVICE_CONFIG_AND_COOKIE).config == v1.ForwardingPipelineConfig(
        p4_device_config=given.p4_device_config, cookie=given.cookie
    )


def test_verify_changes_nothing(fresh: Client) -> None:
    fresh.set(SET.VERIFY, pipeline("served"))
    with pytest.raises(Refusal) as raised:
        fresh.get()
    assert raised.value.code == "FAILED_PRECONDITION"


def test_configs_that_cannot_be_are_refused(fresh: Client) -> None:
    assert refused(fresh, SET.VERIFY) == "INVALID_ARGUMENT"
    assert refused(fresh, 9, pipeline("served")) == "INVALID_ARGUMENT"
    assert refused(fresh, SET.COMMIT) == "NOT_FOUND"
    for octets in (b"", b"{", b"\x1a\x02{}", b"\xff\xff", b"{}", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff"):
        wrong = pipeline("served")
        wrong.p4_device_config = octets
        assert refused(fresh, SET.VERIFY_AND_COMMIT, wrong) == "INVALID_ARGUMENT"
    other = pipeline("served")
    other.p4_device_config = pipeline("controller").p4_device_config
    assert refused(fresh, SET.VERIFY_AND_COMMIT, other) == "INVALID_ARGUMENT"  # its tables are not in the program
    narrow = pipeline("served")
    narrow.p4info.tables[0].match_fields[0].bitwidth = 31
    assert refused(fresh, SET.VERIFY_AND_COMMIT, narrow) == "INVALID_ARGUMENT"


def test_an_older_controller_s_wrapping_is_taken_off(fresh: Client) -> None:
    wrapped = pipeline("served")
    size, text = len(wrapped.p4_device_config), wrapped.p4_device_config
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    wrapped.p4_device_config = b"\x08\x01\x1a" + length + text  # reassign: true, device_data: the JSON
    fresh.set(SET.VERIFY_AND_COMMIT, wrapped)
    fresh.insert(table_entry=entry(fresh))


def test_committing_another_config_clears_the_state(fresh: Client) -> None:
    fresh.set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    fresh.insert(table_entry=entry(fresh))
    fresh.set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    assert fresh.read(table_entry=fresh.entry("exact_match")) == []


def test_a_saved_config_takes_writes_and_runs_when_it_is_committed(
    server: tuple[ServedSwitch, str], fresh: Client
) -> None:
    fresh.set(SET.VERIFY_AND_COMMIT, pipeline("controller"))
    fresh.set(SET.VERIFY_AND_SAVE, pipeline("served"))
    fresh.insert(table_entry=entry(fresh))
    assert fresh.read(table_entry=fresh.entry("exact_match")) == [entry(fresh)]
    assert "ServedIngress.exact_match" not in server[0].control.program.tables  # still the one before
    assert refused(fresh, SET.COMMIT, pipeline("served")) == "INVALID_ARGUMENT"
    fresh.set(SET.COMMIT)
    assert len(server[0].control.tables.entries("ServedIngress.exact_match")) == 1
    assert fresh.read(table_entry=fresh.entry("exact_match")) == [entry(fresh)]


def test_reconciling_keeps_the_state(server: tuple[ServedSwitch, str], fresh: Client) -> None:
    fresh.set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    counted = fresh.entry("counting", exact(1), call=fresh.action("counted_send", 1), metadata=b"m")
    counted.counter_data.packet_count = 5
    default = fresh.entry("exact_match", call=fresh.action("send", 9), is_default_action=True)
    cell = v1.RegisterEntry(register_id=fresh.id("registers", "kept"), index=v1.Index(index=3))
    cell.data.bitstring = b"\x07"
    fresh.insert(table_entry=counted)
    fresh.modify(table_entry=default)
    fresh.modify(register_entry=cell)
    before = server[0].control
    fresh.set(SET.RECONCILE_AND_COMMIT, larger())
    assert server[0].control is not before
    request = fresh.entry("counting")
    request.counter_data.SetInParent()
    assert fresh.read(table_entry=request) == [counted]
    assert fresh.read(table_entry=fresh.entry("exact_match", is_default_action=True)) == [default]
    assert fresh.read(register_entry=v1.RegisterEntry(register_id=cell.register_id, index=cell.index)) == [cell]


def larger() -> Message:
    """The pipeline `served` with another size of one of its tables."""
    made = pipeline("served")
    document = json.loads(made.p4_device_config)
    for table in document["pipelines"][0]["tables"]:
        if table["name"] == "ServedIngress.masked":
            table["max_size"] = 16
    made.p4_device_config = json.dumps(document).encode()
    return made


def test_a_state_that_cannot_be_kept_stays_with_its_config(fresh: Client) -> None:
    fresh.set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    fresh.insert(table_entry=entry(fresh))
    own = fresh.info
    assert refused(fresh, SET.RECONCILE_AND_COMMIT, pipeline("controller")) == "INVALID_ARGUMENT"
    fresh.info = own
    assert fresh.read(table_entry=fresh.entry("exact_match")) == [entry(fresh)]


def test_a_program_that_somebody_else_has_loaded_leaves_no_pipeline(
    server: tuple[ServedSwitch, str], client: Client
) -> None:
    served = server[0]
    served.load(served.json)
    served.swap()
    with pytest.raises(Refusal) as raised:
        client.get()
    assert raised.value.code == "FAILED_PRECONDITION"
