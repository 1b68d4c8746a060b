"""What the closed loop asks of its endpoints: of those who work, of those who answer them, and of their memory."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.traffic.endpoints.gradient import Gradients
from inakit.traffic.endpoints.stream_progress import StreamProgress
from inakit.traffic.endpoints.worker_counts import WorkerCounts
from inakit.traffic.sockets.ports import FloatArray, IntArray, Outgoing, Packets


class Memory(Protocol):
    """What those who work hold: their gradients, and the sums that came back."""

    def load(self, job_index: int, gradients: Gradients, iteration: int) -> None:
        """Take in the gradients of a job's next iteration."""

    def wrong(self, job_index: int) -> str:
        """Which sums of the job's last iteration are not exact; empty where all are."""

    def result(self, job: Job, worker: int) -> NDArray[np.int64]:
        """The summed gradient that a worker, counted from 0 within its job, holds: (values,)."""


class Answering(Protocol):
    """The ends to which gradients go."""

    strangers: int

    def begin(self, job_index: int, iteration: int) -> None:
        """Wait for the gradients of an iteration."""

    def restart(self, host: int) -> None:
        """Forget all that is held on a host and is not its own."""

    def receive(self, packets: Packets, now: float) -> None:
        """Take in gradients."""

    def due(self, now: float) -> Outgoing | None:
        """The answers to be sent now; `note` must hear what became of them."""

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` packets of each host that were due have been sent; both (hosts,)."""

    def next_due(self) -> float:
        """Before this time, give or take roundings, `due` has nothing to send unless packets come; -inf if unknown."""

    def ingress(self, job_index: int) -> dict[str, int]:
        """Gradient bytes that each PS of a job received since this was asked last."""

    def take_wrong(self, job_index: int) -> str:
        """What was wrong with packets of a job since this was asked last; empty if nothing."""


class Working(Protocol):
    """The ends from which gradients come."""

    progress: StreamProgress
    counts: WorkerCounts

    def begin(self, job_index: int, iteration: int) -> None:
        """Start to send the gradients that the job's memory holds."""

    def end(self, job_index: int) -> None:
        """Send nothing more of the job's gradients: they may change from now on."""

    def turn(self) -> None:
        """Do what packets that have come call for, before anything is sent."""

    def finished(self, job_index: int) -> bool:
        """Whether the iteration of a job is over: all who work have all sums."""

    def receive(self, packets: Packets, now: float) -> None:
        """Take in answers."""

    def due(self, now: float) -> Outgoing | None:
        """What is to be sent now; `note` must hear what became of it."""

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` packets of each host that were due have been sent; both (hosts,)."""

    def next_due(self, accepts_from: FloatArray) -> float:
        """Before this time, give or take roundings, `due` has nothing to send that is accepted, unless packets come.

        Until then it does no more than `refill_at`. Packets of each host are accepted from `accepts_from` on, (hosts,).
        -inf: nobody knows.
        """

    def refill_at(self, times: FloatArray) -> None:
        """Let credits to send rise at each of these times, (ticks,), as `due` does first."""

    def ended_at(self, job_index: int) -> float:
        """When the last sum of the iteration came."""

    def late_s(self) -> FloatArray:
        """How many seconds' worth of its rate each host could have sent and did not, (hosts,)."""
