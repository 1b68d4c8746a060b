"""What a control plane may ask of a running switch, and compiled code has nothing for."""

from __future__ import annotations

from typing import NoReturn

from switch.control.data_plane import Digest, Rates
from switch.entries import Entry, MeterRates, MirrorSession
from topo.errors import UnsupportedError


class NotCompiled:
    """The requests of `DataPlane` that target fast refuses."""

    def put_session(self, session: MirrorSession) -> None:
        """Refuse a mirror session."""
        refuse(f"mirror session {session.session}")

    def remove_session(self, number: int) -> None:
        """Refuse to remove a mirror session."""
        refuse(f"mirror session {number}")

    def set_rates(self, rates: MeterRates) -> None:
        """Refuse rates of a meter."""
        refuse(f"rates of meter '{rates.meter}'")

    def read_rates(self, name: str, index: int) -> Rates:
        """Refuse to read rates of a meter."""
        refuse(f"rates of meter '{name}' at {index}")

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        """Refuse rates of an entry."""
        refuse(f"rates {rates} of an entry of table '{entry.table}'")

    def entry_rates(self, entry: Entry) -> Rates:
        """Refuse to read rates of an entry."""
        refuse(f"rates of an entry of table '{entry.table}'")

    def read_digests(self) -> list[Digest]:
        """No digests: a program that sends some is not compiled."""
        return []


def refuse(what: str) -> NoReturn:
    """Raise the error for a request that names `what`."""
    raise UnsupportedError(f"{what}: target 'fast' has none for a program that is compiled")
