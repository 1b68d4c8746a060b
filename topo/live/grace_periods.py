"""Grace periods of the kernel's RCU, for each of which a change of a network device waits.

To attach a program to an interface, to detach it, or to close a packet socket takes one each, one after the other. An
ordinary one ends after some 10 ms, so that a fat-tree with k = 4 took two seconds more to come up and two more to go.
Expedited ones end after some 0.02 ms; for them the kernel interrupts every processor, so they are for building and
removing networks only, not while packets are measured. The kernel has one switch for all of the machine (its
documentation, RCU, "rcu_expedited").
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from inakit.topo.live.ledger import Ledger

EXPEDITED = Path("/sys/kernel/rcu_expedited")


class GracePeriods:
    """Whether grace periods are expedited for a run. What they were before is in the run's ledger.

    Only who finds them ordinary changes them, so that of several runs none leaves behind what another has set.
    """

    def __init__(self, ledger: Ledger, setting: Path = EXPEDITED) -> None:
        self.ledger, self.setting = ledger, setting
        self.changed = False

    def expedite(self) -> None:
        """End grace periods at once from now on. Where that may not be set they stay ordinary, which is slower only."""
        with suppress(OSError):
            if self.setting.read_text().strip() == "0":
                self.ledger.record("setting", f"{self.setting} 0")
                self.setting.write_text("1")
                self.changed = True

    def relax(self) -> None:
        """Let grace periods be ordinary again."""
        if self.changed:
            self.setting.write_text("0")
            self.changed = False
