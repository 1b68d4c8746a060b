"""What came of one planner in a run: figures planned and measured, the verdict, and the series behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from experiments.inspect.capture import Counts
from experiments.run.pace import Pace
from experiments.run.record import RunFolder
from experiments.worlds.world import LiveNetwork
from planner.core.evaluate import Prediction, evaluate
from planner.core.plan import Plan
from planner.core.problem import Problem
from traffic.measure.comparison import Figures, Pair, measured_by_job, paired, planned_by_job
from traffic.measure.fidelity import Excuses, judge, turned_away
from traffic.measure.link_load import link_rows
from traffic.measure.measured import Measured
from traffic.measure.monitor import Monitor
from traffic.measure.off_plan import off_plan
from traffic.measure.snapshots import difference
from traffic.measure.switch_aggregation import gradient_bytes_on_links, measured_aggregation
from traffic.measure.verdict import Verdict
from traffic.wire.frames import FRAGMENT
from traffic.wire.packet_format import Event


@dataclass(frozen=True)
class Outcome:
    """One planner's run: what traffic measured, what the monitor saw, what was captured by pcap file, and injected.

    `pairs`: by job and in total, what was planned beside what was measured.
    """

    measured: Measured
    monitor: Monitor
    reasons: tuple[str, ...]
    captured: Mapping[str, Counts] = field(default_factory=dict)
    setup_s: float = 0.0
    faults: Mapping[str, Any] | None = None
    pairs: tuple[Pair, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """WRONG for sums that nothing excuses, else OVERLOADED where there is a reason, else VALID."""
        measured = self.measured
        if measured.wrong or (measured.exact is False and (measured.mode == "reliable" or not self.reasons)):
            return Verdict.WRONG
        return Verdict.OVERLOADED if self.reasons else Verdict.VALID

    def as_json(self) -> dict[str, Any]:
        """What `run.json` says of a run."""
        return {
            "setup_s": self.setup_s,
            "collisions": collisions(self.monitor),
            "measured": measured_figures(self.measured, self.monitor),
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "switches": dict(switch_figures(self.monitor)),
            "turned_away": [asdict(away) for away in turned_away(self.monitor)],
            "ignored_by_endpoints": self.measured.strangers,
            "captures": {name: asdict(counts) for name, counts in self.captured.items()},
        } | ({} if self.faults is None else {"faults": self.faults})

    def write(self, folder: RunFolder, planner: str) -> None:
        """The series as CSV: planned and measured by job, iterations by host, links by second, events by switch."""
        write_table(folder, f"{planner}/jobs.csv", [pair.row() for pair in self.pairs])
        write_table(folder, f"{planner}/iterations.csv", list(self.measured.rows()))
        write_table(folder, f"{planner}/links.csv", list(link_rows(self.monitor.links)))
        switches = [{"switch": name} | figures for name, figures in switch_figures(self.monitor)]
        write_table(folder, f"{planner}/switches.csv", switches)


def watch(
    network: LiveNetwork,
    problem: Problem,
    plan: Plan,
    send: Callable[[], Measured],
    excuses: Excuses | None = None,
    pace: Pace | None = None,
) -> Outcome:
    """Send under the monitor's eyes, and judge what was sent by the plan for the problem.

    The reasons begin with what is wrong with the sums and end with the jobs that are off their plan. Raises `RunError`
    when a switch has died and, with a `pace`, which `send` tells its progress, `TooSlowError` when the run is clearly
    overloaded.
    """
    with network.monitor() as monitor:
        if pace is not None:
            pace.monitor = monitor
        try:
            measured = send()
        finally:
            for switch in network.switches.values():
                switch.check()
    prediction = evaluate(problem, plan)
    excuses = beside_collisions(monitor, problem, plan, excuses)
    reasons = judge(monitor, measured, plan, excuses=excuses).reasons
    off = () if excuses is not None and excuses.rates else off_plan(prediction, measured, plan)
    return Outcome(measured, monitor, (*measured.wrong, *reasons, *off), pairs=paired(prediction, measured))


def beside_collisions(monitor: Monitor, problem: Problem, plan: Plan, excuses: Excuses | None) -> Excuses | None:
    """What is excused of a run in which fragments found a shared slot taken.

    They went on unaggregated over links that the plan fills without them, and windows shrank, as the policy has it:
    that workers are slower than planned is then no sign of an overload.
    """
    jobs = plan.jobs_sharing_slots
    if not jobs or not collisions(monitor):
        return excuses
    before = excuses or Excuses()
    workers = frozenset(worker for job in problem.jobs if job.number in jobs for worker in job.workers)
    return replace(before, hosts=before.hosts | workers, rates=True)


def collisions(monitor: Monitor) -> int:
    """Packets of gradients that found their slot taken, or that took it from a fragment of lower priority."""
    return sum(events[Event.COLLISION] + events[Event.EVICTED] for _, events in switch_events(monitor))


def planned_figures(prediction: Prediction) -> dict[str, Any]:
    """What the evaluator expects, per iteration of every job.

    Of several jobs the sending rate and the time are those of the slowest; `jobs` has the figures of each, `total`
    those of all together. `aggregated_bytes`: what workers send less what PSs receive; `overhead_bytes`: gradients
    summed over links (GOAT).
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
    """The same, measured: means over the iterations of each job.

    Switches do not count gradients by job: `overhead_bytes` is None where jobs have other numbers of iterations.
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
    """By switch, how often each event of the P4 program happened during the run."""
    for name, after in monitor.after.switches.items():
        yield name, difference(monitor.before.switches[name].events, after.events)


def switch_figures(monitor: Monitor) -> Iterator[tuple[str, dict[str, Any]]]:
    """By switch, its events by name, and gradient packets in for each one out; None for a switch that sends none."""
    for name, events in switch_events(monitor):
        gradients = measured_aggregation(events)
        found = ratio(gradients.packets_in, gradients.packets_out)
        yield name, {"aggregation_ratio": found} | {Event(n).name.lower(): count for n, count in events.items()}


def write_table(folder: RunFolder, name: str, rows: list[dict[str, Any]]) -> None:
    """Rows that have the same keys, as CSV; nothing when there is no row."""
    if rows:
        folder.write_rows(name, list(rows[0]), [list(row.values()) for row in rows])
