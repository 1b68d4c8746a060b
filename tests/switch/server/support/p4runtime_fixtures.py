"""A server in this process, and a primary that has the program `served`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from p4runtime_client import Client, Stream

    from inakit.switch.server.served_switch import ServedSwitch


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ServedSwitch, str]]:
    """A switch whose programs are interpreted, and the address of its server."""
    from p4runtime_client import serving  # noqa: PLC0415

    monkeypatch.setenv("INAKIT_SWITCH", "interpreted")
    with serving() as found:
        yield found


@pytest.fixture
def target(server: tuple[ServedSwitch, str]) -> str:
    """The address of the server."""
    return server[1]


@pytest.fixture
def controller(target: str) -> Iterator[tuple[Client, Stream]]:
    """A primary with the program `served`, and its stream."""
    from p4runtime_client import primary  # noqa: PLC0415

    with primary(target) as found:
        yield found


@pytest.fixture
def client(controller: tuple[Client, Stream]) -> Client:
    """A primary with the program `served`."""
    return controller[0]
