"""The closed loop of a plan: who its endpoints are, and the ports that they send and receive at."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.live.processors import on_endpoint_processor
from inakit.traffic.collectives.layout import CollectiveLayout, lay_out_plan
from inakit.traffic.endpoints.gradient import Gradients, RandomGradients
from inakit.traffic.endpoints.server import Servers
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.endpoints.worker import Workers
from inakit.traffic.endpoints.worker_memory import WorkerMemory
from inakit.traffic.measure.measured import Measured
from inakit.traffic.runs.collective_loop import CollectiveLoop
from inakit.traffic.runs.loop import TICK_S, ClosedLoop, Interference, Progress, ReliableOptions
from inakit.traffic.sockets.packet_sockets import SocketPorts
from inakit.traffic.sockets.ports import HostPort, Ports

__all__ = ["TICK_S", "ClosedLoop", "Interference", "Loop", "Progress", "ReliableOptions", "run_reliable"]

NAMED = 5
"""How many of the missing workers are named."""

Endpoints = Callable[[Sequence[HostPort]], AbstractContextManager[tuple[Ports, Executor]]]
"""Opens the ports of hosts for a run; the executor runs what may take long beside it."""


def run_reliable(
    hosts: Sequence[HostPort],
    problem: Problem,
    plan: Plan,
    *,
    options: ReliableOptions | None = None,
    gradients: Gradients | None = None,
    progress: Progress | None = None,
    interference: Interference | None = None,
    endpoints: Endpoints | None = None,
) -> Measured:
    """Run all iterations of all jobs on a network in which the plan's entries are installed.

    `endpoints` opens the hosts' ports, by default their sockets.

    Raises `PlanError` for a plan without a PS at a tree's root, `RunError` when a run stalls.
    """
    options = options or ReliableOptions()
    layout = lay_out_plan(problem, plan, hosts, options.bounds)
    with (endpoints or on_sockets)(layout.hosts) as (ports, executor):
        used: tuple[StreamLayout, Ports] = interference.prepare(layout, ports) if interference else (layout, ports)
        loop = loop_of(used[0])(*used, gradients or RandomGradients(), options, executor)
        loop.interference = interference
        return loop.run(progress or (lambda _: None))


@contextmanager
def on_sockets(hosts: Sequence[HostPort]) -> Iterator[tuple[Ports, Executor]]:
    """Packet sockets of hosts that run on this machine, and a thread for what may take long.

    The calling thread stays on the processor of the endpoints, and collects no garbage.
    """
    with on_endpoint_processor(), no_collection(), SocketPorts(hosts) as ports, ThreadPoolExecutor(1) as executor:
        yield ports, executor


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep Python's garbage collector, which may take a tenth of a second, out of the loop."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Loop(ClosedLoop):
    """The loop of trees: workers send gradients, parameter servers or switches sum them and send the sums back."""

    def __init__(
        self, layout: StreamLayout, ports: Ports, gradients: Gradients, options: ReliableOptions, executor: Executor
    ) -> None:
        super().__init__(layout, ports, gradients, options, executor)
        self.memory: WorkerMemory = WorkerMemory(layout)
        self.workers: Workers = Workers(layout, self.memory, options.worker)
        self.servers: Servers = Servers(layout, options.worker.first_seq, options.server)

    def missing(self, job_index: int) -> str:
        """The first fragment that a worker waits for, and which host lacks which packet, in words."""
        stream = self.workers.first_waiting(job_index)
        tree, fragment = int(self.layout.streams.tree[stream]), int(self.workers.progress.base[stream])
        part, host = self.layout.parts[tree], self.layout.hosts[self.layout.streams.host[stream]]
        absent = self.servers.absent(tree, fragment)
        where = f"tree {part.tree.number}, fragment {fragment}"
        if absent:
            others = f" and {len(absent) - NAMED} more" if len(absent) > NAMED else ""
            return f"{where}: PS {part.tree.server} still lacks {', '.join(absent[:NAMED])}{others}"
        return f"{where}: PS {part.tree.server} has the sum, worker {host.name} has not received it"


def loop_of(layout: StreamLayout) -> type[ClosedLoop]:
    """The kind of loop that runs a layout."""
    return CollectiveLoop if isinstance(layout, CollectiveLayout) else Loop
