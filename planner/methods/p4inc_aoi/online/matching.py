"""Which jobs use INC, and where: weighted bipartite matching of units and jobs (Algorithm 2, lines 1 to 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inakit.planner.methods.p4inc_aoi.problem.system import PlacedJob

FloatArray = NDArray[np.float64]

LOCAL = 1e-3
"""The weight of a bit that INC takes off a switch only, where one that it takes off the interconnect has the weight 1.
"""


def assign_inc(jobs: Sequence[PlacedJob], capacity: Mapping[str, int]) -> dict[int, str]:
    """By job, the unit whose INC it uses.

    In each round a unit gets the job, and a job the unit, that together save most. `capacity` says how many more jobs
    can use INC in each unit (N_INC less those that do).
    """
    found: dict[int, str] = {}
    left = {unit: count for unit, count in capacity.items() if count > 0}
    waiting = [job for job in jobs if any(unit in left for unit in job.workers)]
    for _ in range(max(left.values(), default=0)):
        wanted = {unit for job in waiting for unit in job.workers}
        units = [unit for unit, count in left.items() if count > 0 and unit in wanted]
        matched = match(weights(units, waiting))
        for row, column in matched:
            found[waiting[column].number] = units[row]
            left[units[row]] -= 1
        waiting = [job for job in waiting if job.number not in found]
        if not matched:
            break
    return found


def weights(units: Sequence[str], jobs: Sequence[PlacedJob]) -> FloatArray:
    """What INC in a unit (row) saves for a job (column), in bits."""
    rows = {unit: row for row, unit in enumerate(units)}
    found = np.zeros((len(units), len(jobs)))
    for column, job in enumerate(jobs):
        for unit in job.workers:
            if unit in rows:
                found[rows[unit], column] = saved_bits(job, unit)
    return found


def saved_bits(job: PlacedJob, unit: str) -> float:
    """The bits that do not cross the interconnect when `unit` sums. Those that only a switch is spared count little."""
    without, within = (sum(weight for _, weight in job.flows(inc)) for inc in (None, unit))
    return job.bits * (without - within + LOCAL * job.workers[unit])


def match(weight: FloatArray) -> list[tuple[int, int]]:
    """The matching of rows and columns with the greatest weight. Pairs without weight are left out.

    Shortest augmenting paths, one row after another (the Hungarian method).
    """
    rows, columns = weight.shape
    cost = np.hstack([-weight, np.zeros((rows, rows))])  # one more column for each row that stays alone
    row_price, column_price = np.zeros(rows), np.zeros(columns + rows)
    owner = np.full(columns + rows, -1)
    for row in range(rows):
        augment(cost, row, row_price, column_price, owner)
    pairs = [(int(row), column) for column, row in enumerate(owner[:columns]) if row >= 0]
    return sorted((row, column) for row, column in pairs if weight[row, column] > 0)


def augment(
    cost: FloatArray, row: int, row_price: FloatArray, column_price: FloatArray, owner: NDArray[np.int64]
) -> None:
    """Find the cheapest path from `row` to a free column, and shift the columns on it. Prices stay dual feasible."""
    distance = np.full(cost.shape[1], np.inf)
    previous = np.full(cost.shape[1], -1)
    reached = np.zeros(cost.shape[1], dtype=bool)
    current, base, last = row, 0.0, -1
    while True:
        candidate = base + cost[current] - row_price[current] - column_price
        better = ~reached & (candidate < distance)
        distance[better], previous[better] = candidate[better], last
        last = int(np.where(reached, np.inf, distance).argmin())
        base = distance[last]
        reached[last] = True
        if owner[last] < 0:
            break
        current = int(owner[last])
    inside = reached.copy()
    inside[last] = False
    row_price[row] += base
    row_price[owner[inside]] += base - distance[inside]
    column_price[reached] += distance[reached] - base
    while last >= 0:
        before = int(previous[last])
        owner[last] = owner[before] if before >= 0 else row
        last = before
