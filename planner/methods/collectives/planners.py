"""The planners of end-host collectives: their schemes, with ranks in racks and routes that share links evenly.

`-random` stands for ranks that know nothing of racks and paths by ECMP's hash, `-ecmp` for ranks in racks and the hash,
`-best` for the best order of ranks that a search finds.
"""

from __future__ import annotations

from functools import partial

from inakit.planner.methods.collectives.double_tree import double_tree
from inakit.planner.methods.collectives.halving_doubling import halving_doubling, recursive_doubling
from inakit.planner.methods.collectives.hierarchical import hierarchical, hierarchical_across
from inakit.planner.methods.collectives.method import Ways, plan_quickest
from inakit.planner.methods.collectives.order_search import plan_best_order
from inakit.planner.methods.collectives.ps_sharded import ps_sharded
from inakit.planner.methods.collectives.rank_order import drawn
from inakit.planner.methods.collectives.ring import ring
from inakit.planner.methods.collectives.routes import hashed

HALVING = halving_doubling, recursive_doubling

plan_ring = partial(plan_quickest, (ring,), "ring", Ways())
plan_ring_ecmp = partial(plan_quickest, (ring,), "ring-ecmp", Ways(routes=hashed))
plan_ring_random = partial(plan_quickest, (ring,), "ring-random", Ways(drawn, hashed))
plan_halving_doubling = partial(plan_quickest, HALVING, "halving-doubling", Ways())
plan_halving_doubling_best = partial(plan_best_order, HALVING, "halving-doubling-best", Ways())
plan_double_tree = partial(plan_quickest, (double_tree,), "double-tree", Ways())
plan_double_tree_best = partial(plan_best_order, (double_tree,), "double-tree-best", Ways())
plan_hierarchical = partial(plan_quickest, (hierarchical, hierarchical_across), "hierarchical", Ways())
plan_ps_sharded = partial(plan_quickest, (ps_sharded,), "ps-sharded", Ways())
