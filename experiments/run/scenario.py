"""Builds a `Problem` from command-line options: the fabric, and the jobs that train on it. Writes jobs to a file."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from inakit.planner.core.files import load_jobs
from inakit.planner.core.models import BYTES_PER_PARAMETER, find_model
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.unfolding import unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import DEFAULT_CAPACITY_BPS, FABRICS, named_fabric
from inakit.topo.fabric.variations import (
    with_aggregators,
    with_capacities,
    with_capacity,
    with_chip,
    with_ina,
    with_pipelines,
    with_scale,
)
from inakit.topo.files.fabric_records import find_chip
from inakit.topo.files.fabrics import FABRIC_SUFFIXES, flow, load_fabric
from inakit.topo.files.quantities import parse_rate
from inakit.traffic.wire.packet_format import FRAGMENT

DEFAULT_GRADIENT_BYTES = 548_000
"""VGG19's 548 MB, scaled down a thousand times as InArt does (section 5.3.1)."""

MODEL_SCALE = 1000
"""The factor by which the gradient of a named model is scaled down, unless its size is given."""

DEFAULT_WORKERS = 16

AT_SERVERS = "+ps"
"""A suffix to a share of INA switches: the share includes the PSs' ToRs, as in ARO's evaluation (section IV-A)."""


@dataclass(frozen=True)
class FabricChoice:
    """The command-line options of the fabric. `topo` is a file, or a name in `FABRICS`.

    A name can be followed by the generator's options: `units:units=6,servers=8,ports=2,port_bps=40M`.
    """

    topo: str = "fattree"
    k: int | None = None
    leaves: int | None = None
    spines: int | None = None
    hosts_per_leaf: int | None = None
    capacity: str | None = None
    ina: str | None = None
    pipelines: int | None = None
    scale: str = "1"
    seed: int = 0
    aggregation_rate_bps: float | None = None
    chip: str | None = None

    def build(self) -> Fabric:
        """Build the fabric and apply all options to it. Raises `InputError`."""
        return self.applied_to(self.base())

    def applied_to(self, fabric: Fabric) -> Fabric:
        """Apply the options of links, INA switches, chips, pipelines and scale to a fabric. Raises `InputError`."""
        if self.capacity is not None:
            fabric = self.with_chosen_capacity(fabric, self.capacity)
        if self.ina is not None:
            fabric = self.with_chosen_ina(fabric, self.ina)
        if self.chip is not None:
            fabric = with_chip(fabric, find_chip(self.chip))
        if self.pipelines is not None:
            tell_of_own_pipelines(fabric, self.pipelines)
            fabric = with_pipelines(fabric, self.pipelines)
        if self.aggregation_rate_bps is not None:
            fabric = with_aggregators(fabric, rate_bps=self.aggregation_rate_bps)
        return with_scale(fabric, parse_scale(self.scale))

    @property
    def gives_rates(self) -> bool:
        """Whether the user gave the rates of links, by a file, an option, or a scale."""
        options = {} if self.is_file else own_options(self.topo.partition(":")[2])
        named = any(name.endswith("_bps") for name in options)
        return self.is_file or self.capacity is not None or parse_scale(self.scale) != 1 or named

    @property
    def is_file(self) -> bool:
        """Whether `topo` is a file: by its suffix, or because a file of this name exists."""
        return self.topo.lower().endswith(FABRIC_SUFFIXES) or (
            self.topo.partition(":")[0] not in FABRICS and Path(self.topo).is_file()
        )

    def base(self) -> Fabric:
        """The fabric before the options of links, INA switches and pipelines. Raises `InputError`, `FabricError`."""
        if self.is_file:
            # Rates that a map lacks are chosen so that the links have the default rate after scaling.
            return load_fabric(Path(self.topo), tell_once, DEFAULT_CAPACITY_BPS / parse_scale(self.scale))
        sizes = {"k": self.k, "leaves": self.leaves, "spines": self.spines, "hosts_per_leaf": self.hosts_per_leaf}
        given: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
        topo, _, options = self.topo.partition(":")
        if topo in FABRICS:
            # `make` always passes K; fabrics without this size ignore it.
            known = inspect.signature(FABRICS[topo]).parameters
            given = {name: size for name, size in given.items() if name in known}
        return named_fabric(topo, **given | own_options(options))

    def with_chosen_capacity(self, fabric: Fabric, capacity: str) -> Fabric:
        """The fabric with one rate for every link ("20M"), or with rates drawn between two values ("10M:30M")."""
        low, colon, high = capacity.partition(":")
        if colon:
            return with_capacities(fabric, parse_rate(low), parse_rate(high), self.seed)
        return with_capacity(fabric, parse_rate(low))

    def with_chosen_ina(self, fabric: Fabric, ina: str) -> Fabric:
        """The fabric with INA on a share of the switches ("0.2"), or on named switches ("leaf1,spine1")."""
        try:
            share = float(ina.removesuffix(AT_SERVERS))
        except ValueError:
            return with_ina(fabric, tuple(name.strip() for name in ina.split(",")))
        return with_ina(fabric, share=share, seed=self.seed)

    def with_ina_at(self, fabric: Fabric, servers: Collection[str]) -> Fabric:
        """With a share such as "0.2+ps": the fabric with this share of INA switches, including the servers' ToRs."""
        if self.ina is None or not self.ina.endswith(AT_SERVERS):
            return fabric
        tors = sorted({fabric.tor_of(server) for server in servers})
        return with_ina(fabric, tors, share=float(self.ina.removesuffix(AT_SERVERS)), seed=self.seed)


def tell_of_own_pipelines(fabric: Fabric, pipelines: int) -> None:
    """Tell the user that `pipelines` replaces the fabric's own groups of ports, if it has any."""
    own = [switch.name for switch in fabric.switches if len(switch.pipelines) > 1]
    if own:
        which = own[0] if len(own) == 1 else f"{own[0]} and {len(own) - 1} more"
        tell_once(
            f"fabric '{fabric.name}': the {pipelines} pipelines that you ask for replace its own groups of ports "
            f"({which}); omit pipelines to keep them"
        )


@cache
def tell_once(line: str) -> None:
    """Print a line on standard error, once per line, however often a file is read."""
    print(line, file=sys.stderr)


def own_options(text: str) -> dict[str, float]:
    """Parse a generator's options such as `servers=8,port_bps=40M`: integers and rates. Raises `InputError`."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"option '{part}' of a fabric: expected a name and a value such as servers=8")
        found[name.strip()] = int(value) if value.strip().isdigit() else parse_rate(value)
    return found


@dataclass(frozen=True)
class JobChoice:
    """The command-line options of the jobs. A file describes any number of jobs; without a file there is one job.

    The parameter servers are the first `servers` hosts whose names begin with "ps"; on a fabric without such names the
    seed draws `servers` hosts. It draws `workers` of the other hosts. Hosts in `taken` are never drawn. `model` is one
    of `inakit.planner.core.models`.
    """

    file: Path | None = None
    workers: int | None = None
    servers: int = 1
    gradient_bytes: int | None = None
    iterations: int = 3
    seed: int = 0
    model: str = ""
    taken: frozenset[str] = frozenset()

    @property
    def gives_size(self) -> bool:
        """Whether the user gave the size of gradients."""
        return self.file is not None or self.gradient_bytes is not None

    def build(self, fabric: Fabric) -> tuple[Job, ...]:
        """The jobs. Raises `InputError`."""
        if self.file is not None:
            return load_jobs(self.file)
        servers = self.choose_servers(fabric)
        workers = self.choose_workers(fabric, servers)
        return (Job(1, workers, servers, self.chosen_bytes(), iterations=self.iterations, model=self.model),)

    def choose_workers(self, fabric: Fabric, servers: tuple[str, ...]) -> tuple[str, ...]:
        """Draw the workers from the hosts other than the servers. Raises `InputError`."""
        others = [host for host in self.free(fabric) if host not in servers]
        count = min(len(others), DEFAULT_WORKERS) if self.workers is None else self.workers
        if not 1 <= count <= len(others):
            raise InputError(
                f"{count} workers: fabric '{fabric.name}' has {len(others)} hosts besides the {len(servers)} parameter "
                f"server{'s' * (len(servers) > 1)}; choose 1 to {len(others)}"
            )
        chosen = set(random.Random(self.seed).sample(others, count))
        return tuple(host for host in others if host in chosen)

    def free(self, fabric: Fabric) -> list[str]:
        """The hosts that can be drawn, in the fabric's order."""
        return [host.name for host in fabric.hosts if host.name not in self.taken]

    def chosen_bytes(self) -> int:
        """The gradient's size in bytes: as given, else the model's, scaled to whole parameters, else the default."""
        if self.gradient_bytes is not None:
            return self.gradient_bytes
        if self.model:
            return BYTES_PER_PARAMETER * -(-find_model(self.model).parameters // MODEL_SCALE)
        return DEFAULT_GRADIENT_BYTES

    def choose_servers(self, fabric: Fabric) -> tuple[str, ...]:
        """The parameter servers: hosts whose names begin with "ps", else hosts that the seed draws.

        If some host cannot reach a drawn server, the servers are drawn again among the hosts that all others reach.
        """
        hosts = self.free(fabric)
        named = [host for host in hosts if host.startswith("ps")]
        if not 1 <= self.servers < len(hosts):
            raise InputError(
                f"{self.servers} parameter servers: fabric '{fabric.name}' has {len(hosts)} hosts; "
                f"choose 1 to {len(hosts) - 1}, so that one host remains as a worker"
            )
        if named:
            return tuple(named[: self.servers])
        drawn = random.Random(self.seed).sample(hosts, self.servers)
        if all(reached_by_all(fabric, server) for server in drawn):
            return tuple(drawn)
        reached = [host for host in hosts if reached_by_all(fabric, host)]
        return tuple(random.Random(self.seed).sample(reached, self.servers) if len(reached) >= self.servers else drawn)


def reached_by_all(fabric: Fabric, host: str) -> bool:
    """Whether every other host has a path to this host."""
    return fabric.host_names <= unfold(fabric, host).next_hops.keys()


def parse_scale(text: str) -> float:
    """Parse the factor of all rates, such as "1/5000" or "0.0002". Raises `InputError`."""
    try:
        factor = float(Fraction(text.strip()))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise InputError(f"scale '{text}': expected a fraction such as 1/5000") from error
    if not factor > 0:
        raise InputError(f"scale {text}: it must be greater than 0")
    return factor


def build_problem(fabric: FabricChoice, jobs: JobChoice) -> Problem:
    """Build the problem from both choices. Raises `InputError`."""
    built = fabric.build()
    chosen = jobs.build(built)
    servers = [server for job in chosen for server in job.servers]
    return Problem(fabric.with_ina_at(built, servers), chosen, FRAGMENT)


COMMENTS = {
    "number": "1 to 65535; without it, the job's place in this list",
    "workers": "hosts that each compute a gradient in every iteration",
    "servers": "parameter servers: hosts that receive the sums; several servers share the gradient",
    "gradient_bytes": "size of one worker's gradient, 4 bytes per value",
    "weight": "how much the job counts where jobs compete: rates are in proportion to weights",
    "arrival_s": "seconds from the start of the run to the job's first iteration",
    "iterations": "number of times that the workers send a gradient and wait for the sum",
    "compute_s": "seconds that workers compute between a sum and their next gradient",
    "model": "the gradient's layers: a table of planner/models such as vgg16, or a .csv file",
}
"""The meaning of each key of a job, in the order of the file."""


def jobs_text(problem: Problem, topo: str) -> str:
    """The problem's jobs as commented YAML, from which `inakit.planner.core.files.load_jobs` reads equal jobs."""
    lines = [
        f"# Jobs on fabric '{problem.fabric.name}'. Plan them: inakit plan --topo {topo} --jobs THIS_FILE",
        "# Add an item to the list for each further job. docs/files.md describes the format.",
        "version: 1",
        "jobs:",
    ]
    for job in problem.jobs:  # an item of the list, with one key per line
        values = ((name, getattr(job, name)) for name in COMMENTS)
        written = {name: flow(list(value) if isinstance(value, tuple) else value) for name, value in values}
        keys = [f"    {name}: {written[name]}  # {comment}" for name, comment in COMMENTS.items()]
        lines += ["  - " + keys[0].lstrip(), *keys[1:]]
    return "\n".join(lines) + "\n"
