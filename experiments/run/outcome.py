"""The outcome of running one planner's plan: figures planned and measured, the verdict, and the series behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from inakit.experiments.inspect.capture import Counts
from inakit.experiments.run.observation import Observed
from inakit.experiments.run.pace import Pace
from inakit.experiments.run.printed_report import bandwidth_figures
from inakit.experiments.run.record import RunFolder
from inakit.experiments.worlds.world import LiveNetwork
from inakit.planner.core.evaluate import Prediction
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.traffic.measure.comparison import Figures, Pair, measured_by_job, paired, planned_by_job
from inakit.traffic.measure.counters import difference
from inakit.traffic.measure.fidelity import Excuses, judge, turned_away
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.monitor import (
    Monitor,
    ends_of_interfaces,
    gradient_bytes_on_links,
    link_rows,
    link_totals,
    measured_aggregation,
)
from inakit.traffic.measure.off_plan import off_plan
from inakit.traffic.measure.processors import part_series
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.wire.packet_format import FRAGMENT, Event


@dataclass(frozen=True)
class Outcome:
    """The outcome of one planner's run: what the endpoints measured, and what the monitor saw.

    `reasons`: why the run is not VALID, in words. `captured`: the packet counts of every pcap file. `setup_s`: how long
    the network took to set up. `interferences`: what was done to the run, as `run.json` has it. `pairs`: planned beside
    measured figures, for every job and in total. `observed`: series of links and times of fragments, of a run that was
    observed.
    `bandwidth`: what `inakit.experiments.run.printed_report` says of the run.
    """

    measured: Measured
    monitor: Monitor
    reasons: tuple[str, ...]
    captured: Mapping[str, Counts] = field(default_factory=dict)
    setup_s: float = 0.0
    interferences: Sequence[Mapping[str, Any]] = ()
    pairs: tuple[Pair, ...] = ()
    observed: Observed | None = None
    bandwidth: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """WRONG for wrong sums, else OVERLOADED where there is a reason, else VALID.

        A replay without reasons whose sums are not complete is WRONG, too.
        """
        measured = self.measured
        if measured.wrong or (measured.exact is False and (measured.mode == "reliable" or not self.reasons)):
            return Verdict.WRONG
        return Verdict.OVERLOADED if self.reasons else Verdict.VALID

    def as_json(self) -> dict[str, Any]:
        """The entry of this planner in `run.json`."""
        return {
            "setup_s": self.setup_s,
            "collisions": collisions(self.monitor),
            "measured": measured_figures(self.measured, self.monitor),
            "bandwidth": self.bandwidth,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "switches": dict(switch_figures(self.monitor)),
            "turned_away": [asdict(away) for away in turned_away(self.monitor)],
            "ignored_by_endpoints": self.measured.strangers,
            "captures": {name: asdict(counts) for name, counts in self.captured.items()},
        } | self.extras()

    def extras(self) -> dict[str, Any]:
        """What the entry has only of runs in real time, replays, or with interferences or observation."""
        replayed = [asdict(each) for each in self.measured.replayed] or None
        used = part_series(self.monitor.seconds, self.monitor.before.at_s)
        parts = {"interferences": list(self.interferences) or None, "replayed": replayed, "processors": used}
        found = {name: part for name, part in parts.items() if part is not None}
        return found | ({} if self.observed is None else self.observed.as_json())

    def write(self, folder: RunFolder, planner: str) -> None:
        """Write CSV files: planned and measured by job, iterations by host, links, links by second, events by switch.

        Of a run that was observed, also links over time and the times of fragments.
        """
        write_table(folder, f"{planner}/jobs.csv", [pair.row() for pair in self.pairs])
        write_table(folder, f"{planner}/iterations.csv", list(self.measured.rows()))
        ends = ends_of_interfaces(self.monitor.watched)
        write_table(folder, f"{planner}/link_totals.csv", [asdict(total) for total in link_totals(self.monitor)])
        write_table(folder, f"{planner}/links.csv", list(link_rows(self.monitor.links, ends)))
        switches = [{"switch": name} | figures for name, figures in switch_figures(self.monitor)]
        write_table(folder, f"{planner}/switches.csv", switches)
        if self.observed is not None:
            self.observed.write(folder, planner)


def watch(
    network: LiveNetwork,
    prepared: Prepared,
    send: Callable[[], Measured],
    excuses: Excuses | None = None,
    pace: Pace | None = None,
) -> Outcome:
    """Call `send` while the monitor watches the network, and judge the run by its plan.

    The reasons begin with what is wrong with the sums and end with the jobs that are off their plan. `pace`, if it is
    given, learns of the monitor; it is the one to which `send` reports its progress. Raises `RunError` when a switch
    has died, and what `send` raises, such as the `TooSlowError` of the pace.
    """
    with network.monitor() as monitor:
        if pace is not None:
            pace.monitor = monitor
        try:
            measured = send()
        finally:
            for switch in network.switches.values():
                switch.check()
    problem, plan, prediction = prepared.problem, prepared.plan, prepared.prediction
    excuses = beside_collisions(monitor, problem, plan, excuses)
    reasons = judge(monitor, measured, plan, excuses=excuses)
    off = () if excuses is not None and excuses.rates else off_plan(prediction, measured, plan)
    bandwidth = bandwidth_figures(problem, measured, monitor)
    every = (*measured.wrong, *reasons, *off)
    return Outcome(measured, monitor, every, pairs=paired(prediction, measured), bandwidth=bandwidth)


def beside_collisions(monitor: Monitor, problem: Problem, plan: Plan, excuses: Excuses | None) -> Excuses | None:
    """The run's excuses, and more if fragments found a shared slot taken: slow workers, and queues that overflow.

    Depending on the policy such fragments go on unaggregated, over links that the plan fills without them, and windows
    shrink. Neither is then a sign of an overload.
    """
    jobs = plan.jobs_sharing_slots
    if not jobs or not collisions(monitor):
        return excuses
    before = excuses or Excuses()
    workers = frozenset(worker for job in problem.jobs if job.number in jobs for worker in job.workers)
    return replace(before, hosts=before.hosts | workers, rates=True, congestion=True)


def collisions(monitor: Monitor) -> int:
    """How many gradient packets found their slot taken, or took it from a fragment of lower priority."""
    return sum(events[Event.COLLISION] + events[Event.EVICTED] for _, events in switch_events(monitor))


def planned_figures(prediction: Prediction) -> dict[str, Any]:
    """The planned figures in `run.json`, as the evaluator predicts them for one iteration of every job.

    With several jobs the sending rate and the time are those of the slowest job; `jobs` has the figures of each job,
    `total` those of all jobs together. `aggregated_bytes`: what workers send less what PSs receive; `overhead_bytes`:
    gradients summed over all links that they pass (both from GOAT).
    """
    return {
        "sending_rate_bps": prediction.sending_rate_bps,
        "ps_ingress_bytes": prediction.ps_ingress_bytes,
        "communication_time_s": prediction.communication_time_s,
        "aggregation_ratio": ratio(prediction.sent_bytes, prediction.ps_ingress_bytes),
        "aggregated_bytes": prediction.aggregated_bytes,
        "overhead_bytes": prediction.overhead_bytes,
        **by_job(planned_by_job(prediction)),
    }


def measured_figures(measured: Measured, monitor: Monitor) -> dict[str, Any]:
    """The measured figures in `run.json`, named as the planned ones: means over the iterations of each job.

    `overhead_bytes` is None if jobs differ in their number of iterations, because switches do not count gradients by
    job.
    """
    counts = {len(iterations) for iterations in measured.jobs.values()}
    switches = [measured_aggregation(events) for _, events in switch_events(monitor)]
    overhead = gradient_bytes_on_links(measured, switches, FRAGMENT.wire_bytes)
    sent, received = measured.sent_bytes, measured.ps_ingress_bytes
    return {
        "sending_rate_bps": measured.sending_rate_bps,
        "ps_ingress_bytes": measured.ps_ingress_bytes,
        "communication_time_s": measured.communication_time_s,
        "aggregation_ratio": ratio(sent, received),
        "aggregated_bytes": sent - received,
        "overhead_bytes": overhead / counts.pop() if len(counts) == 1 else None,
        "retransmissions": measured.retransmissions,
        "exact": measured.exact,
        **by_job(measured_by_job(measured)),
    }


def by_job(figures: Mapping[int | None, Figures]) -> dict[str, Any]:
    """The figures of each job, and the totals, as `run.json` has them."""
    jobs = {str(number): found.as_json() for number, found in figures.items() if number is not None}
    return {"jobs": jobs, "total": figures[None].as_json()}


def ratio(sent: float, received: float) -> float | None:
    """Bytes that workers send for each byte that reaches a PS; None when none does."""
    return sent / received if received else None


def switch_events(monitor: Monitor) -> Iterator[tuple[str, Mapping[int, int]]]:
    """For each switch, how often each event of the P4 program happened during the run."""
    for name, after in monitor.after.switches.items():
        yield name, difference(monitor.before.switches[name].events, after.events)


def switch_figures(monitor: Monitor) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each switch, its events by name, and gradient packets received for each one sent (None if it sent none)."""
    for name, events in switch_events(monitor):
        gradients = measured_aggregation(events)
        found = ratio(gradients.packets_in, gradients.packets_out)
        yield name, {"aggregation_ratio": found} | {Event(n).name.lower(): count for n, count in events.items()}


def write_table(folder: RunFolder, name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows that have the same keys as CSV; write no file if there is no row."""
    if rows:
        folder.write_rows(name, list(rows[0]), [list(row.values()) for row in rows])
