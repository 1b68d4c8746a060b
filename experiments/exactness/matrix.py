"""`inakit exactness`: every slot policy, over several levels of aggregation, under every condition, on real switches.

On the switch `virtual`, switches run `p4/ina.p4` in this process, as target `fast` runs it in the kernel, and time is
the network's own. That needs no root, and every run gives the same result again. On a switch target each cell has a
Mininet network of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import product

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from inakit.experiments.exactness.attempt import Cell, Tried, attempt, weight
from inakit.experiments.exactness.conditions import CONDITIONS
from inakit.experiments.sweeps.rows import Row, measure_rows
from inakit.planner.core.policies import POLICIES
from inakit.planner.install.data_plane_program import INA, DataPlaneProgram
from inakit.topo.errors import InputError, unknown_name

LEVELS = (1, 2, 3)
COMPARED = "no loss", "1 % loss"
COVERED = "every element of every sum at every worker"
COUNTED, NOT_COUNTED = ", and the number of workers that each sum says it covers", "; sums do not count their workers"
LONG = 1_000_000
"""How many fragments the long form has on each switch, over all its cells."""


def cells(
    policies: Sequence[str], levels: Sequence[int], conditions: Sequence[str], switches: Sequence[str] = ("virtual",)
) -> list[Cell]:
    """The cells of all combinations. Raises `InputError` for an unknown policy or condition."""
    check_known("slot policy", policies, POLICIES)
    check_known("condition", conditions, CONDITIONS)
    return [
        Cell(policy, level, condition, switch)
        for switch, policy, level, condition in product(switches, policies, levels, conditions)
    ]


def parse_levels(text: str) -> list[int]:
    """ "1,2,3" as numbers. Raises `InputError`."""
    try:
        found = [int(level) for level in text.split(",")]
    except ValueError:
        found = []
    if not found or not set(found) <= set(LEVELS):
        raise InputError(f"--levels {text}: numbers from {LEVELS[0]} to {LEVELS[-1]} are expected, such as 1,2")
    return found


def check_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise `InputError` for the first name that is not known, with the nearest one that is."""
    for name in names:
        if name not in known:
            raise unknown_name(what, name, known)


def shared_out(total: int, wanted: Sequence[Cell]) -> int:
    """The number of fragments for a cell of weight 1, such that the cells of each switch have `total` in all."""
    of_one = sum(weight(cell) for cell in wanted if cell.switch == wanted[0].switch)
    return math.ceil(total / of_one)


def run_matrix(
    wanted: Sequence[Cell], fragments: int | None, console: Console, program: DataPlaneProgram = INA
) -> list[Tried]:
    """Try every cell, print each result and then the matrix, and return what was found.

    However it ends, the matrix of what was tried is printed. A cell that cannot be tried has failed.
    """

    def show(rows: Sequence[Row[Cell, Tried]]) -> list[Tried]:
        found = [row.found or Tried(row.asked, 0, row.error or "") for row in rows]
        if found:
            print_matrix(found, console, program)
        return found

    return measure_rows(wanted, lambda cell: attempt(cell, fragments, program), told, show, console)


def told(tried: Tried) -> str:
    """A cell's result for who waits for the matrix."""
    return f"{tried}" if tried.exact else f"{tried}: {escape(tried.failure)}"


def print_matrix(found: Sequence[Tried], console: Console, program: DataPlaneProgram) -> None:
    """Print the matrix, what it shows, and how many of its cells are exact."""
    exact, carried = sum(each.exact for each in found), sum(each.fragments for each in found)
    console.print(matrix_table(found))
    console.print(
        f"in each cell: communication time, transmissions per gradient; {carried:,} fragments in all", highlight=False
    )
    counts = COUNTED if program.counts_workers else NOT_COUNTED
    console.print(f"{exact} of {len(found)} exact: {COVERED}{counts}", highlight=False, soft_wrap=True)


def matrix_table(found: Sequence[Tried]) -> Table:
    """Times and sendings per gradient: a section per switch and levels, a row per condition, a column per policy."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    policies = dict.fromkeys(tried.cell.policy for tried in found)
    for heading in ("", *policies):
        table.add_column(heading.replace("-", "-\n"), no_wrap=True)  # seven policies fit 80 characters
    tried_of = {tried.cell: tried for tried in found}
    conditions = dict.fromkeys(tried.cell.condition for tried in found)
    for switch, levels in dict.fromkeys((tried.cell.switch, tried.cell.levels) for tried in found):
        table.add_row(f"[bold]{switch}, {levels} level{'s'[: levels > 1]}[/]")
        for condition in conditions:
            row = (tried_of.get(Cell(policy, levels, condition, switch)) for policy in policies)
            table.add_row(condition, *(str(tried or "") for tried in row))
        pairs = [[tried_of.get(Cell(policy, levels, name, switch)) for name in COMPARED] for policy in policies]
        if any(all(pair) for pair in pairs):
            table.add_row("rate kept at 1 %", *(kept(*pair) for pair in pairs))
        table.add_section()
    return table


def kept(lossless: Tried | None, lossy: Tried | None) -> str:
    """The rate with loss as a share of that without, in percent; empty unless the sums of both runs are exact."""
    if not lossless or not lossy or not (lossless.exact and lossy.exact):
        return ""
    rate, kept_rate = (tried.fragments / tried.time_s for tried in (lossless, lossy))
    return f"{kept_rate / rate:.0%}"
