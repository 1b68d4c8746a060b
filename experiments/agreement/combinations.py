"""The combinations of network, planner, slot policy and mode whose runs are compared between two worlds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from inakit.experiments.emulate.defaults import Free
from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.policies import POLICIES
from inakit.topo.errors import InputError

ONE_JOB = JobChoice()
"""One parameter server, and all other hosts as workers, but no more than 16."""
INART_JOB = JobChoice(workers=50, servers=4)
"""The job of InArt's emulation (section 5.3)."""


@dataclass(frozen=True)
class Network:
    """A fabric and its jobs. With `patch_panel` the optical links of the fabric go through one circuit switch."""

    fabric: FabricChoice
    jobs: JobChoice = ONE_JOB
    patch_panel: bool = False


NETWORKS = {
    "fattree-4": Network(FabricChoice("fattree", k=4)),
    "fattree-4-mixed": Network(FabricChoice("fattree", k=4, capacity="10M:20M")),
    "fattree-6": Network(FabricChoice("fattree", k=6)),
    "fattree-6-inart": Network(FabricChoice("fattree", k=6, aggregation_rate_bps=9e6), INART_JOB),
    "leafspine-4x2": Network(FabricChoice("leafspine", leaves=4, spines=2)),
    "leafspine-8x8": Network(FabricChoice("leafspine", leaves=8, spines=8)),
    "aro-figure1": Network(FabricChoice("aro-figure1")),
    "aro-figure3a": Network(FabricChoice("aro-figure3a")),
    "pipelines": Network(FabricChoice("pipelines")),
    "inart-testbed": Network(FabricChoice("inart-testbed"), JobChoice(servers=2)),
    "goat-testbed": Network(FabricChoice("goat-testbed")),
    "units": Network(FabricChoice("units")),
    "units-panel": Network(FabricChoice("units"), patch_panel=True),
}


@dataclass(frozen=True)
class Combination:
    """A plan to be run: `network` is a name in `NETWORKS`; without a `policy` the plan keeps its method's."""

    network: str
    planner: str
    policy: str = ""
    mode: str = "reliable"

    def __str__(self) -> str:
        policy = f"+{self.policy}" if self.policy else ""
        return f"{self.network} {self.planner}{policy}{' replay' if self.mode == 'replay' else ''}"

    def emulation(self, switch: str) -> Emulation:
        """The emulation on `switch`, whose link rates are made to fit this machine."""
        network = NETWORKS[self.network]
        return Emulation(
            build_problem(network.fabric, network.jobs),
            (self.planner,),
            switch,
            self.mode,
            policies=(self.policy,) if self.policy else (),
            patch_panel=network.patch_panel,
            free=Free(rates=True),
        )


def on(
    network: str, planners: str, policies: Sequence[str] = ("",), modes: Sequence[str] = ("reliable",)
) -> Iterator[Combination]:
    """Every combination of these on a network; `planners` are separated by spaces."""
    for planner, policy, mode in product(planners.split(), policies, modes):
        yield Combination(network, planner, policy, mode)


COMBINATIONS = (
    *on("fattree-4", "aro atp lbmm forest inart inart-forest goat grid-capped paring spar random aggtree geryon"),
    *on("fattree-4", "aro", tuple(POLICIES)),
    *on("fattree-4", "atp", ("goat", "atp", "switchml")),
    *on("fattree-4", "aro atp lbmm", modes=("replay",)),
    *on("fattree-4-mixed", "aro atp forest lbmm"),
    *on("fattree-6", "aro atp aggtree-balanced"),
    *on("fattree-6-inart", "inart atp-tor lbmm"),
    *on("leafspine-4x2", "aro goat spar lbmm"),
    *on("leafspine-4x2", "aro", modes=("replay",)),
    *on("leafspine-8x8", "aro atp forest goat paring"),
    *on("aro-figure1", "aro atp lbmm"),
    *on("aro-figure1", "aro", ("esa", "p4inc-aoi")),
    *on("aro-figure3a", "aro atp"),
    *on("pipelines", "aro aro-unaware"),
    *on("inart-testbed", "inart atp lbmm"),
    *on("inart-testbed", "inart", modes=("replay",)),
    *on("goat-testbed", "goat atp geryon"),
    *on("units", "aro lbmm"),
    *on("units-panel", "aro lbmm"),
    *on("units-panel", "aro", modes=("replay",)),
)
"""The full list."""

SHORT = (*on("aro-figure1", "aro lbmm"), *on("aro-figure1", "aro", modes=("replay",)), *on("units-panel", "aro"))
"""A list for a first look, in some seconds for each."""


def chosen(pattern: str, *, short: bool) -> tuple[Combination, ...]:
    """The combinations of one of the two lists whose names contain `pattern`, in which `*` and `?` stand for any.

    Raises `InputError` if there is none.
    """
    found = tuple(each for each in (SHORT if short else COMBINATIONS) if fnmatchcase(str(each), f"*{pattern}*"))
    if not found:
        names = "a part of a name is expected, such as 'fattree-4 aro', 'replay' or 'leafspine*forest'"
        raise InputError(f"--only '{pattern}' fits no combination: {names}; networks are {', '.join(NETWORKS)}")
    return found
