"""Entries as P4Runtime's text: read back, loaded into servers, removed in reverse."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from google.protobuf import text_format
from p4runtime_client import DEVICE, SET, Client, primary, serving
from planned_switch import parts, planned

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.handover.p4runtime_text import load_schema, p4info_of, read_switch, read_text, write_text
from inakit.switch.running_switch import PROGRAM
from inakit.switch.server.p4runtime.messages import Message, config, v1
from inakit.topo.errors import InputError, MachineError, UnsupportedError

GROUPS = (MulticastGroup(9, (1, 2), ((0, 1), (2, 2))), MulticastGroup(10, ()))


def request(entries: SwitchEntries, *, removal: bool = False) -> Message:
    return text_format.Parse(write_text(load_schema(PROGRAM), entries, removal=removal), v1.WriteRequest())


def pipeline() -> Message:
    """The pipeline config that the hand-over's files make."""
    info = text_format.Parse(p4info_of(PROGRAM).read_text(), config.P4Info())
    return v1.ForwardingPipelineConfig(p4info=info, p4_device_config=PROGRAM.read_bytes())


def load_and_remove(client: Client, target: str) -> None:
    """Load the plan's text, read it back as equal entries, and remove all of it."""
    schema, entries = load_schema(PROGRAM), replace(planned(), groups=(*planned().groups, *GROUPS))
    client.write(*request(entries).updates)
    assert parts(read_switch(target, DEVICE, schema, "l1")) == parts(entries)
    client.write(*request(entries, removal=True).updates)
    assert read_switch(target, DEVICE, schema, "l1") == SwitchEntries("l1")


def test_text_is_read_back_as_equal_entries() -> None:
    entries = replace(planned(), groups=GROUPS)
    assert read_text(load_schema(PROGRAM), write_text(load_schema(PROGRAM), entries), "l1") == entries


def test_groups_come_before_the_entries_that_name_them_and_leave_after() -> None:
    added = [update.entity for update in request(planned()).updates]
    removed = [update.entity for update in request(planned(), removal=True).updates]
    assert [each.WhichOneof("entity") for each in added][:2] == ["packet_replication_engine_entry", "table_entry"]
    assert [each.table_entry.match for each in removed[:-1]] == [each.table_entry.match for each in added[:0:-1]]
    assert removed[-1].packet_replication_engine_entry.multicast_group_entry.multicast_group_id == 1


def test_a_server_takes_the_text_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INAKIT_SWITCH", "interpreted")
    with serving() as (_, target), primary(target, program=None) as (client, _):
        client.set(SET.VERIFY_AND_COMMIT, pipeline())
        load_and_remove(client, target)


@contextmanager
def reference(log: Path) -> Iterator[str]:
    """p4lang's server without a program, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = ["--no-p4", "--device-id", str(DEVICE), "-L", "off", "--", "--grpc-server-addr", address]
    with log.open("wb") as output:
        process = subprocess.Popen(["simple_switch_grpc", *options], stdout=output, stderr=output)
    try:
        yield address
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="needs simple_switch_grpc")
def test_simple_switch_grpc_takes_the_text_and_gives_it_back(tmp_path: Path) -> None:
    import grpc  # noqa: PLC0415

    with reference(tmp_path / "log") as target:
        with grpc.insecure_channel(target) as channel:
            grpc.channel_ready_future(channel).result(20)
        with primary(target, program=None) as (client, _):
            client.set(SET.VERIFY_AND_COMMIT, pipeline())
            load_and_remove(client, target)


def test_faults_registers_are_not_handed_over() -> None:
    presets = replace(planned(), registers=(RegisterPreset("InaIngress.arrival.draws", 1, 7),))
    with pytest.raises(UnsupportedError, match="registers cannot be handed over"):
        write_text(load_schema(PROGRAM), presets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("updates { type: INSRT }", "neither a WriteRequest nor a ReadResponse"),
        ("entities { table_entry { table_id: 7 } }", "no table has the id 0x00000007"),
        ("entities { table_entry { table_id: 34104919 } }", r"'standard.ingress_port'\) matches exactly"),
    ],
)
def test_a_broken_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_text(load_schema(PROGRAM), text, "l1")


def test_an_unknown_table_and_a_missing_p4info_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'no\.table' is not in the P4Info"):
        write_text(load_schema(PROGRAM), SwitchEntries("l1", (TableEntry("no.table", (1,), "a"),)))
    with pytest.raises(InputError, match=r"own\.p4info\.txt: No such file"):
        load_schema(tmp_path / "own.json")


def test_an_address_where_nobody_listens_is_named() -> None:
    with pytest.raises(MachineError, match=r"127\.0\.0\.1:1, device 0: UNAVAILABLE"):
        read_switch("127.0.0.1:1", 0, load_schema(PROGRAM), "l1")
