"""Fabrics and jobs from plain Python values: names, numbers, files, networkx graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inakit.experiments.run.scenario import FabricChoice, JobChoice, tell_once
from inakit.planner.core.files import load_jobs
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import FabricError, InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import DEFAULT_CAPACITY_BPS, named_fabric
from inakit.topo.files.fabrics import fabric_of_graph
from inakit.traffic.wire.packet_format import FRAGMENT

if TYPE_CHECKING:
    import networkx as nx

Jobs = Job | Iterable[Job] | str | Path | None
"""One job, several, a file of jobs, or None for one job on all hosts."""


def fabric(
    source: str | Path | Fabric | nx.Graph[Any] = "fattree",
    /,
    *,
    capacity: str | float | tuple[str | float, str | float] | None = None,
    ina: float | str | Sequence[str] | None = None,
    pipelines: int | None = None,
    aggregation_rate_bps: float | None = None,
    chip: str | None = None,
    scale: float = 1.0,
    hosts_per_switch: int = 1,
    seed: int = 0,
    **sizes: Any,
) -> Fabric:
    """Make a network: by the name of a generator, from a file, or from a networkx graph.

    Parameters
    ----------
    source
        The name of a generator (``"fattree"``, ``"leafspine"``, ``"units"``, ``"rails"``, or a network of the papers
        such as ``"aro-figure1"``), a file (``.yml``, ``.json``, ``.graphml``), a networkx graph whose nodes and edges
        have the attributes of a GraphML file (``type``, ``capacity``, …), or a fabric to vary.
    capacity
        The rate of every link, in bit/s or as text (``"20M"``); a pair is a range from which each link's rate is drawn.
    ina
        The switches that aggregate: a share of all, drawn by the seed (``0.5``), or their names.
    pipelines
        The number of pipelines of every switch, 1 to 8. A pipeline sums only packets that enter by its own ports.
    aggregation_rate_bps
        The rate at which every switch sums, in bit/s. Without it, switches sum as fast as links deliver.
    chip
        A chip profile, such as ``"tofino1"``, whose limits apply to all switches.
    scale
        A factor for all rates, such as ``1 / 5000``.
    hosts_per_switch
        The number of hosts per switch, for a graph without hosts.
    seed
        The seed of all random choices.
    **sizes
        The generator's own parameters: ``k=8`` of a fat-tree, ``leaves=4, spines=2, hosts_per_leaf=4`` of a leaf-spine.

    Returns
    -------
    Fabric
        Immutable. Rates are in bit/s.

    Raises
    ------
    FabricError
        An impossible fabric, or a mistake in a file, with its line.
    InputError
        An unknown name; the message suggests the nearest known name.

    Examples
    --------
    >>> import inakit as ina
    >>> ina.fabric("leafspine", leaves=4, spines=2, hosts_per_leaf=4)
    <Fabric leafspine-4x2: 6 switches, 16 hosts, 24 links>
    """
    choice = FabricChoice(
        capacity=":".join(map(str, capacity)) if isinstance(capacity, tuple) else as_text(capacity),
        ina=as_text(ina) if ina is None or isinstance(ina, str | float | int) else ",".join(ina),
        pipelines=pipelines,
        scale=str(scale),
        seed=seed,
        aggregation_rate_bps=aggregation_rate_bps,
        chip=chip,
    )
    return choice.applied_to(base(source, hosts_per_switch, scale, sizes))


def as_text(value: object) -> str | None:
    """A value as command-line text; None stays None."""
    return None if value is None else str(value)


def base(source: str | Path | Fabric | nx.Graph[Any], hosts_per_switch: int, scale: float, sizes: Any) -> Fabric:
    """The fabric of a source before any variation. Raises `InputError`."""
    if isinstance(source, str) and not (choice := FabricChoice(source)).is_file:
        return named_fabric(source, **sizes) if sizes else choice.base()
    if sizes:
        raise InputError(f"{', '.join(sizes)}: only generators take sizes, such as fabric('fattree', k=8)")
    if isinstance(source, str | Path):
        return FabricChoice(str(source), scale=str(scale)).base()
    return source if isinstance(source, Fabric) else from_graph(source, hosts_per_switch, scale)


def from_graph(graph: Any, hosts_per_switch: int, scale: float) -> Fabric:
    """The fabric of a networkx graph. Raises `FabricError` for a graph that is not a fabric."""
    import networkx as nx  # noqa: PLC0415, a fabric by name needs no graph library

    if not isinstance(graph, nx.Graph):
        raise InputError(f"{type(graph).__name__}: expected a name, a file, a Fabric or a networkx graph")
    named = nx.relabel_nodes(graph, {node: str(node) for node in graph})
    name = str(graph.name or "graph")
    try:
        return fabric_of_graph(named, name, Path(name), hosts_per_switch, DEFAULT_CAPACITY_BPS / scale, tell_once)
    except (ValueError, TypeError) as error:
        raise FabricError(f"{name}: {error}") from error


def job(
    fabric: Fabric,
    workers: int | Sequence[str] | None = None,
    servers: int | Sequence[str] = 1,
    *,
    gradient_bytes: int | None = None,
    model: str = "",
    iterations: int = 3,
    weight: float = 1.0,
    arrival_s: float = 0.0,
    compute_s: float = 0.0,
    beside: Iterable[Job] = (),
    seed: int = 0,
) -> Job:
    """Make a training job: its workers send gradients to its parameter servers (PSs) and get the sums back.

    Parameters
    ----------
    fabric
        The network whose hosts take part.
    workers
        Names of hosts, or the number of hosts to draw; by default at most 16.
    servers
        Names of hosts, or their number: hosts whose names begin with "ps" or, if there are none, drawn hosts.
    gradient_bytes
        The size of one worker's gradient, 4 bytes per value; by default a thousandth of the model's, or 548 kB.
    model
        The gradient's layers: the name of a table such as ``"vgg16"``, or a ``.csv`` file.
    iterations
        The number of gradients that every worker sends.
    weight
        How much the job counts where jobs compete: rates are in proportion to weights.
    arrival_s, compute_s
        Seconds from the start of the run to the job's first iteration, and between a sum and the next gradient.
    beside
        Other jobs, whose hosts are not drawn. The job gets the next number after theirs.
    seed
        The seed that draws hosts.

    Returns
    -------
    Job

    Raises
    ------
    InputError
        More hosts than the fabric has, or an unknown host.
    """
    others = tuple(beside)
    counts = JobChoice(
        workers=workers if isinstance(workers, int) else None,
        servers=servers if isinstance(servers, int) else 1,
        gradient_bytes=gradient_bytes,
        iterations=iterations,
        seed=seed,
        model=model,
        taken=frozenset(host for other in others for host in (*other.workers, *other.servers)),
    )
    chosen_servers = counts.choose_servers(fabric) if isinstance(servers, int) else tuple(servers)
    if workers is None or isinstance(workers, int):
        workers = counts.choose_workers(fabric, chosen_servers)
    made = Job(
        max((other.number for other in others), default=0) + 1,
        tuple(workers),
        chosen_servers,
        counts.chosen_bytes(),
        weight,
        arrival_s,
        iterations,
        compute_s,
        model,
    )
    Problem(fabric, (made,), FRAGMENT)  # which checks the job
    return made


def problem_of(fabric: Fabric, jobs: Jobs) -> Problem:
    """The problem of planning these jobs on a fabric. Raises `InputError`."""
    if jobs is None:
        chosen: tuple[Job, ...] = (job(fabric),)
    elif isinstance(jobs, str | Path):
        chosen = load_jobs(Path(jobs))
    else:
        chosen = (jobs,) if isinstance(jobs, Job) else tuple(jobs)
    return Problem(fabric, chosen, FRAGMENT)
