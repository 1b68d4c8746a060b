"""Messages of P4Runtime: their classes."""

from __future__ import annotations

import gc
import weakref

from google.protobuf import message_factory

from inakit.switch.server.p4runtime.messages import Message, config, v1


def class_of(described: Message) -> weakref.ref[type]:
    """The class of a message, which this reference does not hold."""
    return weakref.ref(message_factory.GetMessageClass(described))


def test_classes_of_inner_messages_outlive_their_messages() -> None:
    outer = [*vars(v1).values(), *vars(config).values()]
    found = [class_of(inner) for each in outer for inner in each.DESCRIPTOR.nested_types]
    assert len(found) > 20
    gc.collect()
    assert all(each() is not None for each in found)
