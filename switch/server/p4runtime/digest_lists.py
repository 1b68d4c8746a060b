"""Digests in lists: collected, sent to the primaries, and remembered until they are acknowledged.

A `DigestEntry` says which digests are reported, and in what lists.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.learning_and_ageing import MOST_SAMPLES, DigestBatch, Sample
from inakit.switch.server.p4runtime.container import Container, expect_id
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, invalid, not_found, v1
from inakit.switch.server.p4runtime.profile_entities import copy_of
from inakit.switch.server.p4runtime.schema import DigestSchema, Schema


class Digests(Container):
    """The configs of the digests that are reported, by their ids."""

    member = "digest_entry"

    def __init__(self, schema: Schema, control: ControlPlane) -> None:
        super().__init__(schema, control)
        self.configs: dict[int, Message] = {}

    def scope(self, message: Message) -> int:
        return int(message.digest_id)

    def digest(self, message: Message) -> DigestSchema:
        """The digest of a message, or a fault."""
        expect_id(message.digest_id, "digest")
        return self.schema.find(self.schema.digests, message.digest_id, "digest")

    def insert(self, message: Message) -> None:
        """Begin to report a digest."""
        digest = self.digest(message)
        if digest.id in self.configs:
            raise Fault(Code.ALREADY_EXISTS, f"digest '{digest.name}' is reported already")
        config = checked(message)
        self.control.set_learning_size(digest.list_id, 1)
        self.control.report_digests()
        with self.control.lock:
            self.control.learning_list(digest.list_id).forget()
        self.configs[digest.id] = config

    def modify(self, message: Message) -> None:
        """Report a digest that is reported in other lists."""
        digest = self.digest(message)
        self.expect(digest)
        self.configs[digest.id] = checked(message)

    def delete(self, message: Message) -> None:
        """Report a digest no longer."""
        digest = self.digest(message)
        self.expect(digest)
        del self.configs[digest.id]
        self.control.set_learning_size(digest.list_id, MOST_SAMPLES)

    def expect(self, digest: DigestSchema) -> None:
        """Raise a fault if a digest is not reported."""
        if digest.id not in self.configs:
            raise not_found(f"digest '{digest.name}' is not reported: INSERT it first")

    def read(self, message: Message) -> Iterator[Message]:
        if message.digest_id:
            self.digest(message)
        found = [message.digest_id] if message.digest_id else list(self.configs)
        known = (number for number in found if number in self.configs)
        return iter([v1.DigestEntry(digest_id=number, config=self.configs[number]) for number in known])


def checked(message: Message) -> Message:
    """The config of a message; a fault if one of its numbers is negative."""
    config = message.config
    if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
        raise invalid(f"the config of a digest has no negative numbers: {' '.join(str(config).split())}")
    return copy_of(config)


MOST_MESSAGES = 4096
"""A list whose config has no bound has at most so many messages."""


@dataclass(eq=False)
class Collected:
    """The messages of one digest. `sent` has those of each list that was not acknowledged, with the time in ns."""

    waiting: dict[Sample, None] = field(default_factory=dict)
    since_ns: int = 0
    list_id: int = 0
    sent: dict[int, tuple[int, frozenset[Sample]]] = field(default_factory=dict)

    def knows(self, sample: Sample) -> bool:
        """Whether a message waits, or was sent and not acknowledged."""
        return sample in self.waiting or any(sample in samples for _, samples in self.sent.values())


class DigestLists:
    """The digests of a pipeline; `send` gets the id of a digest and the list."""

    def __init__(self, digests: Digests, send: Callable[[int, Message], None]) -> None:
        self.digests, self.send = digests, send
        self.collected: dict[int, Collected] = {}

    def learn(self, batch: DigestBatch) -> None:
        """Take what the data plane has reported, and let it report the same again."""
        number = self.digests.schema.digest_ids.get(batch.name)
        if number is None or number not in self.digests.configs:
            return
        self.digests.control.acknowledge_buffer(batch.list_id, batch.buffer)
        now_ns = time.monotonic_ns()
        for sample in batch.samples:
            self.collect(number, sample, now_ns)

    def collect(self, number: int, sample: Sample, now_ns: int) -> None:
        """Put a message that is not known into its list, and send the list if it is full."""
        config, collected = self.digests.configs[number], self.collected.setdefault(number, Collected())
        self.forget(number, now_ns)
        if collected.knows(sample):
            return
        if not collected.waiting:
            collected.since_ns = now_ns
        collected.waiting[sample] = None
        if not config.max_timeout_ns or len(collected.waiting) >= (config.max_list_size or MOST_MESSAGES):
            self.flush(number, now_ns)

    def flush(self, number: int, now_ns: int) -> None:
        """Send the messages that wait as one list."""
        collected, config = self.collected[number], self.digests.configs[number]
        layout = self.digests.schema.digests[number].layout
        collected.list_id += 1
        response = v1.DigestList(digest_id=number, list_id=collected.list_id, timestamp=time.time_ns())
        response.data.extend(layout.encode(iter(sample)) for sample in collected.waiting)
        if config.ack_timeout_ns:
            collected.sent[collected.list_id] = (now_ns, frozenset(collected.waiting))
        collected.waiting.clear()
        self.send(number, response)

    def forget(self, number: int, now_ns: int) -> None:
        """Forget the lists whose time for an acknowledgement is over."""
        late = now_ns - self.digests.configs[number].ack_timeout_ns
        sent = self.collected[number].sent
        for list_id in [each for each, (sent_ns, _) in sent.items() if sent_ns <= late]:
            del sent[list_id]

    def acknowledge(self, message: Message) -> None:
        """Forget a list that a client has acknowledged; a fault if there is no such digest."""
        if message.digest_id not in self.digests.schema.digests:
            raise invalid(f"digest_ack: no digest has the id {message.digest_id:#010x}")
        if message.digest_id in self.collected:
            self.collected[message.digest_id].sent.pop(message.list_id, None)

    def poll(self) -> None:
        """Send the lists that have waited as long as they may, and forget what is not reported any longer."""
        now_ns = time.monotonic_ns()
        for number in list(self.collected):
            if number not in self.digests.configs:
                del self.collected[number]
                continue
            waited = now_ns - self.collected[number].since_ns
            if self.collected[number].waiting and waited >= self.digests.configs[number].max_timeout_ns:
                self.flush(number, now_ns)
