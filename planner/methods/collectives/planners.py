"""The planners of end-host collectives by name: their schemes, with ranks in racks and routes that share links evenly.

`-random` stands for ranks that know nothing of racks and paths by ECMP's hash, `-ecmp` for ranks in racks and the hash,
`-best` for the best order of ranks that a search finds.
"""

from __future__ import annotations

from functools import partial

from inakit.planner.core.method import Method, Options
from inakit.planner.methods.collectives.double_tree import double_tree
from inakit.planner.methods.collectives.halving_doubling import halving_doubling, recursive_doubling
from inakit.planner.methods.collectives.hierarchical import hierarchical, hierarchical_across
from inakit.planner.methods.collectives.method import Ways, plan_quickest
from inakit.planner.methods.collectives.order_search import plan_best_order
from inakit.planner.methods.collectives.ps_sharded import ps_sharded
from inakit.planner.methods.collectives.rank_order import drawn
from inakit.planner.methods.collectives.ring import ring
from inakit.planner.methods.collectives.routes import hashed
from inakit.planner.methods.collectives.scheme import Make


def planner(name: str, summary: str, *makes: Make, ways: Ways | None = None) -> Method[Options]:
    """The planner of the quickest of some schemes."""
    return Method(summary, Options, partial(plan_quickest, makes, name, ways or Ways()))


def searching(name: str, scheme: str, *makes: Make) -> Method[Options]:
    """The planner of the quickest of some schemes, with the best order of ranks that is found."""
    return Method(
        f"{scheme} with the best order of ranks found", Options, partial(plan_best_order, makes, name, Ways())
    )


HALVING = halving_doubling, recursive_doubling
HIERARCHICAL = hierarchical, hierarchical_across

COLLECTIVES = {
    "ring": planner("ring", "end hosts only: a ring through all racks (Patarasuk and Yuan; NCCL)", ring),
    "ring-ecmp": planner("ring-ecmp", "ring with paths by ECMP's hash", ring, ways=Ways(routes=hashed)),
    "ring-random": planner("ring-random", "ring of random order, with ECMP", ring, ways=Ways(drawn, hashed)),
    "halving-doubling": planner(
        "halving-doubling", "end hosts only: exchange of halves, or of all if that is short (Thakur et al.)", *HALVING
    ),
    "halving-doubling-best": searching("halving-doubling-best", "halving-doubling", *HALVING),
    "double-tree": planner("double-tree", "end hosts only: two binary trees (Sanders et al.; NCCL)", double_tree),
    "double-tree-best": searching("double-tree-best", "double-tree", double_tree),
    "hierarchical": planner("hierarchical", "end hosts only: rings in racks, and among them (NCCL)", *HIERARCHICAL),
    "ps-sharded": planner("ps-sharded", "end hosts only: a PS in every worker (BytePS)", ps_sharded),
}
