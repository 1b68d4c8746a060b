"""The outcome of one planner's run: planned and measured figures, the verdict, and the series behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from inakit.experiments.inspect.capture import Counts
from inakit.experiments.run.observation import Observed
from inakit.experiments.run.pace import Pace
from inakit.experiments.run.record import (
    Bandwidth,
    BandwidthOfJob,
    InterferenceRecord,
    JobFigures,
    MeasuredFigures,
    PlannedFigures,
    Processors,
    Results,
    Sampled,
    TotalFigures,
)
from inakit.experiments.run.run_folder import RunFolder
from inakit.experiments.worlds.world import LiveNetwork
from inakit.planner.core.evaluate import Prediction, load_hops, tree_loads
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.planner.trees.headroom import RESULTS_RETURN
from inakit.traffic.measure.comparison import (
    Figures,
    Pair,
    algorithm_bandwidth_bps,
    bus_bandwidth_bps,
    bytes_by_tier,
    core_bytes,
    measured_by_job,
    off_plan,
    paired,
    planned_by_job,
)
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
from inakit.traffic.measure.processors import part_series
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.wire.packet_format import FRAGMENT, Event


@dataclass(frozen=True)
class Outcome:
    """The outcome of one planner's run: the endpoints' measurements, and the monitor's counters.

    `reasons`: the reasons why the run is not VALID, in words. `captured`: the packet counts of every pcap file.
    `setup_s`: the network's set-up time. `interferences`: the records of the run's interferences. `pairs`: planned and
    measured figures, for every job and in total. `observed`: series of links and times of fragments, if the run was
    observed. `sampled`: which part of the run was sent by packets, if a part was allowed.
    """

    measured: Measured
    monitor: Monitor
    reasons: tuple[str, ...]
    captured: Mapping[str, Counts] = field(default_factory=dict)
    setup_s: float = 0.0
    interferences: Sequence[InterferenceRecord] = ()
    pairs: tuple[Pair, ...] = ()
    observed: Observed | None = None
    bandwidth: Bandwidth | None = None
    sampled: Sampled | None = None

    @property
    def verdict(self) -> Verdict:
        """WRONG for wrong sums, else OVERLOADED if there is a reason, else VALID.

        A replay with incomplete sums and without reasons is also WRONG.
        """
        measured = self.measured
        if measured.wrong or (measured.exact is False and (measured.mode == "reliable" or not self.reasons)):
            return Verdict.WRONG
        return Verdict.OVERLOADED if self.reasons else Verdict.VALID

    @property
    def results(self) -> Results:
        """The results for the record. Parts that this run does not have are not set."""
        replayed, used = list(self.measured.replayed), part_series(self.monitor.seconds, self.monitor.before.at_s)
        optional = {
            "interferences": list(self.interferences) or None,
            "replayed": replayed or None,
            "processors": used and Processors(**used),
            "links_over_time": self.observed and self.observed.links_over_time,
            "fragments": self.observed and self.observed.fragments_record,
            "sampled": self.sampled,
        }
        return Results(
            setup_s=self.setup_s,
            collisions=collisions(self.monitor),
            measured=measured_figures(self.measured, self.monitor),
            bandwidth=self.bandwidth,
            verdict=self.verdict,
            reasons=list(self.reasons),
            switches=dict(switch_figures(self.monitor)),
            turned_away=list(turned_away(self.monitor)),
            ignored_by_endpoints=self.measured.strangers,
            captures=dict(self.captured),
            **{name: part for name, part in optional.items() if part is not None},
        )

    def write(self, folder: RunFolder, planner: str) -> None:
        """Write CSV files: planned and measured by job, iterations by host, links, links by second, events by switch.

        If the run was observed, also write links over time and the times of fragments.
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

    The reasons begin with errors in the sums and end with the jobs that are off their plan. `pace`, to which `send`
    reports its progress, gets the monitor if it is given. Raises `RunError` if a switch has died, and the errors of
    `send`, such as the `TooSlowError` of the pace.
    """
    with network.monitor() as monitor:
        if pace is not None:
            pace.monitor = monitor
        try:
            measured = send()
        finally:
            for switch in network.switches.values():
                switch.check()
    return judged(prepared, measured, monitor, excuses)


def judged(prepared: Prepared, measured: Measured, monitor: Monitor, excuses: Excuses | None = None) -> Outcome:
    """The outcome of these measurements of a run, judged by its plan."""
    problem, plan, prediction = prepared.problem, prepared.plan, prepared.prediction
    excuses = beside_collisions(monitor, problem, plan, excuses)
    reasons = judge(monitor, measured, plan, excuses=excuses)
    off = () if excuses is not None and excuses.rates else off_plan(prediction, measured, plan)
    bandwidth = bandwidth_figures(problem, measured, monitor)
    every = (*measured.wrong, *reasons, *off)
    return Outcome(measured, monitor, every, pairs=paired(prediction, measured), bandwidth=bandwidth)


def beside_collisions(monitor: Monitor, problem: Problem, plan: Plan, excuses: Excuses | None) -> Excuses | None:
    """The run's excuses. Collisions in shared slots also excuse slow workers and queues that overflow.

    Depending on the policy, colliding fragments continue unaggregated over links that the plan fills without them, and
    windows shrink. Neither is then a sign of an overload.
    """
    jobs = plan.jobs_sharing_slots
    if not jobs or not collisions(monitor):
        return excuses
    before = excuses or Excuses()
    workers = frozenset(worker for job in problem.jobs if job.number in jobs for worker in job.workers)
    return replace(before, hosts=before.hosts | workers, rates=True, congestion=True)


def collisions(monitor: Monitor) -> int:
    """The number of gradient packets that found their slot taken, or took it from a fragment of lower priority."""
    return sum(events[Event.COLLISION] + events[Event.EVICTED] for _, events in switch_events(monitor))


def planned_figures(prediction: Prediction) -> PlannedFigures:
    """The evaluator's predicted figures, for the record."""
    counted = prediction.switches.items()
    return PlannedFigures(
        sending_rate_bps=prediction.sending_rate_bps,
        ps_ingress_bytes=prediction.ps_ingress_bytes,
        communication_time_s=prediction.communication_time_s,
        aggregation_ratio=ratio(prediction.sent_bytes, prediction.ps_ingress_bytes),
        aggregated_bytes=prediction.aggregated_bytes,
        overhead_bytes=prediction.overhead_bytes,
        **by_job(planned_by_job(prediction)),
        switches={name: each.packets_in / each.packets_out for name, each in counted if each.packets_out},
    )


def measured_figures(measured: Measured, monitor: Monitor) -> MeasuredFigures:
    """The measured figures for the record: means over the iterations of each job."""
    counts = {len(iterations) for iterations in measured.jobs.values()}
    switches = [measured_aggregation(events) for _, events in switch_events(monitor)]
    overhead = gradient_bytes_on_links(measured, switches, FRAGMENT.wire_bytes)
    sent, received = measured.sent_bytes, measured.ps_ingress_bytes
    return MeasuredFigures(
        sending_rate_bps=measured.sending_rate_bps,
        ps_ingress_bytes=measured.ps_ingress_bytes,
        communication_time_s=measured.communication_time_s,
        aggregation_ratio=ratio(sent, received),
        aggregated_bytes=sent - received,
        overhead_bytes=overhead / counts.pop() if len(counts) == 1 else None,
        **by_job(measured_by_job(measured)),
        retransmissions=measured.retransmissions,
        window_cuts=measured.window_cuts,
        exact=measured.exact,
    )


def by_job(figures: Mapping[int | None, Figures]) -> dict[str, Any]:
    """The figures of each job, and the total, as fields of the record."""
    jobs = {str(number): JobFigures(**each.as_json()) for number, each in figures.items() if number is not None}
    return {"jobs": jobs, "total": TotalFigures(**figures[None].as_json())}


def ratio(sent: float, received: float) -> float | None:
    """Bytes that workers send for each byte that reaches a PS; None if no byte does."""
    return sent / received if received else None


def bandwidth_figures(problem: Problem, measured: Measured, monitor: Monitor) -> Bandwidth | None:
    """The bandwidths of every job that ran, and bytes by tier of links; None for a replay, in which no sums return."""
    if measured.mode != "reliable":
        return None
    tiers = bytes_by_tier(problem.fabric, monitor)
    jobs = {}
    for job in problem.jobs:
        if job.number in measured.jobs:
            seconds = measured.of_job(job.number).communication_time_s
            jobs[str(job.number)] = BandwidthOfJob(
                algorithm_bandwidth_bps=algorithm_bandwidth_bps(job.gradient_bytes, seconds),
                bus_bandwidth_bps=bus_bandwidth_bps(job.gradient_bytes, seconds, len(job.workers)),
            )
    by_tier = {str(tier): count for tier, count in sorted(tiers.items())}
    return Bandwidth(jobs=jobs, tier_bytes=by_tier, core_bytes=core_bytes(tiers))


def switch_events(monitor: Monitor) -> Iterator[tuple[str, Mapping[int, int]]]:
    """Yield each switch with the counts of the P4 program's events during the run."""
    for name, after in monitor.after.switches.items():
        yield name, difference(monitor.before.switches[name].events, after.events)


def switch_figures(monitor: Monitor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each switch with its events by name, and gradient packets received per packet sent (None without any)."""
    for name, events in switch_events(monitor):
        gradients = measured_aggregation(events)
        found = ratio(gradients.packets_in, gradients.packets_out)
        yield name, {"aggregation_ratio": found} | {Event(n).name.lower(): count for n, count in events.items()}


PLANNED_LINKS = "planned_links.csv"


def write_planned_links(folder: RunFolder, planner: str, prepared: Prepared) -> None:
    """Write the planned load of each directed link, with results if they return while gradients are sent.

    `rate_bps` is the rate while all jobs send, `bytes` are those of the whole run, and `jobs` lists the link's jobs.
    """
    problem, prediction, results = prepared.problem, prepared.prediction, RESULTS_RETURN[prepared.mode]
    rates = prediction.loads_with_results_bps if results else prediction.link_loads_bps
    iterations = {job.number: job.iterations for job in problem.jobs}
    volume, users = Counter[tuple[str, str]](), defaultdict[tuple[str, str], set[int]](set)
    for load in tree_loads(problem, prepared.plan):
        for link in load_hops(load, results=results):
            volume[link] += load.packets * iterations[load.job] * problem.fragment.wire_bytes
            users[link].add(load.job)
    rows = (
        [*link, rate, volume[link], " ".join(map(str, sorted(users.get(link, ()))))] for link, rate in rates.items()
    )
    folder.write_rows(f"{planner}/{PLANNED_LINKS}", ("sender", "receiver", "rate_bps", "bytes", "jobs"), rows)


def write_table(folder: RunFolder, name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows with equal keys as CSV. Write no file if there are no rows."""
    if rows:
        folder.write_rows(name, list(rows[0]), [list(row.values()) for row in rows])
