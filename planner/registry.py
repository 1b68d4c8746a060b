"""Every planning method and every scheduler by name. A new one is a module of `planner/methods` and a line here.

A module is imported when its planner is used, not when planners are listed. A user-defined planner needs no line here:
`inakit.planner.own_planners` finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from inakit.planner.core.method import Method, Options, with_options
from inakit.planner.own_planners import OwnPlanner, is_path, name_of, of_folder, of_packages, of_path, with_clashes
from inakit.topo.errors import InputError, unknown_name

if TYPE_CHECKING:
    from inakit.planner.methods.p4inc_aoi.schedulers import Scheduler


def imported(function: str, beside: str = "") -> Any:
    """The object `module:function` below `inakit.planner.methods`, or the one called `beside` in that module."""
    module, _, name = function.partition(":")
    return getattr(import_module(f"inakit.planner.methods.{module}"), beside or name)


@dataclass(frozen=True)
class Line:
    """A planner or scheduler of the tables below.

    - `summary`: its line in `inakit planners`
    - `function`: its place, as `module:function` below `inakit.planner.methods`
    - `options`: the type of its options, by its name in that module; empty for the plain `Options`
    """

    summary: str
    function: str
    options: str = ""

    @cached_property
    def method(self) -> Method[Any]:
        options = imported(self.function, self.options) if self.options else Options
        return Method(self.summary, options, imported(self.function))

    @cached_property
    def scheduler(self) -> Scheduler:
        made: Scheduler = imported("p4inc_aoi.schedulers:Scheduler")(self.summary, imported(self.function))
        return made


KIT: Mapping[str, Line] = {
    "aro": Line("aggregator-aware routing, exact for any number of tasks (ARO)", "aro.aro:plan", "AroOptions"),
    "aro-unaware": Line("aro as if switches had one pipeline, for comparison (ARO)", "aro.aro:plan_unaware"),
    "forest": Line("several trees per task, each with a part of the gradient (ours)", "forest:plan", "ForestOptions"),
    "forest-any": Line("any number of trees per task: the best of any plan of trees, proven (ours)", "forest:plan_any"),
    "atp": Line("aggregation at the ToR only, ECMP (ATP)", "atp:plan", "AtpOptions"),
    "geryon": Line("atp's routes without aggregation (Geryon)", "atp:plan_geryon"),
    "inart": Line("each gradient summed at most once, at any switch (InArt)", "inart.inart:plan", "InartOptions"),
    "inart-equal": Line("inart with equal shares for all PSs (R-InArt)", "inart.inart:plan_equal", "InartOptions"),
    "inart-raw": Line("inart as printed: one randomised rounding, no repair (InArt)", "inart.inart_raw:plan"),
    "inart-forest": Line(
        "inart with several trees for each PS (ours)", "inart.inart_forest:plan", "InartForestOptions"
    ),
    "atp-tor": Line("sums at the workers' ToRs only, sent by the least loaded links (InArt's ATP)", "atp:plan_tor"),
    "random": Line("each task through one INA switch drawn at random (ARO's RANDOM)", "ecmp:plan_random"),
    "aggtree": Line("each flow by the least used uplink of its ToR (AggTree)", "ecmp:plan_aggtree"),
    "aggtree-balanced": Line("aggtree with the loads of all links of a path (ours)", "ecmp:plan_balanced"),
    "goat": Line("goat-krgs, repaired and improved by a local search (ours)", "goat.goat:plan", "GoatOptions"),
    "goat-krgs": Line(
        "sub-models, each summed by switches with memory for it (GOAT)", "goat.goat:plan_krgs", "KrgsPlanOptions"
    ),
    "grid": Line("aggregators by linear program, then routes; summed once (GRID)", "grid:plan", "GridOptions"),
    "grid-aro": Line("grid where a PS takes in 100 gradients (ARO's GRID)", "grid:plan_of_aro", "GridOptions"),
    "panama": Line(
        "several trees per job by the least loaded links; marks of congestion (PANAMA)", "panama:plan", "PanamaOptions"
    ),
    "paring": Line("a Steiner tree of hops over the aggregators (PARING)", "paring:plan", "ParingOptions"),
    "spar": Line("aggregation at the nearest ToR, summed once (SPAR)", "spar:plan", "OverlayOptions"),
    "soar": Line("the best k switches of a static tree, by dynamic program (SOAR)", "soar:plan", "SoarOptions"),
    "inarouting": Line("routes of all jobs together, rounded and re-routed (INARouting)", "inarouting:plan"),
    "inarouting-opt": Line("routes of all jobs by integer program (INARouting-Opt)", "inarouting:plan_optimum"),
    "sharp": Line("one static tree of the fabric, its root in a switch (SHARP)", "sharp:plan"),
    "lbmm": Line("no aggregation, load balance min-min (LBMM)", "lbmm:plan"),
    "ring": Line("end hosts only: a ring through all racks (Patarasuk and Yuan; NCCL)", "collectives:plan_ring"),
    "ring-ecmp": Line("ring with paths by ECMP's hash", "collectives:plan_ring_ecmp"),
    "ring-random": Line("ring of random order, with ECMP", "collectives:plan_ring_random"),
    "halving-doubling": Line(
        "end hosts only: exchange of halves, or of short gradients whole (Thakur et al.)",
        "collectives:plan_halving_doubling",
    ),
    "halving-doubling-best": Line(
        "halving-doubling with the best order of ranks found", "collectives:plan_halving_doubling_best"
    ),
    "double-tree": Line("end hosts only: two binary trees (Sanders et al.; NCCL)", "collectives:plan_double_tree"),
    "double-tree-best": Line("double-tree with the best order of ranks found", "collectives:plan_double_tree_best"),
    "hierarchical": Line("end hosts only: rings in racks, and among them (NCCL)", "collectives:plan_hierarchical"),
    "ps-sharded": Line("end hosts only: a PS in every worker (BytePS)", "collectives:plan_ps_sharded"),
    "aro-acc": Line(
        "ARO with the paper's prunings and rates in steps (SRO, APP, QSR)",
        "aro.accelerations:plan_acc",
        "AcceleratedOptions",
    ),
    "aro-sro": Line("ARO with SRO, QSR", "aro.accelerations:plan_sro", "AcceleratedOptions"),
    "aro-app": Line("ARO with APP, QSR", "aro.accelerations:plan_app", "AcceleratedOptions"),
    "aro-raw": Line("the paper's ARO model as printed, exact", "aro.accelerations:plan_raw", "LiteralOptions"),
    "aro-qsr": Line("the paper's ARO model as printed, with QSR", "aro.accelerations:plan_qsr", "LiteralOptions"),
}
"""The kit's planners, in the order in which they are listed."""

SCHEDULERS: Mapping[str, Line] = {
    "noINC-FCFS": Line("first come, first served; no INC", "p4inc_aoi.schedulers:no_inc_first_come"),
    "INC-FCFS": Line("first come, first served", "p4inc_aoi.schedulers:inc_first_come"),
    "noINC-FCFS-passing": Line(
        "noINC-FCFS; others pass a job that cannot start", "p4inc_aoi.schedulers:no_inc_passing"
    ),
    "INC-FCFS-passing": Line("INC-FCFS; others pass a job that cannot start", "p4inc_aoi.schedulers:inc_passing"),
    "noINC-TW": Line("the paper's time window; no INC", "p4inc_aoi.schedulers:no_inc_time_window"),
    "INC-TW": Line("the paper's time window (Algorithms 1 to 3)", "p4inc_aoi.schedulers:inc_time_window"),
    "INC-TW-NoRecon": Line("INC-TW on circuits that never change", "p4inc_aoi.schedulers:without_reconfiguration"),
    "pack": Line("ours: jobs packed into slots, in many rounds", "p4inc_aoi.schedulers:packed"),
    "milp": Line("Eqs. (1) to (11), to the optimum or with its gap", "p4inc_aoi.milp:optimise"),
}
"""Schedulers of optical circuits, by the names of P4INC-AOI's figures."""


class OwnPlanners(Mapping[str, OwnPlanner]):
    """User-defined planners by name, which take part in every comparison. Finding them runs none of their code."""

    @cached_property
    def in_folder(self) -> dict[str, OwnPlanner]:
        """The planners of `planner/own`."""
        return with_clashes(of_folder(), KIT)

    @cached_property
    def all(self) -> dict[str, OwnPlanner]:
        """The planners of `planner/own`, then those of installed packages, then the added ones."""
        return with_clashes((*of_folder(), *of_packages()), KIT)

    @cached_property
    def added(self) -> list[str]:
        """The paths that were added, in order."""
        return []

    def add(self, path: str) -> str:
        """Add the planner of a file or a folder for this process, like those of `planner/own`; return its name."""
        own = of_path(path, KIT)
        if path not in self.added:
            self.added.append(path)
        there = self.all.get(own.name, own)
        self.all[own.name] = own if there.root == own.root else with_clashes((there, own), KIT)[own.name]
        return own.name

    def __getitem__(self, name: str) -> OwnPlanner:
        return self.all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)


OWN = OwnPlanners()


class Methods(Mapping[str, Method[Any]]):
    """The kit's methods, then user-defined ones, by name. A method is imported on first use."""

    def __getitem__(self, name: str) -> Method[Any]:
        return KIT[name].method if name in KIT else OWN[name].method

    def __contains__(self, name: object) -> bool:
        return name in KIT or name in OWN

    def __iter__(self) -> Iterator[str]:
        return chain(KIT, (name for name in OWN if name not in KIT))

    def __len__(self) -> int:
        return len(KIT.keys() | OWN.keys())


METHODS = Methods()


def find_method(text: str) -> Method[Any]:
    """Return the method of a name or a path, with the options that follow it, as in `soar:switches=8`.

    Raises `InputError`: for an unknown name with the nearest known name, for a user-defined planner with its mistake.
    """
    name, *options = text.split(":")
    own = find_own(text)
    if own is None and name not in KIT:
        raise unknown_name("planner", name, METHODS)
    method = KIT[name].method if own is None else own.method
    return with_options(name, method, options) if options else method


def find_own(text: str) -> OwnPlanner | None:
    """The user-defined planner of a name or a path, with or without options; None for another name.

    Raises `InputError` for a path without a planner.
    """
    name = text.partition(":")[0]
    if is_path(name):
        return of_path(name, KIT)
    return OWN.in_folder.get(name) if name in KIT else OWN.get(name)


def is_known(text: str) -> bool:
    """Whether a name or a path, with or without options, refers to a planner."""
    return is_path(text) or text.partition(":")[0] in METHODS


def by_name(texts: Iterable[str]) -> dict[str, str]:
    """The given names and paths, keyed by the names under which they are shown, each once.

    Raises `InputError` for two planners with one name.
    """
    found: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        if (other := found.setdefault(name_of(text), text)) != text:
            raise InputError(f"planners {other} and {text} have the same name: rename one of the files")
    return found


def find_scheduler(name: str) -> Scheduler:
    """Return the scheduler of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in SCHEDULERS:
        raise unknown_name("scheduler", name, SCHEDULERS)
    return SCHEDULERS[name].scheduler
