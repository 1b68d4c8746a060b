"""Requests for the switch as a whole: ports, program, hash functions, mirroring, egress queues, times."""

from __future__ import annotations

from contextlib import suppress
from hashlib import md5
from time import time_ns
from typing import Any

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import MAX_SESSION
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.entries import MirrorSession
from inakit.switch.program.expressions import CrcParameters
from inakit.switch.server.thrift.handlers import Handler
from inakit.switch.server.thrift.values import description, resource_ids, unsigned
from inakit.topo.errors import UnsupportedError


class DeviceRequests(Handler):
    """Ports, programs, and who the switch is."""

    @property
    def json(self) -> str:
        """The program that was loaded last, as p4c made it; empty before the first."""
        loaded = self.switch.pending or self.switch.running
        return self.switch.newest.json if loaded else ""

    def bm_dev_mgr_add_port(self, iface_name: str, port: int, pcap: str) -> None:  # noqa: ARG002, it is BMv2's signature
        """Let an interface of the machine be a port; no pcap is written of it."""
        self.switch.ports.add(port, iface_name)

    def bm_dev_mgr_remove_port(self, port: int) -> None:
        """Let a port have no interface any more."""
        self.switch.ports.remove(port)

    def bm_dev_mgr_show_ports(self) -> list[Any]:
        ports = sorted(self.switch.ports.all().items())
        return [description().PortInfo(port, interface, self.switch.ports.is_up(port), {}) for port, interface in ports]

    def bm_mgmt_get_info(self) -> Any:
        """Who the switch is, and where its notifications can be subscribed to."""
        known = self.identity
        return description().SwitchInfo(known.device_id, known.thrift_port, known.notifications)

    def bm_load_new_config(self, config: str) -> None:
        """Prepare another program."""
        self.switch.load(config)

    def bm_swap_configs(self) -> None:
        """Run the program that was prepared."""
        self.switch.swap(fresh=False)

    def bm_reset_state(self) -> None:
        """Be as just started."""
        self.control.reset_state()

    def bm_get_config(self) -> bytes:
        """The program, as p4c made it."""
        return self.json.encode()

    def bm_get_config_md5(self) -> bytes:
        """By what clients tell whether they have the same program."""
        return md5(self.json.encode(), usedforsecurity=False).digest()

    def bm_set_crc16_custom_parameters(self, calculation: str, crc: Any) -> None:
        """Let a hash function divide by another polynomial."""
        self.control.set_crc(calculation, 16, crc_of(crc, 16))

    def bm_set_crc32_custom_parameters(self, calculation: str, crc: Any) -> None:
        """Let a hash function divide by another polynomial."""
        self.control.set_crc(calculation, 32, crc_of(crc, 32))

    def bm_set_toeplitz_hash_key(self, calculation: str, key: bytes) -> None:  # noqa: ARG002, there is none to set
        """Refuse: no program that runs here has a Toeplitz hash."""
        known = calculation in self.control.program.calculations
        kind = RefusalKind.WRONG_TYPE_CALCULATION if known else RefusalKind.INVALID_CALCULATION_NAME
        raise Refused(kind, f"there is no Toeplitz hash '{calculation}'")

    def bm_serialize_state(self) -> bytes:
        """Refuse: what BMv2 answers its own clients cannot read, for it is no text."""
        raise UnsupportedError("the state is not written: read tables, profiles and meters one by one")

    def bm_get_id_from_name(self, kind: int, name: str) -> int:
        """The number that the compiler gave to a table, an action profile, an array or a learning list."""
        known = resource_ids(self.json)
        if kind not in known:
            raise Refused(RefusalKind.INVALID_RESOURCE_TYPE, f"no kind {kind}: kinds are 0 to {max(known)}")
        if name not in known[kind]:
            raise Refused(RefusalKind.INVALID_RESOURCE_NAME, f"nothing of kind {kind} is called '{name}'")
        return known[kind][name]


def crc_of(crc: Any, bits: int) -> CrcParameters:
    """The parameters of a cyclic redundancy check of a message."""
    numbers = (crc.polynomial, crc.initial_remainder, crc.final_xor_value)
    polynomial, first, last = (unsigned(number or 0, bits) for number in numbers)
    return CrcParameters(polynomial, first, last, bool(crc.data_reflected), bool(crc.remainder_reflected))


DONE = 0
"""What functions return that cannot fail."""


class SimpleSwitch(Handler):
    """What simple_switch offers beyond other targets. Mirror sessions outlast programs."""

    @property
    def control(self) -> ControlPlane:
        """What carries requests out: that of the program that runs."""
        return self.switch.control

    # mirroring

    def mirroring_session_add(self, session: int, config: Any) -> None:
        """Let clones of a session leave by a port or a group. BMv2 ignores a session that cannot be."""
        if 0 <= session <= MAX_SESSION:
            self.control.put_session(MirrorSession(session, config.port, config.mgid))

    def mirroring_session_delete(self, session: int) -> None:
        self.control.remove_session(session)

    def mirroring_session_get(self, session: int) -> Any:
        found = self.control.session(session)
        return description().Session(found.port, found.group)

    def mirroring_mapping_add(self, session: int, port: int) -> int:
        """Let clones of a session leave by a port: 1 if they do, else 0."""
        with suppress(Refused):
            self.control.put_session(MirrorSession(session, port))
            return 1
        return 0

    def mirroring_mapping_delete(self, session: int) -> int:
        """Remove a session: 1 if there was one, else 0."""
        with suppress(Refused):
            self.control.remove_session(session)
            return 1
        return 0

    def mirroring_mapping_get_egress_port(self, session: int) -> int:
        """The port of a session; -1 if it has none."""
        with suppress(Refused):
            port = self.control.session(session).port
            return -1 if port is None else port
        return -1

    # egress queues

    def set_egress_priority_queue_depth(self, port: int, priority: int, packets: int) -> int:
        self.switch.queues.set_depth(packets, port, priority)
        return DONE

    def set_egress_queue_depth(self, port: int, packets: int) -> int:
        self.switch.queues.set_depth(packets, port)
        return DONE

    def set_all_egress_queue_depths(self, packets: int) -> int:
        """Bound all queues."""
        self.switch.queues.set_depth(packets)
        return DONE

    def set_egress_priority_queue_rate(self, port: int, priority: int, rate_pps: int) -> int:
        """Set the rate of one priority of one port, in packets a second."""
        self.switch.queues.set_rate(rate_pps, port, priority)
        return DONE

    def set_egress_queue_rate(self, port: int, rate_pps: int) -> int:
        """Set the rate of the queues of one port, in packets a second."""
        self.switch.queues.set_rate(rate_pps, port)
        return DONE

    def set_all_egress_queue_rates(self, rate_pps: int) -> int:
        """Set the rate of all queues, in packets a second."""
        self.switch.queues.set_rate(rate_pps)
        return DONE

    # times

    def get_time_elapsed_us(self) -> int:
        """Microseconds since the switch started."""
        return self.switch.now_us()

    def get_time_since_epoch_us(self) -> int:
        """Microseconds since 1970."""
        return time_ns() // 1000
