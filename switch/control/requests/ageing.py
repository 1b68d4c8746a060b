"""Idle timeouts of table entries."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.control.requests.request import locked
from inakit.switch.control.requests.tables import TableControl

Expired = tuple[str, int]
"""A table, and the handle of an entry that no packet has matched for its timeout."""


class AgeingControl(TableControl):
    """Requests for idle timeouts. An entry whose timeout runs out stays: who asked for it is told."""

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.expiry_subscribers: list[Callable[[list[Expired]], None]] = []

    @locked
    def set_timeout(self, table: str, handle: int, timeout_ms: int) -> None:
        """Let an entry expire when no packet has matched it for `timeout_ms`; 0: never. The time begins now."""
        found = self.table(table)
        if not found.table.idle_timeout:
            raise Refused(RefusalKind.AGEING_DISABLED, f"table '{table}' has no `support_timeout` in the program")
        held = found.at_any_version(handle)
        held.timeout_ms, held.timed_us = timeout_ms, self.data_plane.now_us()

    def subscribe_expired(self, subscriber: Callable[[list[Expired]], None]) -> None:
        """Call `subscriber` with the entries that have expired, in the thread that calls `report_expired`."""
        self.expiry_subscribers.append(subscriber)

    def unsubscribe_expired(self, subscriber: Callable[[list[Expired]], None]) -> None:
        """Call `subscriber` no longer."""
        self.expiry_subscribers.remove(subscriber)

    def report_expired(self) -> list[Expired]:
        """Tell subscribers of the entries whose timeouts have run out; to be called once a second, as BMv2 does."""
        expired = self.expired()
        for subscriber in list(self.expiry_subscribers) if expired else ():
            subscriber(expired)
        return expired

    @locked
    def expired(self) -> list[Expired]:
        """The entries whose timeouts have run out; one that was told by the last call is left out."""
        found: list[Expired] = []
        for name, table in self.tables.items():
            if not table.table.idle_timeout:
                continue
            timed = [(handle, held) for handle, held in table.items() if held.timeout_ms]
            late = {handle for handle, held in timed if self.idle_s(held) * 1000 >= held.timeout_ms}
            table.overdue, told = late - table.overdue, table.overdue
            found += [(name, handle) for handle in sorted(late - told)]
        return found
