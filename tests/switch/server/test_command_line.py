"""The command lines of simple_switch and simple_switch_grpc, as scripts write them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inakit.switch.control.replication import ReplicationRoom
from inakit.switch.server.command_line import read_options
from inakit.switch.server.switch_options import GRPC_ADDRESS, THRIFT_PORT, LogOptions, Options, Tls
from inakit.topo.errors import InputError

PLAIN = Options(program=Path("prog.json"), thrift_port=THRIFT_PORT)


def test_a_network_of_p4_utils_starts_a_switch_like_this(tmp_path: Path) -> None:
    words = f"--device-id 3 -i 1@s1-eth1 -i 2@s1-eth2 --pcap={tmp_path} --thrift-port 9092 --log-file s1.log prog.json"
    assert read_options(words.split()) == replace(
        PLAIN,
        interfaces={1: "s1-eth1", 2: "s1-eth2"},
        device_id=3,
        thrift_port=9092,
        pcap=tmp_path,
        log=LogOptions(file=Path("s1.log")),
    )


def test_a_tutorial_starts_a_switch_like_this() -> None:
    words = "-i 1@s1-eth1 --nanolog ipc:///tmp/bm.ipc --device-id 0 prog.json --log-console --thrift-port 9090 "
    words += "-- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255"
    options = read_options(words.split(), grpc=True)
    assert (options.grpc_address, options.cpu_port, options.swap) == ("0.0.0.0:50051", 255, True)
    assert (options.log, options.log.wanted, options.log.every_step) == (LogOptions(console=True), True, False)
    assert options.ignored == ("--nanolog: there is no event logger",)


def test_of_a_port_given_twice_the_last_interface_counts() -> None:
    assert read_options(["prog.json", "-i", "0@a", "-i", "0@b", "-i", "1@c"]).interfaces == {0: "b", 1: "c"}


def test_what_no_option_says_is_as_in_bmv2() -> None:
    assert read_options(["prog.json"]) == PLAIN
    assert read_options(["prog.json"], grpc=True) == replace(PLAIN, grpc_address=GRPC_ADDRESS, swap=True)


def test_the_targets_own_options() -> None:
    words = "prog.json -- --enable-swap --drop-port 510 --priority-queues 8 --max-mc-groups 5 --max-l1-entries 6"
    options = read_options(words.split())
    assert (options.swap, options.drop_port, options.priority_queues) == (True, 510, 8)
    assert options.replication == ReplicationRoom(5, 6, 8192)


def test_pcaps_go_into_the_current_folder_unless_another_is_named() -> None:
    assert read_options(["prog.json", "--pcap"]).pcap == Path()
    assert read_options(["--pcap", "prog.json"]) == replace(PLAIN, pcap=Path())


def test_a_log_of_every_step_is_asked_for_by_its_level() -> None:
    assert read_options(["prog.json", "--log-console", "-L", "debug"]).log.every_step
    assert not read_options(["prog.json", "--log-console", "-L", "info"]).log.every_step


def test_certificates() -> None:
    words = "prog.json -- --grpc-server-ssl --grpc-server-cert a --grpc-server-key b --grpc-server-with-client-auth"
    assert read_options(words.split(), grpc=True).tls == Tls(Path("a"), Path("b"), None, client_auth=True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "please specify an input JSON configuration file"),
        ("prog.json -i veth1", "expected PORT@INTERFACE"),
        ("prog.json -i 600@a", "ports are 0 to 511"),
        ("prog.json -L loud", "invalid choice"),
        ("prog.json --log-console --log-file x", "exclusive"),
        ("prog.json --pcap=/nowhere/at/all", "there is no such folder"),
        ("prog.json --use-files 1", "inakit switch replay"),
        ("prog.json --what-is-this", "unrecognized arguments"),
        ("prog.json --max-mc-groups 0", "must be at least 1"),
    ],
)
def test_wrong_command_lines_are_refused(words: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_options(words.split())


def test_without_a_program() -> None:
    assert read_options(["--no-p4", "-i", "1@a"], grpc=True).program is None
