"""The options of a served switch, those of simple_switch and simple_switch_grpc; and its log."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path

from inakit.switch.control.replication import ReplicationRoom
from inakit.switch.program.program import DROP_PORT
from inakit.topo.errors import writing

THRIFT_PORT = 9090
GRPC_ADDRESS = "0.0.0.0:9559"


@dataclass(frozen=True)
class Tls:
    """The PEM files of an encrypted gRPC server; with `client_auth`, clients must have a certificate too."""

    certificate: Path
    key: Path
    authorities: Path | None = None
    client_auth: bool = False


@dataclass(frozen=True)
class LogOptions:
    """The output of the log: standard output, `file`, or none. `file` is rotated at `most_bytes`.

    `level` is None if none was requested.
    """

    console: bool = False
    file: Path | None = None
    level: str | None = None
    flush: bool = False
    most_bytes: int = 5 << 20
    most_files: int = 3
    packet_bytes: int = 0

    @property
    def wanted(self) -> bool:
        """Whether anything is logged."""
        return self.console or self.file is not None

    @property
    def every_step(self) -> bool:
        """Whether each step of each packet is logged."""
        return self.wanted and self.level in ("trace", "debug")


@dataclass(frozen=True)
class Options:
    """The options of a switch. `interfaces` are the ports by number; without `program`, it waits for one.

    `swap` allows loading another program while the switch runs.
    """

    program: Path | None = None
    interfaces: dict[int, str] = field(default_factory=dict)
    device_id: int = 0
    thrift_port: int | None = None
    notifications: str | None = None
    log: LogOptions = LogOptions()
    pcap: Path | None = None
    swap: bool = False
    drop_port: int = DROP_PORT
    priority_queues: int = 1
    replication: ReplicationRoom = field(default_factory=ReplicationRoom)
    grpc_address: str | None = None
    tls: Tls | None = None
    cpu_port: int | None = None
    ignored: tuple[str, ...] = ()

    @property
    def notifications_address(self) -> str:
        """The address of notifications, by default the same as in BMv2."""
        return self.notifications or f"ipc:///tmp/bmv2-{self.device_id}-notifications.ipc"


TRACE = 5
LEVELS = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
LETTERS = {TRACE: "T", logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}


class Lines(logging.Formatter):
    """Formats a line like BMv2."""

    def format(self, record: logging.LogRecord) -> str:
        time = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}"
        return f"[{time}] [bmv2] [{LETTERS[record.levelno]}] [thread {record.thread}] {record.getMessage()}"


class Journal(logging.Logger):
    """The log of a switch; without one, events go to standard error.

    Each packet's steps have the level `debug`.
    """

    def __init__(self, options: LogOptions = LogOptions()) -> None:
        super().__init__("bmv2", LEVELS[options.level or "trace"])
        self.options = options
        handler: logging.Handler = logging.StreamHandler(sys.stdout if options.console else sys.stderr)
        if options.file is not None:
            handler = file_handler(options, options.file)
        handler.setFormatter(Lines())
        self.addHandler(handler)

    def close(self) -> None:
        """Flush and close the log."""
        for handler in list(self.handlers):
            handler.close()


def file_handler(options: LogOptions, file: Path) -> logging.Handler:
    """A handler that writes to `file`.txt and rotates it to `file`.1.txt and so on, as BMv2 does."""
    path = file.with_name(f"{file.name}.txt")
    with writing(path):
        handler = RotatingFileHandler(path, maxBytes=options.most_bytes, backupCount=options.most_files)
    handler.namer = lambda name: f"{path.with_suffix('')}.{name.rpartition('.')[2]}.txt"
    return handler
