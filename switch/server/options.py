"""What a served switch is started with: the options of simple_switch and of simple_switch_grpc."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from inakit.switch.control.replication_requests import ReplicationRoom
from inakit.switch.program.expressions import DROP_PORT

THRIFT_PORT = 9090
GRPC_ADDRESS = "0.0.0.0:9559"


@dataclass(frozen=True)
class Tls:
    """The PEM files of an encrypted gRPC server; with `client_auth` clients must have a certificate as well."""

    certificate: Path
    key: Path
    authorities: Path | None = None
    client_auth: bool = False


@dataclass(frozen=True)
class LogOptions:
    """Where the log goes: to standard output, to `file`, or nowhere. `file` is rotated at `most_bytes`.

    `level` is None where none was asked for.
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
        """Whether the log goes anywhere."""
        return self.console or self.file is not None

    @property
    def every_step(self) -> bool:
        """Whether a level was asked for at which each step of each packet is told."""
        return self.wanted and self.level in ("trace", "debug")


@dataclass(frozen=True)
class Options:
    """All that a switch is started with. `interfaces` are the ports by number; without `program` it waits for one.

    `swap` allows another program to be loaded while the switch runs.
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
        """Where notifications are published, by default as BMv2 does."""
        return self.notifications or f"ipc:///tmp/bmv2-{self.device_id}-notifications.ipc"
