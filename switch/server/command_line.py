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
"""The version of simple_switch whose behaviour this switch has; scripts ask for it."""
JSON_VERSION = "2.25"
"""The version of p4c's JSON that the reader supports."""
ROOM = ReplicationRoom()

GENERAL: dict[str, dict[str, Any]] = {
    "-i --interface": {"action": "append", "default": [], "metavar": "PORT@INTERFACE", "help": "a port of the switch"},
    "--pcap": {"nargs": "?", "const": Path(), "type": Path, "metavar": "FOLDER", "help": "write packets as pcaps"},
    "--thrift-port": {"type": int, "default": THRIFT_PORT, "help": "the TCP port of the Thrift server"},
    "--device-id": {"type": int, "default": 0, "help": "the number of the switch in notifications (default 0)"},
    "--notifications-addr": {
        "metavar": "ADDRESS",
        "help": "the address at which digests and expired entries are published",
    },
    "--no-p4": {"action": "store_true", "help": "start without a program, and wait for one"},
    "--log-console": {"action": "store_true", "help": "log to standard output"},
    "--log-file": {"type": Path, "metavar": "FILE", "help": "log to a file"},
    "-L --log-level": {"choices": tuple(LEVELS), "help": "the lowest logged level; trace and debug log every step"},
    "--log-flush": {"action": "store_true", "help": "write each line of the log at once"},
    "--log-file-max-size": {
        "type": int,
        "default": LogOptions.most_bytes,
        "help": "the greatest size of a log file in bytes",
    },
    "--log-file-max-files": {"type": int, "default": LogOptions.most_files, "help": "the number of log files to keep"},
    "--dump-packet-data": {"type": int, "default": 0, "metavar": "BYTES", "help": "log the first BYTES of each packet"},
    "--drop-port": {"type": int, "default": DROP_PORT, "help": "the port that drops packets"},
    "--priority-queues": {"type": int, "default": 1, "help": "the number of queues of each port"},
    "--max-mc-groups": {"type": int, "default": ROOM.groups, "help": "the greatest number of multicast groups"},
    "--max-l1-entries": {"type": int, "default": ROOM.nodes, "help": "the greatest number of multicast nodes"},
    "--max-l2-entries": {
        "type": int,
        "default": ROOM.second_level_nodes,
        "help": "the greatest number of second-level multicast nodes",
    },
}
OF_GRPC: dict[str, dict[str, Any]] = {
    "--grpc-server-addr": {"default": GRPC_ADDRESS, "metavar": "ADDRESS", "help": "the address of P4Runtime"},
    "--grpc-server-ssl": {"action": "store_true", "help": "encrypt P4Runtime"},
    "--grpc-server-cacert": {
        "type": Path,
        "metavar": "FILE",
        "help": "the authority that signs the certificates of clients",
    },
    "--grpc-server-cert": {"type": Path, "metavar": "FILE", "help": "the server's certificate"},
    "--grpc-server-key": {"type": Path, "metavar": "FILE", "help": "the server's key"},
    "--grpc-server-with-client-auth": {"action": "store_true", "help": "clients must have a certificate"},
    "--cpu-port": {"type": int, "help": "the port of packets from and to controllers"},
    "--disable-swap": {"action": "store_true", "help": "do not allow loading another program"},
}
WITHOUT_GRPC: dict[str, dict[str, Any]] = {
    "--enable-swap": {"action": "store_true", "help": "allow loading another program"}
}

IGNORED = {
    "nanolog": "there is no event logger",
    "debugger": "there is no debugger",
    "debugger_addr": "there is no debugger",
    "max_port_count": "the number of ports is not limited",
    "dp_grpc_server_addr": "packets come by interfaces",
    "load_modules": "externs are those of v1model.p4",
}
"""Options that are accepted without an effect, with the reason."""

REFUSED = {
    "use_files": "play pcaps into a switch with `inakit switch replay`",
    "packet_in": "give the switch interfaces with -i",
    "restore_state": "install the entries again from a command file or by a controller",
}
"""Options that the switch does not support, with an alternative."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `InputError`."""

    def error(self, message: str) -> NoReturn:
        """Raise `InputError`."""
        raise InputError(f"{message} (-h lists the options)")


def read_options(arguments: Sequence[str], grpc: bool = False) -> Options:
    """The options in the command line of simple_switch, or of simple_switch_`grpc`; `InputError` for wrong ones.

    BMv2 requires the target's own options after `--`; here they can be anywhere.
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
    parser.add_argument("config", nargs="?", type=Path, help="the compiled program, a JSON file of p4c")
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
    """The program and the folder for pcaps; a bare `--pcap` may have taken the program as its folder."""
    program, pcap = found.config, found.pcap
    if program is None and pcap is not None and pcap.suffix == ".json":
        program, pcap = pcap, Path()
    if program is None and not found.no_p4:
        raise InputError("please specify an input JSON configuration file (or --no-p4)")
    if pcap is not None and not pcap.is_dir():
        raise InputError(f"--pcap {pcap}: there is no such folder")
    return None if found.no_p4 else program, pcap


def interfaces_of(texts: Sequence[str]) -> dict[int, str]:
    """The interfaces by port, from texts such as 1@veth1. If a port is given twice, the last counts, as in BMv2."""
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
    """The options for the log."""
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
    """The certificates of P4Runtime; None without encryption."""
    if not found.grpc_server_ssl:
        return None
    if found.grpc_server_cert is None or found.grpc_server_key is None:
        raise InputError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    cacert, client_auth = found.grpc_server_cacert, found.grpc_server_with_client_auth
    return Tls(found.grpc_server_cert, found.grpc_server_key, cacert, client_auth)
