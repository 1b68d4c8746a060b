"""ARO's evaluation setting (section IV-A): leaf-spines of equal links, and training jobs spread over them at random."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from functools import cache
from math import floor

from inakit.experiments.papers.common.sweep import Trial
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.clos import leaf_spine
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_ina, with_pipelines
from inakit.traffic.wire.frames import FRAGMENT

CAPACITY_BPS = 100e9
HOSTS_PER_LEAF = 24
ROUNDING = 1e-9


@dataclass(frozen=True)
class AroSetting:
    """What the figures vary. `leaves` is also the number of spines, `share` the share of switches with INA.

    Every job has `tasks` parameter servers (PSs), and as many workers of its own as `workers` says.
    """

    jobs: int = 1
    tasks: int = 1
    workers: int = 200
    leaves: int = 24
    share: float = 0.2
    pipelines: int = 4

    @property
    def label(self) -> str:
        """Jobs and tasks of each as in the paper's figures: 2J4T."""
        return f"{self.jobs}J{self.tasks}T"

    @property
    def aggregators(self) -> int:
        """The number of switches with INA, rounded down: the paper has 9 of 48 at 20 %."""
        return floor(2 * self.leaves * self.share + ROUNDING)

    def trial(self, **more: str | int | float) -> Trial:
        """The setting as a trial of a sweep, with further keys."""
        return {**asdict(self), **more}

    def problem(self, seed: int) -> Problem:
        """The problem with INA switches and workers drawn by `seed`; leaves of PSs have INA, and count among them."""
        draw = random.Random(seed)
        bare = network(self.leaves, self.pipelines)
        servers = [f"h{HOSTS_PER_LEAF * i + 1}" for i in range(self.jobs * self.tasks)]
        homes = [bare.tor_of(server) for server in servers]
        others = [switch.name for switch in bare.switches if switch.name not in homes]
        fabric = with_ina(bare, [*homes, *draw.sample(others, max(0, self.aggregators - len(homes)))])
        hosts = [host.name for host in fabric.hosts if host.name not in servers]
        workers = draw.sample(hosts, self.jobs * self.workers)
        jobs = (
            Job(
                number + 1,
                tuple(workers[number * self.workers : (number + 1) * self.workers]),
                tuple(servers[number * self.tasks : (number + 1) * self.tasks]),
                4 * FRAGMENT.values,
            )
            for number in range(self.jobs)
        )
        return Problem(fabric, tuple(jobs), FRAGMENT)


@cache
def network(leaves: int, pipelines: int) -> Fabric:
    """A leaf-spine with as many spines as leaves, 24 hosts per leaf and links of 100 Gbit/s."""
    return with_pipelines(leaf_spine(leaves, leaves, HOSTS_PER_LEAF, capacity_bps=CAPACITY_BPS), pipelines)


SJST = AroSetting()
SJMT = AroSetting(workers=100)
MJMT = AroSetting(workers=100, tasks=2)
