"""The verdicts of runs, their order, and the limits that runs are judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The usability of the figures of a run, or of a whole command, from the best to the worst.

    `VALID`: no limit is broken. `SLOW`: a computation took longer than allowed. `UNPROVEN`: a value that is called an
    optimum is not proven to be one. `CHANGED`: a claim of a paper is no longer reproduced, or newly reproduced, while
    the ledger of claims says otherwise. `DIFFERS`: valid runs whose measured rates are not near the planned ones, or
    schemes that are not in the paper's order. `OVERLOADED`: the machine could not carry the run, so that its figures
    mean nothing. `WRONG`: sums, or results computed from them, are not exact, which is a defect. `INTERRUPTED`: a
    signal ended the run. `FAILED`: an error ended it. `INCOMPLETE`: it has not ended, or its process is gone.
    """

    VALID = "VALID"
    SLOW = "SLOW"
    UNPROVEN = "UNPROVEN"
    CHANGED = "CHANGED"
    DIFFERS = "DIFFERS"
    OVERLOADED = "OVERLOADED"
    WRONG = "WRONG"
    INTERRUPTED = "INTERRUPTED"
    FAILED = "FAILED"
    INCOMPLETE = "INCOMPLETE"


VALID, OVERLOADED = Verdict.VALID, Verdict.OVERLOADED
RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}


def worst_of(verdicts: Iterable[str]) -> Verdict:
    """The worst of several verdicts, or of their words as `run.json` has them: VALID if there are none.

    Raises `ValueError` for a word that is not a verdict.
    """
    return max(map(Verdict, verdicts), key=RANK.__getitem__, default=VALID)


@dataclass(frozen=True)
class Limits:
    """The limits beyond which a run is not trusted.

    `free`: the least share of all processors, in any second, that the emulation's own work leaves. Below that there is
    always a queue for a processor, and the time of every packet depends on the scheduler, not on the network.
    `endpoints`, `switches`: the greatest share of any second that the thread of the endpoints, or a thread that moves
    packets, can be ready to run without a processor. `stolen`, `throttled`: the greatest share of any second that a
    hypervisor, or a quota, can withhold. (A run with 27 % of a second stolen was right to 0.4 %. Harmful steals also
    show in rates and pace.) `rate_error`: the largest difference of a worker's sending rate from the planned one, as a
    share of it. `late`: the largest share of its time by which a paced sender falls behind for good; the two are equal,
    because lateness lowers a sender's rate by the same share. `noticed`: other programs are named if they take at least
    this share of one processor in a second.

    How the waits were chosen: on a fat-tree with k = 4 at 20 Mbit/s, two processors, kernel 6.18. The endpoints waited
    for up to 5 % of a second, softirq threads for up to 4 %, in runs that were right to 2 %, alone and beside two hogs.
    Beside two hogs of equal priority, without running before them (`inakit.topo.live.priority`), the endpoints waited
    for 46 to 65 %, and rates fell short by 39 to 48 %; at a fifth of the load and less they waited for 24 to 45 %, and
    rates were right to 0.3 %. So 20 % lies between the two. Time withheld by a hypervisor or a quota is a wait of the
    same kind. At 1.5 and 2 times the rate that a machine carries, waits are 2 to 9 %: that overload shows in `free`,
    rates and paces.
    """

    free: float = 0.05
    endpoints: float = 0.2
    switches: float = 0.2
    stolen: float = 0.4
    throttled: float = 0.2
    rate_error: float = 0.05
    late: float = 0.05
    noticed: float = 0.2
