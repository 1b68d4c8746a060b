"""`DigestEntry`: which digests are reported, and in what lists."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.notifications import MOST_SAMPLES
from inakit.switch.server.p4runtime.entities.container import Container, expect_id
from inakit.switch.server.p4runtime.entities.profiles import copy_of
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid, not_found
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import DigestSchema, Schema


class Digests(Container):
    """The configs of the digests that are reported, by their ids."""

    member = "digest_entry"

    def __init__(self, schema: Schema, control: ControlPlane) -> None:
        super().__init__(schema, control)
        self.configs: dict[int, Message] = {}

    def scope(self, message: Message) -> int:
        """The id of the digest."""
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
        self.report_each(digest)
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

    def report_each(self, digest: DigestSchema) -> None:
        """Let the control plane report each message at once, from now on: lists are made here."""
        self.control.set_learning_size(digest.list_id, 1)
        self.control.report_digests()
        with self.control.lock:
            self.control.learning_list(digest.list_id).forget()

    def expect(self, digest: DigestSchema) -> None:
        """Raise a fault if a digest is not reported."""
        if digest.id not in self.configs:
            raise not_found(f"digest '{digest.name}' is not reported: INSERT it first")

    def read(self, message: Message) -> Iterator[Message]:
        """The config of one digest, or of all that are reported."""
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
