"""BMv2's own command line and p4-utils' API say the same of this switch as of `simple_switch`."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from own_processes import own_simple_switch, wait_until_answered
from pynng import Sub0
from thrift_clients import connected, exact
from thrift_stations import COMMANDED
from veth_wires import Wires

from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port
from inakit.switch.server.thrift.services import description

pytestmark = pytest.mark.bmv2

EVERY_COMMAND = Path(__file__).with_name("every_command.txt")
SWAP_COMMANDS = Path(__file__).with_name("swap_commands.txt")
CONFIG = "CONFIG"
"""In the files of commands, a file that this test provides."""

LEFT_OUT = {
    "EOF": "ends the command line",
    "serialize_state": "ends the command line: what BMv2 answers is no text",
    "set_toeplitz_hash_key": "ends the command line unless the program has a Toeplitz hash, which p4c does not know",
}
"""Commands that the file does not have, and why."""

OWN = [
    (r"^(thrift_port|notifications_socket) *: .*$", r"\1"),
    (r"\d+ms since hit", "since hit"),
    # What the command line takes for a value of 16 bits has 24: BMv2 gives them back, and never matches them.
    (r"^00([0-9a-f]{4})$", r"\1"),
    (r"^\d{5,}$", "a time"),
]
"""What differs between two switches, or two runs of one."""


@dataclass(frozen=True)
class Compared:
    """The Thrift ports and the notifications of `simple_switch` and of this switch."""

    ports: tuple[int, int]
    notifications: tuple[str, str]


@contextmanager
def both(folder: Path, *options: str) -> Iterator[Compared]:
    """`simple_switch` and this switch, which run the same program, with these options of simple_switch's own."""
    ports = free_port(), free_port()
    log = folder / "simple_switch.log"
    arguments = ["simple_switch", "--thrift-port", str(ports[0]), str(COMMANDED), *options]
    reference = SimpleSwitchProcess("reference", arguments, ports[0], log)
    own = f"ipc://{folder}/notifications"
    try:
        with own_simple_switch(ports[1], own, COMMANDED, folder / "own.log", *options):
            wait_until_answered(ports[0])
            yield Compared(ports, (f"ipc:///tmp/bmv2-{ports[0]}-notifications.ipc", own))
    finally:
        reference.stop()


def said(port: int, commands: str) -> str:
    """What the command line of BMv2 says to these commands, without what is a switch's own."""
    arguments = [sys.executable, "-m", "sswitch_CLI", "--thrift-port", str(port)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        arguments, input=commands, capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace("RuntimeCmd: ", "RuntimeCmd:\n")
    for pattern, instead in OWN:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def test_the_file_of_commands_has_every_command() -> None:
    import sswitch_CLI  # noqa: PLC0415, it is BMv2's

    known = {name.removeprefix("do_") for name in dir(sswitch_CLI.SimpleSwitchAPI) if name.startswith("do_")}
    used = {line.split()[0] for line in EVERY_COMMAND.read_text().splitlines()}
    assert known - used == set(LEFT_OUT)


def test_the_command_line_says_the_same_to_every_command(tmp_path: Path) -> None:
    commands = EVERY_COMMAND.read_text().replace(CONFIG, str(tmp_path / "config.json"))
    with both(tmp_path) as switches:
        reference, own = (said(port, commands).splitlines() for port in switches.ports)
    assert len(reference) > 500
    assert own == reference


def test_the_command_line_says_the_same_while_programs_are_swapped(tmp_path: Path) -> None:
    commands = SWAP_COMMANDS.read_text().replace(CONFIG, str(COMMANDED.parents[1] / "control.json"))
    with both(tmp_path, "--", "--enable-swap") as switches:
        reference, own = (said(port, commands).splitlines() for port in switches.ports)
    assert len(reference) > 100
    assert own == reference


Call = Callable[[Any], object]

CALLS: dict[str, Call] = {
    "tables": lambda api: sorted(api.get_tables()),
    "an entry": lambda api: api.table_add("prefixes", "mark", ["10.0.1.0/24"], ["00:00:00:00:00:05", "3"]),
    "an entry with a priority": lambda api: api.table_add("masked", "coloured", ["10.0.0.1&&&0xffffff00", "1"], [], 9),
    "an entry twice": lambda api: api.table_add("prefixes", "mark", ["10.0.1.0/24"], ["00:00:00:00:00:05", "3"]),
    "an exact entry": lambda api: api.table_add("exact_table", "NoAction", ["1", "5"], []),
    "a timeout": lambda api: api.table_set_timeout("exact_table", 0, 100_000),
    "another action": lambda api: api.table_modify("prefixes", "NoAction", 0, []),
    "another action by key": lambda api: api.table_modify_match("prefixes", "NoAction", ["10.0.1.0/24"], []),
    "how many entries": lambda api: api.table_num_entries("prefixes"),
    "a default": lambda api: api.table_set_default("prefixes", "mark", ["00:00:00:00:00:05", "3"]),
    "the program's default": lambda api: api.table_reset_default("prefixes"),
    "a handle": lambda api: api.get_handle_from_match("prefixes", ["10.0.1.0/24"]),
    "an entry less": lambda api: api.table_delete("prefixes", 0),
    "no entries": lambda api: api.table_clear("prefixes"),
    "a member": lambda api: api.act_prof_create_member("paths", "to_port", ["5"]),
    "a group": lambda api: api.act_prof_create_group("paths"),
    "a member of a group": lambda api: api.act_prof_add_member_to_group("paths", 0, 0),
    "members and groups": lambda api: api.act_prof_dump("paths"),
    "a multicast group": lambda api: api.mc_mgrp_create(3),
    "a node": lambda api: api.mc_node_create(7, [1, 2, 3]),
    "a node of a group": lambda api: api.mc_node_associate(3, 0),
    "groups": lambda api: api.mc_dump(),
    "other ports": lambda api: api.mc_node_update(0, [4, 5]),
    "no node": lambda api: api.mc_node_destroy(0),
    "no group": lambda api: api.mc_mgrp_destroy(3),
    "a mirror": lambda api: api.mirroring_add(5, 3),
    "a mirror to a group": lambda api: api.mirroring_add_mc(6, 3),
    "a mirror to both": lambda api: api.mirroring_add_port_and_mgrp(7, 3, 4),
    "mirrors": lambda api: [api.mirroring_get(session) for session in (5, 6, 7, 8)],
    "no mirror": lambda api: [api.mirroring_delete(session) for session in (5, 5)],
    "a counter": lambda api: [api.counter_write("TestIngress.seen", 1, 2, 3), api.counter_read("seen", 1)],
    "a direct counter": lambda api: api.counter_reset("hits"),
    "a register": lambda api: [api.register_write("words", [0, 4], 7), api.register_read("words")],
    "a cell of a register": lambda api: api.register_read("words", 3),
    "no register": lambda api: [api.register_reset("words"), api.register_read("words")],
    "rates": lambda api: [api.meter_set_rates("rate", 1, [(0.5, 1), (1, 2)]), api.meter_get_rates("rate", 1)],
    "rates of all": lambda api: [api.meter_array_set_rates("rate", [(0.5, 1), (1, 2)]), api.meter_get_rates("rate", 0)],
    "a value": lambda api: api.pvs_add("TestParser.tested", 0x800),
    "a polynomial": lambda api: api.set_crc16_parameters("calc", 0x1021, 0xFFFF, 0, False, False),
    "rates of queues": lambda api: [api.set_queue_rate(100), api.set_queue_rate(100, 1), api.set_queue_rate(100, 1, 0)],
    "depths of queues": lambda api: [api.set_queue_depth(9), api.set_queue_depth(9, 1), api.set_queue_depth(9, 1, 0)],
    "ports": lambda api: api.show_ports(),
    "another program": lambda api: api.swap_configs(),
    "as new": lambda api: [api.reset_state(), api.table_num_entries("masked")],
}


def answers(port: int, program: Path) -> dict[str, tuple[str, str]]:
    """What each call of p4-utils returns and prints."""
    from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI  # noqa: PLC0415, it is p4-utils'

    api, found = SimpleSwitchThriftAPI(port, "127.0.0.1", str(program)), {}
    for name, call in CALLS.items():
        with redirect_stdout(io.StringIO()) as printed:
            returned = repr(call(api))
        found[name] = (returned, printed.getvalue())
    return found


def told_of_expiry(port: int, address: str) -> bytes:
    """What a switch publishes when an entry expires."""
    with Sub0(dial=address, block_on_dial=True, recv_timeout=10_000) as subscriber, connected(port) as clients:
        subscriber.subscribe(b"AGE|")
        time.sleep(0.2)  # nobody tells when the publisher knows of the connection
        key = exact((1, 2), (5, 6))
        table = "TestIngress.exact_table"
        handle = clients.standard.bm_mt_add_entry(0, table, key, "NoAction", [], description().Options())
        clients.standard.bm_mt_set_entry_ttl(0, table, handle, 10)
        message: bytes = subscriber.recv()
        return message


def test_an_entry_that_expires_is_told_in_the_same_bytes(tmp_path: Path) -> None:
    with both(tmp_path) as switches:
        reference, own = map(told_of_expiry, switches.ports, switches.notifications)
    assert own == reference
    assert reference.startswith(b"AGE|")


@pytest.mark.root
def test_digests_are_told_in_the_same_bytes(tmp_path: Path) -> None:
    with Wires((1,)) as wires, both(tmp_path, "-i", f"1@{wires.names[1]}") as switches, ExitStack() as stack:
        subscribers = [stack.enter_context(Sub0(dial=each, recv_timeout=10_000)) for each in switches.notifications]
        for subscriber, port in zip(subscribers, switches.ports, strict=True):
            subscriber.subscribe(b"LEA|")
            clients = stack.enter_context(connected(port))
            clients.standard.bm_mt_set_default_action(0, "TestIngress.exact_table", "TestIngress.learn", [])
        time.sleep(0.2)  # nobody tells when publishers know of the connections
        for source in (10, 10, 11):
            wires.send(1, bytes(6) + source.to_bytes(6, "big") + b"\x08\x00" + bytes(46))
        reference, own = (subscriber.recv() for subscriber in subscribers)
    assert own == reference
    assert len(reference) == 32 + 2 * 8


def test_the_api_of_p4_utils_says_the_same(tmp_path: Path) -> None:
    program = json.loads(COMMANDED.read_text())
    for table in program["pipelines"][0]["tables"]:
        table["act_prof_name"] = table.get("action_profile")  # p4-utils reads a name that p4c no longer writes
    (tmp_path / "program.json").write_text(json.dumps(program))
    with both(tmp_path) as switches:
        reference, own = (answers(port, tmp_path / "program.json") for port in switches.ports)
    assert own == reference
