"""`inakit design`: design the network that gives a cluster of optical links the highest rate (ATRO)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.design_network import run_design
from inakit.experiments.cli.options import Gradient, Iterations, Scale
from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.run.scenario import DEFAULT_GRADIENT_BYTES, parse_scale
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Job
from inakit.planner.methods.atro.cluster import Cluster
from inakit.topo.files.quantities import parse_rate

Aggregators = Annotated[int, typer.Option(help="switches that aggregate")]
Common = Annotated[int, typer.Option(help="switches that do not")]
Ports = Annotated[int, typer.Option(help="ports of every switch")]
Workers = Annotated[int, typer.Option(help="workers, beside the one parameter server")]
Capacity = Annotated[str, typer.Option(help="capacity of every link")]
Layers = Annotated[int, typer.Option(help="the most switches on a way to the parameter server")]
TimeLimit = Annotated[float, typer.Option(help="seconds for the solver, where only a solver can decide")]
Output = Annotated[Path | None, typer.Option(help="folder for fabric, jobs, plan, entries, picture")]


def design(
    aggregators: Aggregators = 4,
    common: Common = 16,
    ports: Ports = 24,
    workers: Workers = 89,
    capacity: Capacity = "100G",
    layers: Layers = 5,
    scale: Scale = "1",
    gradient_bytes: Gradient = None,
    iterations: Iterations = 3,
    time_limit_s: TimeLimit = 60.0,
    output: Output = None,
) -> None:
    """Design a network: topology and routes with the highest rate for a cluster of optical links (ATRO)."""
    cluster = Cluster(aggregators, common, ports, workers, parse_rate(capacity) * parse_scale(scale), layers)
    job = Job(1, (), (), gradient_bytes or DEFAULT_GRADIENT_BYTES, iterations=iterations)
    run_design(cluster, job, Options(time_limit_s=time_limit_s), output, Screen())
