"""Publishes what happens in a running switch, as BMv2 does: digests, expired entries, ports that come up or go down."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread

from inakit.switch.control.notifications import Expired
from inakit.switch.control.notifications import DigestBatch
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.thrift.notifications import Publisher, ageing_messages, learning_message, port_message
from inakit.switch.server.thrift.resource_ids import TABLE, resource_ids

PORTS_EVERY_S = 0.2
"""How often ports are looked at."""


class Notifier:
    """Publishes until it is closed; messages of expired entries are counted from 0."""

    def __init__(self, switch: ServedSwitch, publisher: Publisher, device_id: int) -> None:
        self._switch, self._publisher, self._device_id = switch, publisher, device_id
        self._sweeps = 0
        self._up: set[int] = set()
        self._closed = Event()
        switch.digest_subscribers.append(self.tell_learned)
        switch.expiry_subscribers.append(self.tell_expired)
        Thread(target=self._watch_ports, name="ports", daemon=True).start()

    def close(self) -> None:
        """Publish nothing any more."""
        self._closed.set()
        self._switch.digest_subscribers.remove(self.tell_learned)
        self._switch.expiry_subscribers.remove(self.tell_expired)

    def tell_learned(self, batch: DigestBatch) -> None:
        """Publish a batch of digests, unless another program runs by now."""
        fields = self._switch.control.program.digests.get(batch.list_id)
        if fields is not None and fields.name == batch.name:
            self._publisher.send(learning_message(self._device_id, batch, fields))

    def tell_expired(self, expired: Sequence[Expired]) -> None:
        """Publish the entries that have expired."""
        tables = resource_ids(self._switch.json)[TABLE]
        for message in ageing_messages(self._device_id, self._sweeps, expired, tables):
            self._publisher.send(message)
            self._sweeps += 1

    def tell_ports(self) -> None:
        """Publish which ports have come up or gone down since the last call."""
        ports = self._switch.ports
        known = ports.all()
        up = {port for port in known if ports.is_up(port)}
        changed = sorted((up ^ self._up) & set(known))
        self._up = up
        if changed:
            self._publisher.send(port_message(self._device_id, [(port, port in up) for port in changed]))

    def _watch_ports(self) -> None:
        """Look at the ports again and again."""
        while not self._closed.wait(PORTS_EVERY_S):
            self.tell_ports()
