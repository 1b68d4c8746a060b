"""What a switch tells unasked: digests in batches, as BMv2 reports them, and entries whose idle timeouts ran out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.requests import Control, RefusalKind, Refused, locked
from inakit.switch.control.table_requests import TableControl

TIMEOUT_MS, MOST_SAMPLES = 1000, 16
"""A batch is reported after this time, or when it has so many samples, unless its list has others; as in BMv2."""

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
    """One digest of the program. `waiting` has the samples of the batch that is being filled since `since_us`.

    `unacknowledged` has the samples of each batch, by its number, without those that were acknowledged (None).
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
        """Begin anew, with the same timeout and size."""
        self.buffer = 0
        self.waiting: list[Sample] = []
        self.known: set[Sample] = set()
        self.unacknowledged: dict[int, list[Sample | None]] = {}

    def learn(self, sample: Sample, now_us: int) -> DigestBatch | None:
        """Put a new sample into the batch, and return the batch if it is full."""
        if sample in self.known:
            return None
        self.known.add(sample)
        if not self.waiting:
            self.since_us = now_us
        self.waiting.append(sample)
        self.unacknowledged.setdefault(self.buffer, []).append(sample)
        return self.full()

    def full(self) -> DigestBatch | None:
        """The batch, if it has as many samples as it may have."""
        return self.take() if self.waiting and len(self.waiting) >= self.most else None

    def overdue(self, now_us: int) -> DigestBatch | None:
        """The batch, if it has waited as long as it may; or is full, since the size was made smaller."""
        late = self.timeout_us and now_us >= self.since_us + self.timeout_us
        return self.take() if self.waiting and late else self.full()

    def take(self) -> DigestBatch:
        """The batch; the next one begins."""
        batch = DigestBatch(self.number, self.name, self.buffer, tuple(self.waiting))
        self.waiting = []
        self.buffer += 1
        return batch

    def acknowledge(self, buffer: int, samples: Sequence[int] | None) -> None:
        """Report these samples of a batch, or all (None), again when they come again."""
        batch = self.unacknowledged.get(buffer, [])
        for index in range(len(batch)) if samples is None else samples:
            sample = batch[index] if 0 <= index < len(batch) else None
            if sample is not None:
                self.known.discard(sample)
                batch[index] = None
        if all(sample is None for sample in batch):
            self.unacknowledged.pop(buffer, None)


class LearningControl(Control):
    """Requests for digests: a subscriber gets each batch of samples when `report_digests` finds it complete."""

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.subscribers: list[Callable[[DigestBatch], None]] = []
        digests = self.program.digests.items()
        self.lists = {number: LearningList(number, digest.name) for number, digest in digests}

    def forget_samples(self) -> None:
        """Begin all learning lists anew; they keep their timeouts and sizes, as in BMv2."""
        for each in self.lists.values():
            each.forget()

    def subscribe_digests(self, subscriber: Callable[[DigestBatch], None]) -> None:
        """Call `subscriber` with each batch, in the thread that calls `report_digests`."""
        self.subscribers.append(subscriber)

    def report_digests(self) -> list[DigestBatch]:
        """Take what packets have left since the last call, and give subscribers the batches that are complete."""
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
    def acknowledge(self, list_id: int, buffer: int, samples: Sequence[int]) -> None:
        """Report these samples of a batch, by their positions, again when they come again."""
        self.learning_list(list_id).acknowledge(buffer, samples)

    @locked
    def acknowledge_buffer(self, list_id: int, buffer: int) -> None:
        """Report all samples of a batch again when they come again."""
        self.learning_list(list_id).acknowledge(buffer, None)

    @locked
    def set_learning_timeout(self, list_id: int, timeout_ms: int) -> None:
        """Report a batch after at most this time; 0: only when it is full."""
        self.learning_list(list_id).timeout_us = timeout_ms * 1000

    @locked
    def set_learning_size(self, list_id: int, most: int) -> None:
        """Report a batch when it has this many samples."""
        self.learning_list(list_id).most = most

    def learning_list(self, number: int) -> LearningList:
        """The learning list of this number, or a refusal."""
        if number not in self.lists:
            known = ", ".join(map(str, self.lists)) or "none"
            raise Refused(RefusalKind.INVALID_LIST_ID, f"no learning list {number}: there are {known}")
        return self.lists[number]


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
