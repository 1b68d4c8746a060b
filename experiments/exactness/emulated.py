"""A run on a Mininet network that is made for it alone, so that no switch knows of an earlier one."""

from __future__ import annotations

from experiments.exactness.ran import Ran, befallen
from experiments.faults.faults_file import FaultPlan
from experiments.faults.injection import Injection, Scene, faulty_entries
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.install.plan_entries import entries
from switch.targets import choose_target
from topo.live.network import Network
from traffic.endpoints.gradient import Gradients
from traffic.runs.closed_loop import ReliableOptions, run_reliable
from traffic.sockets.ports import host_ports


def run_emulated(
    target: str, problem: Problem, plan: Plan, faults: FaultPlan, gradients: Gradients, options: ReliableOptions
) -> Ran:
    """Run on switches of this target. Raises `RunError` when one dies or the run stalls."""
    installed = faulty_entries(problem, plan, entries(problem, plan), faults)
    with Network(problem.fabric, choose_target(target).node_class()) as network:
        for name, switch in network.switches.items():
            switch.install(installed.of(name))
        hosts = host_ports(network.hosts.values())
        try:
            with Injection(Scene(network, hosts, problem, plan, installed), faults) as injection:
                measured = run_reliable(
                    hosts, problem, plan, gradients=gradients, options=options, interference=injection
                )
        finally:
            for switch in network.switches.values():
                switch.check()
        counts = befallen(network.switches.values(), injection.ports)
    return Ran(measured, counts, tuple(map(str, injection.pending)))
