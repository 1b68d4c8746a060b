"""The entities that a `ReadRequest` selects, in responses of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from inakit.switch.server.p4runtime.pipeline import Pipeline
from inakit.switch.server.p4runtime.protocol.faults import fault_of
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.stream.role_scope import RoleScope
from inakit.switch.server.p4runtime.write import Answers, container_of

MOST_ENTITIES = 512
"""A response has at most so many entities."""


def select(
    pipeline: Pipeline, requests: Iterable[Message], scope: RoleScope
) -> tuple[list[Iterator[Message]], Answers]:
    """The entities of each request, as they are now, and why a request cannot be answered."""
    found: list[Iterator[Message]] = []
    answers: Answers = []
    for request in requests:
        try:
            found.append(entities(pipeline, request, scope))
            answers.append(None)
        except Exception as error:
            answers.append(fault_of(error))
    return found, answers


def entities(pipeline: Pipeline, request: Message, scope: RoleScope) -> Iterator[Message]:
    """The entities that one request selects."""
    container, message = container_of(pipeline, request)
    found = container.read(message)
    return (container.entity(each) for each in found if scope.has(container.scope(each)))


def responses(found: Iterable[Iterator[Message]]) -> Iterator[Message]:
    """Entities as `ReadResponse` messages."""
    for each in found:
        while chunk := list(islice(each, MOST_ENTITIES)):
            yield v1.ReadResponse(entities=chunk)
