"""Digests: samples that packets send to the control plane, reported as BMv2's batches or P4Runtime's lists."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from inakit.switch.control.codecs import (
    ById,
    Call,
    Code,
    Codec,
    Fault,
    Fields,
    Message,
    ReadArgument,
    copy_of,
    invalid,
    not_found,
    unsigned,
)
from inakit.switch.control.p4data import Layout, layout_of
from inakit.switch.control.requests import Core, Entities, RefusalKind, locked, unknown
from inakit.switch.program.program import Program

TIMEOUT_MS, MOST_SAMPLES = 1000, 16
"""The default timeout of a batch and its default size, as in BMv2."""

Sample = tuple[int, ...]
"""The values of a digest's fields."""


@dataclass(frozen=True)
class DigestBatch:
    """Samples of one learning list; `buffer` counts a list's batches from 0."""

    list_id: int
    name: str
    buffer: int
    samples: tuple[Sample, ...]


@dataclass(eq=False)
class LearningList:
    """One digest of the program. `waiting` holds the samples of the batch that has been filling since `since_us`.

    `unacknowledged` holds the samples of each batch, by its number; acknowledged ones are None.
    """

    number: int
    name: str
    timeout_us: int = TIMEOUT_MS * 1000
    most: int = MOST_SAMPLES
    buffer: int = 0
    since_us: int = 0

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all samples; timeout and size stay."""
        self.buffer = 0
        self.waiting: list[Sample] = []
        self.known: set[Sample] = set()
        self.unacknowledged: dict[int, list[Sample | None]] = {}

    def learn(self, sample: Sample, now_us: int) -> DigestBatch | None:
        """Add a sample to the batch unless it is known; return the batch if it is full."""
        if sample in self.known:
            return None
        self.known.add(sample)
        if not self.waiting:
            self.since_us = now_us
        self.waiting.append(sample)
        self.unacknowledged.setdefault(self.buffer, []).append(sample)
        return self.full()

    def full(self) -> DigestBatch | None:
        return self.take() if self.waiting and len(self.waiting) >= self.most else None

    def overdue(self, now_us: int) -> DigestBatch | None:
        """The batch, if its timeout is over or a reduced size makes it full; else None."""
        late = self.timeout_us and now_us >= self.since_us + self.timeout_us
        return self.take() if self.waiting and late else self.full()

    def take(self) -> DigestBatch:
        """Return the batch and start the next one."""
        batch = DigestBatch(self.number, self.name, self.buffer, tuple(self.waiting))
        self.waiting = []
        self.buffer += 1
        return batch

    def acknowledge(self, buffer: int, samples: Sequence[int] | None) -> None:
        """Forget these samples of a batch, or all (None): they are reported when they occur again."""
        batch = self.unacknowledged.get(buffer, [])
        for index in range(len(batch)) if samples is None else samples:
            sample = batch[index] if 0 <= index < len(batch) else None
            if sample is not None:
                self.known.discard(sample)
                batch[index] = None
        if all(sample is None for sample in batch):
            self.unacknowledged.pop(buffer, None)


class Digests(Entities):
    """Requests for digests: a subscriber gets each batch of samples when `report` finds it complete."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.subscribers: list[Callable[[DigestBatch], None]] = []
        digests = self.program.digests.items()
        self.lists = {number: LearningList(number, digest.name) for number, digest in digests}

    def forget(self) -> None:
        """Forget all samples; lists keep their timeouts and sizes, as in BMv2."""
        for each in self.lists.values():
            each.forget()

    def report(self) -> list[DigestBatch]:
        """Collect the digests since the last call, and give complete batches to subscribers.

        Subscribers run in the calling thread.
        """
        batches = self.complete_batches()
        for batch in batches:
            for subscriber in list(self.subscribers):
                subscriber(batch)
        return batches

    @locked
    def complete_batches(self) -> list[DigestBatch]:
        now_us, by_name = self.data_plane.now_us(), {each.name: each for each in self.lists.values()}
        digests = self.data_plane.read_digests()
        full = [by_name[name].learn(sample, now_us) for name, sample in digests]
        overdue = [each.overdue(now_us) for each in self.lists.values()]
        return [batch for batch in (*full, *overdue) if batch is not None]

    @locked
    def acknowledge(self, list_id: int, buffer_id: int, samples: Sequence[int] | None = None) -> None:
        """Forget samples of a batch, by their positions, or all: they are reported when they occur again."""
        self.learning_list(list_id).acknowledge(buffer_id, samples)

    @locked
    def set_timeout(self, list_id: int, timeout_ms: int) -> None:
        """Set the timeout of batches; with 0, only full batches are reported."""
        self.learning_list(list_id).timeout_us = timeout_ms * 1000

    @locked
    def set_size(self, list_id: int, most: int) -> None:
        """Set the number of samples at which a batch is full."""
        self.learning_list(list_id).most = most

    def learning_list(self, number: int) -> LearningList:
        """The learning list of this number, or a refusal."""
        if number not in self.lists:
            raise unknown("learning list", number, self.lists, RefusalKind.INVALID_LIST_ID)
        return self.lists[number]


# Thrift


CALLS = {
    "bm_learning_ack": Call(Digests.acknowledge),
    "bm_learning_ack_buffer": Call(Digests.acknowledge),
    "bm_learning_set_timeout": Call(Digests.set_timeout),
    "bm_learning_set_buffer_size": Call(Digests.set_size),
}

ARGUMENTS: dict[str, ReadArgument] = {
    "buffer_id": lambda buffer_id, *_: {"buffer_id": unsigned(buffer_id, 64)},
    "most": lambda most, *_: {"most": unsigned(most)},
}


# P4Runtime collects digests in lists, sends these to the primaries, and remembers them until they are acknowledged


@dataclass(frozen=True)
class DigestSchema:
    """A digest, and the type of its messages in P4Runtime."""

    id: int
    name: str
    list_id: int
    layout: Layout


def read_digests(p4info: Message, program: Program) -> ById[DigestSchema]:
    """The digests of a P4Info."""

    def read(each: Message, list_id: int) -> DigestSchema:
        layout = layout_of(each.type_spec, p4info.type_info)
        return DigestSchema(each.preamble.id, each.preamble.name, list_id, layout)

    return ById("digest", p4info.digests, {each.name: number for number, each in program.digests.items()}, read)


class DigestCodec(Codec):
    """`DigestEntry`: the reported digests and the limits of their lists; `configs` are by the ids of digests."""

    member, id_field = "digest_entry", "digest_id"

    def __init__(self, schemas: ById[DigestSchema], digests: Digests) -> None:
        self.schemas, self.digests = schemas, digests
        self.configs: dict[int, Message] = {}

    def insert(self, message: Message) -> None:
        """Start reporting a digest."""
        digest = self.schemas.expect(message.digest_id)
        if digest.id in self.configs:
            raise Fault(Code.ALREADY_EXISTS, f"digest '{digest.name}' is already reported")
        config = checked_config(message)
        self.digests.set_size(digest.list_id, 1)
        self.digests.report()
        with self.digests.core.lock:
            self.digests.learning_list(digest.list_id).forget()
        self.configs[digest.id] = config

    def modify(self, message: Message) -> None:
        """Change the limits of a reported digest's lists."""
        self.configs[self.reported(message).id] = checked_config(message)

    def delete(self, message: Message) -> None:
        """Stop reporting a digest."""
        digest = self.reported(message)
        del self.configs[digest.id]
        self.digests.set_size(digest.list_id, MOST_SAMPLES)

    def reported(self, message: Message) -> DigestSchema:
        """The digest of a message, or a fault if it is not reported."""
        digest = self.schemas.expect(message.digest_id)
        if digest.id not in self.configs:
            raise not_found(f"digest '{digest.name}' is not reported: INSERT it first")
        return digest

    def read(self, message: Message) -> Iterator[Fields]:
        selected = [each.id for each in self.schemas.selected(message.digest_id)]
        found = [number for number in self.configs if number in selected]
        return iter([{"digest_id": number, "config": self.configs[number]} for number in found])


def checked_config(message: Message) -> Message:
    """The config of a message; a fault if one of its numbers is negative."""
    config = message.config
    if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
        raise invalid(f"the config of a digest has no negative numbers: {' '.join(str(config).split())}")
    return copy_of(config)


MOST_MESSAGES = 4096
"""The size of the largest list if the config sets no limit."""


@dataclass(eq=False)
class Collected:
    """The messages of one digest. `sent` holds those of each unacknowledged list, with the time in ns."""

    waiting: dict[Sample, None] = field(default_factory=dict)
    since_ns: int = 0
    list_id: int = 0
    sent: dict[int, tuple[int, frozenset[Sample]]] = field(default_factory=dict)

    def knows(self, sample: Sample) -> bool:
        """Whether a message waits, or has been sent without an acknowledgement."""
        return sample in self.waiting or any(sample in samples for _, samples in self.sent.values())


class DigestLists:
    """The digests of a pipeline; `send` gets the id of a digest and the fields of a `DigestList`."""

    def __init__(self, digests: DigestCodec, send: Callable[[int, Fields], None]) -> None:
        self.digests, self.send = digests, send
        self.collected: dict[int, Collected] = {}

    def learn(self, batch: DigestBatch) -> None:
        """Collect a batch of the data plane, and acknowledge it, so that its samples are reported again."""
        number = next((each.id for each in self.digests.schemas.values() if each.name == batch.name), None)
        if number is None or number not in self.digests.configs:
            return
        self.digests.digests.acknowledge(batch.list_id, batch.buffer)
        now_ns = time.monotonic_ns()
        for sample in batch.samples:
            self.collect(number, sample, now_ns)

    def collect(self, number: int, sample: Sample, now_ns: int) -> None:
        """Add a message to its list unless it is known, and send the list if it is full."""
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
        """Send the waiting messages as one list."""
        collected, config = self.collected[number], self.digests.configs[number]
        layout = self.digests.schemas[number].layout
        collected.list_id += 1
        data = [layout.encode(iter(sample)) for sample in collected.waiting]
        numbers = {"digest_id": number, "list_id": collected.list_id, "timestamp": time.time_ns()}
        if config.ack_timeout_ns:
            collected.sent[collected.list_id] = (now_ns, frozenset(collected.waiting))
        collected.waiting.clear()
        self.send(number, numbers | {"data": data})

    def forget(self, number: int, now_ns: int) -> None:
        """Forget lists whose time for an acknowledgement is over."""
        late = now_ns - self.digests.configs[number].ack_timeout_ns
        sent = self.collected[number].sent
        for list_id in [each for each, (sent_ns, _) in sent.items() if sent_ns <= late]:
            del sent[list_id]

    def acknowledge(self, message: Message) -> None:
        """Forget a list that a client has acknowledged; a fault for an unknown digest."""
        if message.digest_id not in self.digests.schemas:
            raise invalid(f"digest_ack: no digest has the id {message.digest_id:#010x}")
        if message.digest_id in self.collected:
            self.collected[message.digest_id].sent.pop(message.list_id, None)

    def poll(self) -> None:
        """Send lists whose timeout is over, and forget digests that are no longer reported."""
        now_ns = time.monotonic_ns()
        for number in list(self.collected):
            if number not in self.digests.configs:
                del self.collected[number]
                continue
            waited = now_ns - self.collected[number].since_ns
            if self.collected[number].waiting and waited >= self.digests.configs[number].max_timeout_ns:
                self.flush(number, now_ns)
