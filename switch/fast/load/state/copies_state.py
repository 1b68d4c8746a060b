"""Mirror sessions and digests of a switch that runs compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inakit.switch.control.data_plane import Digest
from inakit.switch.entries import MirrorSession
from inakit.switch.fast.layout.layout import MIRRORS, ProgramLayout
from inakit.switch.fast.load.state.digests import DigestReader
from inakit.switch.fast.tables.rows import Memory
from inakit.topo.errors import UnsupportedError


class CopiesState:
    """Where clones of packets go, and what a program reports, in the switch's `memory`."""

    layout: ProgramLayout
    memory: Memory
    digests: DigestReader

    def put_session(self, session: MirrorSession) -> None:
        """Add a mirror session, or replace the one of this number. A program that clones nothing needs none."""
        if session.size_bytes:
            raise UnsupportedError(f"mirror session {session.session}: a compiled program does not cut clones")
        if self.layout.copying:
            place = self.layout.view(self.memory, MIRRORS)[session.session : session.session + 1]
            place.view(np.uint64)[0] = mirror_word(session)

    def put_sessions(self, sessions: Sequence[MirrorSession]) -> None:
        """Add mirror sessions, or replace those of their numbers."""
        for session in sessions:
            self.put_session(session)

    def remove_session(self, number: int) -> None:
        """Remove a mirror session: nothing is cloned to it any more."""
        self.put_session(MirrorSession(number))

    def forget_copies(self) -> None:
        """Have no mirror session, and no digest that was not read."""
        if self.layout.copying:
            self.layout.view(self.memory, MIRRORS).view(np.uint8)[:] = 0
        self.read_digests()

    def read_digests(self) -> list[Digest]:
        """The digests since the last call, as (name, values)."""
        return self.digests.read()


def mirror_word(session: MirrorSession) -> int:
    """The place of a mirror session, written at once: group and port, plus one."""
    group, port = (0 if number is None else number + 1 for number in (session.group, session.port))
    return port << 32 | group
