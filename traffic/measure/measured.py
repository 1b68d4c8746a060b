"""The measurements of a run's endpoints, with the papers' definitions (InArt 5.1.1), and the rows of its table.

Bytes are those of whole frames on the wire, as interface counters and link shapers count them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from statistics import fmean


@dataclass(frozen=True)
class Iteration:
    """One iteration of one job.

    `communication_time_s` is from the first gradient sent to the last result received; in replay, where there are no
    results, to the last gradient received at a PS. Rates and bytes are by the name of a worker or a PS. `exact`:
    whether every element of every sum is exact and every sum has the right number of workers, None if no sums were
    checked; `wrong`: a text about wrong sums.
    """

    job: int
    number: int
    started_s: float
    communication_time_s: float
    sending_rate_bps: Mapping[str, float]
    sent_bytes: Mapping[str, int]
    ps_ingress_bytes: Mapping[str, int]
    retransmissions: int = 0
    exact: bool | None = None
    wrong: tuple[str, ...] = ()
    window_cuts: int = 0


@dataclass(frozen=True)
class Replayed:
    """The pcap of a worker in each iteration of a job: its number of frames, and the rate of the replay.

    `command` is tcpreplay's command line, None in virtual time.
    """

    job: int
    worker: str
    frames: int
    rate_fps: float
    command: str | None = None


@dataclass(frozen=True)
class Measured:
    """The measurements of one run's traffic.

    Figures of several jobs have the definitions of `inakit.planner.core.evaluate.Prediction`: the rate of the slowest
    job, the PS ingress of all, the time of the slowest. `of_job` gives those of one job.

    `late_s`: by worker, the seconds of its planned rate that it did not send in time. `problems`: texts about problems
    at the endpoints, with their counts. `strangers`: packets that came to an endpoint outside their tree. `replayed`:
    the pcaps of a replay.
    """

    mode: str
    iterations: tuple[Iteration, ...]
    late_s: Mapping[str, float] = field(default_factory=dict)
    problems: Mapping[str, int] = field(default_factory=dict)
    strangers: int = 0
    replayed: tuple[Replayed, ...] = ()

    @property
    def exact(self) -> bool | None:
        """Whether every worker ended every iteration with the exact sum; None if no sums came back."""
        verdicts = [iteration.exact for iteration in self.iterations if iteration.exact is not None]
        return all(verdicts) if verdicts else None

    @property
    def wrong(self) -> tuple[str, ...]:
        """Texts about wrong sums of each job and iteration."""
        return tuple(f"job {i.job}, iteration {i.number}: {what}" for i in self.iterations for what in i.wrong)

    @cached_property
    def jobs(self) -> dict[int, tuple[Iteration, ...]]:
        """The iterations of each job, by its number."""
        numbers = dict.fromkeys(iteration.job for iteration in self.iterations)
        return {number: tuple(i for i in self.iterations if i.job == number) for number in numbers}

    @property
    def sending_rate_bps(self) -> float:
        """The mean rate over iterations and workers; the least of several jobs."""
        return min(fmean(rate for i in own for rate in i.sending_rate_bps.values()) for own in self.jobs.values())

    @property
    def total_rate_bps(self) -> float:
        """The rate of all workers together, mean over the iterations of each job."""
        return fsum(fmean(fsum(i.sending_rate_bps.values()) for i in own) for own in self.jobs.values())

    @property
    def sent_bytes(self) -> float:
        """The bytes that all workers send per iteration, summed over jobs."""
        return sum(fmean(sum(i.sent_bytes.values()) for i in own) for own in self.jobs.values())

    @property
    def ps_ingress_bytes(self) -> float:
        """The bytes that all PSs receive per iteration, summed over jobs."""
        return sum(fmean(sum(i.ps_ingress_bytes.values()) for i in own) for own in self.jobs.values())

    @property
    def communication_time_s(self) -> float:
        """The mean time of an iteration; the longest of several jobs."""
        return max(fmean(i.communication_time_s for i in own) for own in self.jobs.values())

    @property
    def retransmissions(self) -> int:
        """The number of packets that workers sent again."""
        return sum(i.retransmissions for i in self.iterations)

    @property
    def window_cuts(self) -> int:
        """How often senders halved a window: the multiplicative decreases of AIMD, for losses or notices."""
        return sum(i.window_cuts for i in self.iterations)

    def of_job(self, number: int) -> Measured:
        """The measurements of one job."""
        return Measured(self.mode, tuple(i for i in self.iterations if i.job == number), self.late_s, self.problems)

    def rows(self) -> Iterator[dict[str, object]]:
        """The rows of a table: one for each iteration, job and host."""
        for i in self.iterations:
            common = {
                "job": i.job,
                "iteration": i.number,
                "started_s": i.started_s,
                "communication_time_s": i.communication_time_s,
            }
            for host, rate in i.sending_rate_bps.items():
                yield common | {"host": host, "role": "worker", "bytes": i.sent_bytes[host], "rate_bps": rate}
            for host, ingress in i.ps_ingress_bytes.items():
                rate = 8 * ingress / i.communication_time_s
                yield common | {"host": host, "role": "ps", "bytes": ingress, "rate_bps": rate}


def rate_bps(frames: int, frame_bytes: int, duration_s: float, of_last: int | None = None) -> float:
    """The rate, in bit/s, of frames of which the first left at the start and the last at the end of `duration_s`.

    `of_last`: for parallel streams, the number of frames of the stream that ended last; the counted time ends when its
    next frame would have been due by its pace.
    """
    own = frames if of_last is None else of_last
    return 8 * frame_bytes * frames * (own - 1) / own / duration_s if own > 1 and duration_s > 0 else 0.0
