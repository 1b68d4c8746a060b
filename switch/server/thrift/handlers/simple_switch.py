"""The service `simple_switch`: mirroring, egress queues, times."""

from __future__ import annotations

from contextlib import suppress
from time import time_ns
from typing import Any

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import MAX_SESSION
from inakit.switch.control.refusals import Refused
from inakit.switch.entries import MirrorSession
from inakit.switch.server.thrift.description import description
from inakit.switch.server.thrift.handlers.handler import Handler

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
        """Remove a session."""
        self.control.remove_session(session)

    def mirroring_session_get(self, session: int) -> Any:
        """One session."""
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
        """Bound the queue of one priority of one port."""
        self.switch.queues.set_depth(packets, port, priority)
        return DONE

    def set_egress_queue_depth(self, port: int, packets: int) -> int:
        """Bound the queues of one port."""
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
