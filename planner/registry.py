"""Every planning method and every scheduler by name. A new one is a module of `planner/methods` and a line here."""

from __future__ import annotations

from functools import partial
from typing import Any

from inakit.planner.core.method import Method, Options
from inakit.planner.core.option_texts import with_options
from inakit.planner.methods import atp, ecmp, grid, lbmm, panama, paring, sharp, spar
from inakit.planner.methods.aro import method as aro
from inakit.planner.methods.aro import variants as aro_literal
from inakit.planner.methods.collectives.planners import COLLECTIVES
from inakit.planner.methods.forest import method as forest
from inakit.planner.methods.goat import method as goat
from inakit.planner.methods.inarouting import method as inarouting
from inakit.planner.methods.inart import method as inart
from inakit.planner.methods.inart import several_trees as inart_forest
from inakit.planner.methods.p4inc_aoi.method import Scheduler, packed, slot_by_slot, without_reconfiguration
from inakit.planner.methods.p4inc_aoi.milp.exact import optimise
from inakit.planner.methods.p4inc_aoi.online.tw_fcfs import FirstCome, TimeWindow
from inakit.planner.methods.soar import method as soar
from inakit.planner.own_planners import own_methods
from inakit.planner.trees import overlay
from inakit.topo.errors import unknown_name

METHODS: dict[str, Method[Any]] = {
    "aro": Method("aggregator-aware routing, exact for any number of tasks (ARO)", aro.AroOptions, aro.plan),
    "aro-unaware": Method("aro as if switches had one pipeline, for comparison (ARO)", Options, aro.plan_unaware),
    "forest": Method(
        "several trees per task, each with a part of the gradient (ours)", forest.ForestOptions, forest.plan
    ),
    "forest-any": Method(
        "any number of trees per task: the best of any plan of trees, proven (ours)", Options, forest.plan_any
    ),
    "atp": Method("aggregation at the ToR only, ECMP (ATP)", atp.AtpOptions, atp.plan),
    "geryon": Method("atp's routes without aggregation (Geryon)", Options, atp.plan_geryon),
    "inart": Method("each gradient summed at most once, at any switch (InArt)", inart.InartOptions, inart.plan),
    "inart-equal": Method("inart with equal shares for all PSs (R-InArt)", inart.InartOptions, inart.plan_equal),
    "inart-forest": Method(
        "inart with several trees for each PS (ours)",
        inart_forest.InartForestOptions,
        inart_forest.plan,
    ),
    "atp-tor": Method("atp without its second level at the PS's ToR (InArt's ATP)", Options, atp.plan_tor),
    "random": Method("each task through one INA switch drawn at random (ARO's RANDOM)", Options, ecmp.plan_random),
    "aggtree": Method("each flow by the least used uplink of its ToR (AggTree)", Options, ecmp.plan_aggtree),
    "aggtree-balanced": Method("aggtree that minds all links of a path (ours)", Options, ecmp.plan_balanced),
    "goat": Method("sub-models, each summed by switches with memory for it (GOAT)", goat.GoatOptions, goat.plan),
    "grid": Method("an aggregator for each worker by linear program, summed once (GRID)", grid.GridOptions, grid.plan),
    "grid-capped": Method(
        "grid whose switches leave to the PS what is too much (GRID)",
        grid.GridOptions,
        grid.plan_capped,
    ),
    "panama": Method(
        "several trees per job by the least loaded links; marks of congestion (PANAMA)",
        panama.PanamaOptions,
        panama.plan,
    ),
    "paring": Method("a Steiner tree of hops over the aggregators (PARING)", paring.ParingOptions, paring.plan),
    "spar": Method("aggregation at the nearest ToR, summed once (SPAR)", overlay.OverlayOptions, spar.plan),
    "soar": Method("the best k switches of a static tree, by dynamic program (SOAR)", soar.SoarOptions, soar.plan),
    "inarouting": Method("routes of all jobs together, rounded and re-routed (INARouting)", Options, inarouting.plan),
    "inarouting-opt": Method("the same by integer program (INARouting-Opt)", Options, inarouting.plan_optimum),
    "sharp": Method("one static tree of the fabric, its root in a switch (SHARP)", Options, sharp.plan),
    "lbmm": Method("no aggregation, load balance min-min (LBMM)", Options, lbmm.plan),
    **COLLECTIVES,
    **{
        name: Method(variant.summary, aro_literal.LiteralOptions, partial(aro_literal.plan_variant, name))
        for name, variant in aro_literal.VARIANTS.items()
    },
}

SCHEDULERS: dict[str, Scheduler] = {
    "noINC-FCFS": Scheduler("first come, first served; no INC", slot_by_slot("noINC-FCFS", FirstCome(inc=False))),
    "INC-FCFS": Scheduler("first come, first served", slot_by_slot("INC-FCFS", FirstCome())),
    "noINC-TW": Scheduler("the paper's time window; no INC", slot_by_slot("noINC-TW", TimeWindow(inc=False))),
    "INC-TW": Scheduler("the paper's time window (Algorithms 1 to 3)", slot_by_slot("INC-TW", TimeWindow())),
    "INC-TW-NoRecon": Scheduler("INC-TW on circuits that never change", without_reconfiguration),
    "pack": Scheduler("our own: jobs packed into slots, again and again", packed),
    "milp": Scheduler("Eqs. (1) to (11), to the optimum or with its gap", optimise),
}
"""Schedulers of optical circuits, by the names of P4INC-AOI's figures."""

_own = own_methods(METHODS)
OWN = _own.methods
"""The planners of `inakit.planner.own`, which take part in every comparison."""
BROKEN = _own.broken
"""For each module of `inakit.planner.own` that cannot be used, by its planner's name, the error."""
METHODS |= OWN


def find_method(name: str) -> Method[Any]:
    """The method of that name, with the options that follow it, as in `soar:switches=8`.

    Raises `InputError`: for an unknown name with the nearest name that there is.
    """
    name, *options = name.split(":")
    if name in BROKEN:
        raise BROKEN[name]
    if name not in METHODS:
        raise unknown_name("planner", name, METHODS)
    return with_options(name, METHODS[name], options) if options else METHODS[name]


def find_scheduler(name: str) -> Scheduler:
    """The scheduler of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in SCHEDULERS:
        raise unknown_name("scheduler", name, SCHEDULERS)
    return SCHEDULERS[name]
