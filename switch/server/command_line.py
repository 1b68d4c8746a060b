"""The command lines of simple_switch and simple_switch_grpc, read into options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from inakit.switch.control.replication import ReplicationRoom
from inakit.switch.program.program import DROP_PORT, PORTS
from inakit.switch.server.switch_options import GRPC_ADDRESS, LEVELS, THRIFT_PORT, LogOptions, Options, Tls
from inakit.topo.errors import InputError

BEHAVES_AS = "1.15.0"
"""The version of simple_switch whose behaviour this is; scripts ask for it."""
JSON_VERSION = "2.25"
"""The version of p4c's JSON that is understood."""
ROOM = ReplicationRoom()

GENERAL: dict[str, dict[str, Any]] = {
    "-i --interface": {"action": "append", "default": [], "metavar": "PORT@INTERFACE", "help": "a port of the switch"},
    "--pcap": {"nargs": "?", "const": Path(), "type": Path, "metavar": "FOLDER", "help": "write packets as pcaps"},
    "--thrift-port": {"type": int, "default": THRIFT_PORT, "help": "the TCP port of the Thrift server"},
    "--device-id": {"type": int, "default": 0, "help": "a number in notifications (default 0)"},
    "--notifications-addr": {"metavar": "ADDRESS", "help": "where digests and expired entries are published"},
    "--no-p4": {"action": "store_true", "help": "start without a program, and wait for one"},
    "--log-console": {"action": "store_true", "help": "log to standard output"},
    "--log-file": {"type": Path, "metavar": "FILE", "help": "log to a file"},
    "-L --log-level": {"choices": tuple(LEVELS), "help": "the least level that is logged; trace and debug: every step"},
    "--log-flush": {"action": "store_true", "help": "write each line of the log at once"},
    "--log-file-max-size": {"type": int, "default": LogOptions.most_bytes, "help": "bytes of a log file"},
    "--log-file-max-files": {"type": int, "default": LogOptions.most_files, "help": "how many log files are kept"},
    "--dump-packet-data": {"type": int, "default": 0, "metavar": "BYTES", "help": "log so many bytes of each packet"},
    "--drop-port": {"type": int, "default": DROP_PORT, "help": "the port that drops packets"},
    "--priority-queues": {"type": int, "default": 1, "help": "how many queues each port has"},
    "--max-mc-groups": {"type": int, "default": ROOM.groups, "help": "multicast groups"},
    "--max-l1-entries": {"type": int, "default": ROOM.nodes, "help": "multicast nodes"},
    "--max-l2-entries": {
        "type": int,
        "default": ROOM.second_level_nodes,
        "help": "multicast nodes of the second level",
    },
}
OF_GRPC: dict[str, dict[str, Any]] = {
    "--grpc-server-addr": {"default": GRPC_ADDRESS, "metavar": "ADDRESS", "help": "the address of P4Runtime"},
    "--grpc-server-ssl": {"action": "store_true", "help": "encrypt P4Runtime"},
    "--grpc-server-cacert": {"type": Path, "metavar": "FILE", "help": "whose certificates clients may have"},
    "--grpc-server-cert": {"type": Path, "metavar": "FILE", "help": "the server's certificate"},
    "--grpc-server-key": {"type": Path, "metavar": "FILE", "help": "the server's key"},
    "--grpc-server-with-client-auth": {"action": "store_true", "help": "clients must have a certificate"},
    "--cpu-port": {"type": int, "help": "the port of packets from and to controllers"},
    "--disable-swap": {"action": "store_true", "help": "allow no other program"},
}
WITHOUT_GRPC: dict[str, dict[str, Any]] = {
    "--enable-swap": {"action": "store_true", "help": "allow other programs"},
}

IGNORED = {
    "nanolog": "there is no event logger",
    "debugger": "there is no debugger",
    "debugger_addr": "there is no debugger",
    "max_port_count": "there may be any number of ports",
    "dp_grpc_server_addr": "packets come by interfaces",
    "load_modules": "externs are those of v1model.p4",
}
"""Options that are accepted and change nothing, and why."""

REFUSED = {
    "use_files": "play pcaps into a switch with `inakit switch replay`",
    "packet_in": "give the switch interfaces with -i",
    "restore_state": "write the entries again, from a file of commands or by a controller",
}
"""Options that a switch cannot run with, and the way out."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `InputError`."""

    def error(self, message: str) -> NoReturn:
        """Raise `InputError`."""
        raise InputError(f"{message} (-h lists the options)")


def read_options(arguments: Sequence[str], grpc: bool = False) -> Options:
    """The options in the command line of simple_switch, or of simple_switch_`grpc`; `InputError` for wrong ones.

    BMv2 wants the target's own options behind `--`; here they may stand anywhere.
    """
    found = parser_of(grpc).parse_args([each for each in arguments if each != "--"])
    for name, way_out in REFUSED.items():
        if getattr(found, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} is not possible here: {way_out}")
    program, pcap = program_and_pcap(found)
    room = ReplicationRoom(found.max_mc_groups, found.max_l1_entries, found.max_l2_entries)
    if min(room.groups, room.nodes, room.second_level_nodes) < 1:
        raise InputError("--max-mc-groups, --max-l1-entries and --max-l2-entries must be at least 1")
    ignored = ((name, why) for name, why in IGNORED.items() if getattr(found, name, None))
    return Options(
        program=program,
        interfaces=interfaces_of(found.interface),
        device_id=found.device_id,
        thrift_port=found.thrift_port,
        notifications=found.notifications_addr,
        log=log_options(found),
        pcap=pcap,
        swap=not found.disable_swap if grpc else found.enable_swap,
        drop_port=port_of("drop-port", found.drop_port),
        priority_queues=found.priority_queues,
        replication=room,
        grpc_address=found.grpc_server_addr if grpc else None,
        tls=tls_of(found) if grpc else None,
        cpu_port=port_of("cpu-port", found.cpu_port) if grpc and found.cpu_port is not None else None,
        ignored=tuple(f"--{name.replace('_', '-')}: {why}" for name, why in ignored),
    )


def parser_of(grpc: bool) -> Parser:
    """The parser of simple_switch's options, or of those of simple_switch_`grpc`."""
    parser = Parser(
        "simple_switch_grpc" if grpc else "simple_switch",
        description="A P4 switch on network interfaces that takes BMv2's options.",
    )
    parser.add_argument("config", nargs="?", type=Path, help="the JSON that p4c made of the program")
    parser.add_argument("-v", "--version", action="version", version=f"{BEHAVES_AS}-inakit-{version('inakit')}")
    parser.add_argument("--json-version", action="version", version=JSON_VERSION)
    for flags, described in (GENERAL | (OF_GRPC if grpc else WITHOUT_GRPC)).items():
        default = " (default %(default)s)" if described.get("default") else ""
        parser.add_argument(*flags.split(), **described | {"help": described["help"] + default})
    for each in (*IGNORED, *REFUSED):
        flag = {"action": "store_true", "default": None} if each == "debugger" else {}
        parser.add_argument(f"--{each.replace('_', '-')}", help=argparse.SUPPRESS, **flag)  # type: ignore[arg-type]
    return parser


def program_and_pcap(found: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """The program and the folder for pcaps; `--pcap` without a folder may have taken the program for one."""
    program, pcap = found.config, found.pcap
    if program is None and pcap is not None and pcap.suffix == ".json":
        program, pcap = pcap, Path()
    if program is None and not found.no_p4:
        raise InputError("please specify an input JSON configuration file (or --no-p4)")
    if pcap is not None and not pcap.is_dir():
        raise InputError(f"--pcap {pcap}: there is no such folder")
    return None if found.no_p4 else program, pcap


def interfaces_of(texts: Sequence[str]) -> dict[int, str]:
    """The interfaces by port, of texts such as 1@veth1. Of a port given twice the last counts, as in BMv2."""
    found: dict[int, str] = {}
    for text in texts:
        port, at, interface = text.partition("@")
        if not at or not port.isdecimal() or not interface:
            raise InputError(f"-i {text}: expected PORT@INTERFACE, such as 1@veth1")
        found[port_of("interface", int(port))] = interface
    return found


def port_of(option: str, port: int) -> int:
    """A port number, checked."""
    if not 0 <= port < PORTS:
        raise InputError(f"--{option} {port}: ports are 0 to {PORTS - 1}")
    return port


def log_options(found: argparse.Namespace) -> LogOptions:
    """Where the log goes."""
    if found.log_console and found.log_file:
        raise InputError("--log-console and --log-file are exclusive")
    if found.log_file_max_size <= 0:
        raise InputError(f"--log-file-max-size {found.log_file_max_size}: must be greater than 0")
    return LogOptions(
        console=found.log_console,
        file=found.log_file,
        level=found.log_level,
        flush=found.log_flush,
        most_bytes=found.log_file_max_size,
        most_files=found.log_file_max_files,
        packet_bytes=found.dump_packet_data,
    )


def tls_of(found: argparse.Namespace) -> Tls | None:
    """The certificates of P4Runtime; None where it is not encrypted."""
    if not found.grpc_server_ssl:
        return None
    if found.grpc_server_cert is None or found.grpc_server_key is None:
        raise InputError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    cacert, client_auth = found.grpc_server_cacert, found.grpc_server_with_client_auth
    return Tls(found.grpc_server_cert, found.grpc_server_key, cacert, client_auth)
