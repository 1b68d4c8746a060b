"""Operations on a plan without a run: make, print, write, draw and check it.

For switches with a chip profile, the plan's cost on the chip is printed too: the limits that bind, and their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from inakit.experiments.run.console import Amount, Detail, NamedTable, Screen, names
from inakit.planner.core.check import check
from inakit.planner.core.files import load_jobs, load_plan, save_entries, save_jobs, save_plan
from inakit.planner.core.method import AFTERWARDS, Options
from inakit.planner.core.plan import Plan, SolverOutcome, trees_of
from inakit.planner.core.problem import Problem
from inakit.planner.core.used_limits import CHILDREN, LINK, WINDOW, UsedLimit, used_limits
from inakit.planner.install.plan_entries import many_copies
from inakit.planner.prepared import Prepared, prepare
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import RESULTS_RETURN
from inakit.topo.errors import writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_chip_as_wired
from inakit.topo.files.fabric_records import GENERIC, find_chip
from inakit.topo.files.fabrics import load_fabric, save_fabric
from inakit.topo.files.quantities import in_words
from inakit.traffic.wire.packet_format import FRAGMENT

BUSIEST_LINKS = 5
ALL_JOBS = "several jobs: the slowest worker's rate, the PS ingress of all jobs, the slowest job's time"


def make_plan(problem: Problem, planner: str, seed: int, headroom: str = AFTERWARDS) -> Plan:
    """Return the checked plan of the method called `planner`."""
    return find_method(planner).plan(problem, Options(seed=seed, headroom=headroom))


def plan_to_run(
    problem: Problem, planner: str, seed: int, mode: str = "reliable", headroom: str = AFTERWARDS
) -> Prepared:
    """Return the plan of the method called `planner`, prepared to run in this mode."""
    return prepare(problem, make_plan(problem, planner, seed, headroom), mode)


def print_headroom(console: Console, name: str, run: Prepared) -> None:
    """Print a line if the plan's rates are lowered to leave room for results; else print nothing."""
    for note in run.notes:
        console.print(f"{name}: {note}", highlight=False, markup=False, soft_wrap=True)


def print_copies(console: Console, run: Prepared) -> None:
    """Print a line for each tree whose results only some targets can send."""
    for line in many_copies(run.problem.fabric, run.plan):
        console.print(f"{run.plan.method}: {line}", highlight=False, markup=False, soft_wrap=True)


def print_plan(console: Screen, run: Prepared) -> None:
    """Print a plan's trees, its busiest links, and the predicted figures of each job."""
    plan, prediction = run.plan, run.prediction
    console.print(f"{plan.method} on {run.problem.fabric.name}: {describe(plan.outcome)}", highlight=False)
    if plan.trees:
        console.print(trees_table(plan))
    if plan.collectives:
        console.print(collectives_table(plan))
    console.print(Detail(NamedTable(links_table(run))))
    console.as_json({"jobs": {number: asdict(job) for number, job in prediction.jobs.items()}})
    for number, job in prediction.jobs.items():
        name = f"job {number}: " if len(prediction.jobs) > 1 else ""
        console.print(
            f"{name}sending rate {in_words(job.sending_rate_bps, 'bit/s')}, "
            f"PS ingress {in_words(job.ps_ingress_bytes, 'bytes')}, "
            f"communication time {in_words(job.communication_time_s, 's')} per iteration",
            highlight=False,
            soft_wrap=True,
        )
    if len(prediction.jobs) > 1:
        console.print("(for all jobs sending at once; a job that runs alone is no faster)", highlight=False)
    print_headroom(console, plan.method, run)
    print_copies(console, run)


def print_comparison(console: Console, runs: Mapping[str, Prepared]) -> None:
    """Print the predicted figures of several planners' plans for one problem, one row per plan.

    With several jobs, the figures are the rate of the slowest worker, the PS ingress of all jobs together, and the time
    of the slowest job.
    """
    several = any(len(run.problem.jobs) > 1 for run in runs.values())
    headings = ("rate", "of the best", "PS ingress", "time", "found")
    table = Table(*names("planner"), *headings, caption=ALL_JOBS if several else None)
    predictions = {name: run.prediction for name, run in runs.items()}
    best = max(prediction.sending_rate_bps for prediction in predictions.values())
    for name, prediction in predictions.items():
        table.add_row(
            name,
            Amount(prediction.sending_rate_bps, "bit/s"),
            f"{prediction.sending_rate_bps / best:.0%}",
            Amount(prediction.ps_ingress_bytes, "bytes"),
            Amount(prediction.communication_time_s, "s"),
            describe(runs[name].plan.outcome),
        )
    console.print(NamedTable(table))
    for name, run in runs.items():
        print_headroom(console, name, run)
        print_copies(console, run)


def describe(outcome: SolverOutcome) -> str:
    """The solver's outcome in words: the status, the gap unless it is 0, the solver and the seconds."""
    gap = f", gap {outcome.gap:.2%}" if outcome.gap else ""
    solver = f" ({outcome.solver})" if outcome.solver else ""
    return f"{outcome.status}{gap}{solver} in {outcome.seconds:.2f} s"


def trees_table(plan: Plan) -> Table:
    """A table with one row per aggregator; a tree without aggregators has one row."""
    table = Table("job", "tree", "root", "rate", "aggregator", "pipeline", "sums", "slots")
    for planned in plan.trees:
        tree = planned.tree
        common = (str(planned.job), str(tree.number), tree.root, Amount(planned.rate_bps, "bit/s"))
        senders = tree.workers | {label: each.switch for label, each in tree.aggregator_of.items()}
        for aggregator in tree.aggregators:
            children = ", ".join(senders[label] for label in aggregator.children)
            slots = f"{aggregator.first_slot}-{aggregator.first_slot + aggregator.slots - 1}"
            table.add_row(*common, aggregator.switch, str(aggregator.pipeline), children, slots)
        if not tree.aggregators:
            table.add_row(*common, "none", "", f"{len(tree.workers)} workers, at the PS", "")
    return table


def collectives_table(plan: Plan) -> Table:
    """A table with one row per collective: its ranks in order, its steps, chunks, connections and rates."""
    table = Table("job", "ranks", "steps", "chunks", "connections", "least rate", "most")
    for each in plan.collectives:
        rates = [connection.rate_bps for connection in each.connections]
        shown = Amount(min(rates), "bit/s"), Amount(max(rates), "bit/s")
        counts = (len(each.steps), each.chunks, len(each.connections))
        table.add_row(str(each.job), ", ".join(each.ranks), *map(str, counts), *shown)
    return table


def links_table(run: Prepared) -> Table:
    """A table of the links with the highest share of capacity used by gradients and, if they return, results."""
    table = Table("busiest links", "gradients", "results", "of capacity")
    capacities, gradients = run.problem.fabric.capacities_bps, run.prediction.link_loads_bps
    returned = run.prediction.result_loads_bps if RESULTS_RETURN[run.mode] else {}
    results = {link: returned.get(link, 0.0) for link in gradients}
    shares = {link: (load + results[link]) / capacities[link] for link, load in gradients.items()}
    for link in sorted(shares, key=lambda link: -shares[link])[:BUSIEST_LINKS]:
        loads = Amount(gradients[link], "bit/s"), Amount(results[link], "bit/s")
        table.add_row(" → ".join(link), *loads, f"{shares[link]:.0%}")
    return table


def write_plan(folder: Path, run: Prepared) -> None:
    """Write `plan.json`, `fabric.yml`, `jobs.yml`, and the entries: a command file per switch, and `entries.json`."""
    installed = run.entries
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    save_plan(run.plan, folder / "plan.json")
    save_fabric(run.problem.fabric, folder / "fabric.yml")
    save_jobs(run.problem.jobs, folder / "jobs.yml")
    save_entries(installed, folder / "entries")


def draw_fabric(fabric: Fabric, run: Prepared | None, output: Path) -> list[Path]:
    """Draw the fabric as PNG and SVG, with a plan also trees and link loads, and save it as YAML; returns the paths."""
    from inakit.topo.picture import draw  # noqa: PLC0415, matplotlib takes a second

    paths = [output.with_suffix(suffix) for suffix in (".png", ".svg")]
    with writing(output.parent):
        output.parent.mkdir(parents=True, exist_ok=True)
    draw(fabric, paths, **({} if run is None else drawn_parts(run)))
    save_fabric(fabric, output.with_suffix(".yml"))
    return [*paths, output.with_suffix(".yml")]


def drawn_parts(run: Prepared) -> dict[str, Any]:
    """The parts of a plan in a drawing of the fabric, as named arguments of `inakit.topo.picture.draw`."""
    plan, problem = run.plan, run.problem
    sent = [(each.job, tree) for each in plan.collectives for tree in trees_of(each)]
    return {
        "loads": run.prediction.link_loads_bps,
        "trees": [*(planned.tree for planned in plan.trees), *(tree for _, tree in sent)],
        "roles": roles(problem),
        "owners": [*(planned.job for planned in plan.trees), *(job for job, _ in sent)],
        "jobs": jobs_of(problem),
    }


def roles(problem: Problem) -> dict[str, str]:
    """The role of every host in the jobs: `worker` or `ps`."""
    servers = {host: "ps" for job in problem.jobs for host in job.servers}
    return {host: "worker" for job in problem.jobs for host in job.workers} | servers


def jobs_of(problem: Problem) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for job in problem.jobs:
        for host in dict.fromkeys((*job.workers, *job.servers)):
            found.setdefault(host, []).append(job.number)
    return found


def check_files(plan: Path, fabric: Path, jobs: Path) -> None:
    """Raise `PlanError` unless the plan in a file obeys every rule for this fabric and these jobs."""
    check(Problem(load_fabric(fabric), load_jobs(jobs), FRAGMENT), load_plan(plan))


NAMED = 3
"""The number of places that are named for each kind of limit."""
SAME = 1e-6
"""The relative difference below which two rates are equal."""


@dataclass(frozen=True)
class ChipCost:
    """The sending rate of a plan with the chips, and of the same planner's plan with generic chips, both in bit/s.

    `chips`: the number of switches with each chip. `binding`: the limits that the plan uses up. For several jobs a rate
    is that of the slowest job.
    """

    chips: dict[str, int]
    sending_rate_bps: float
    generic_sending_rate_bps: float
    binding: tuple[UsedLimit, ...]


def chip_cost(prepared: Prepared, planner: str, *, seed: int = 0, headroom: str = AFTERWARDS) -> ChipCost | None:
    """Compute the cost of the chips for a planner's prepared plan; None for a fabric without chips."""
    problem, plan, mode = prepared.problem, prepared.plan, prepared.mode
    chips = chips_of(problem.fabric)
    if not chips:
        return None
    generic = replace(problem, fabric=with_chip_as_wired(problem.fabric, find_chip(GENERIC)))
    free = find_method(planner).plan(generic, Options(seed=seed, headroom=headroom))
    limits = used_limits(problem, plan, with_results=RESULTS_RETURN[mode])
    return ChipCost(
        chips=chips,
        sending_rate_bps=prepared.prediction.sending_rate_bps,
        generic_sending_rate_bps=prepare(generic, free, mode).prediction.sending_rate_bps,
        binding=tuple(limit for limit in limits if limit.binds),
    )


def chips_of(fabric: Fabric) -> dict[str, int]:
    found: dict[str, int] = {}
    for switch in fabric.switches:
        if switch.ina and switch.chip is not None:
            found[switch.chip.name] = found.get(switch.chip.name, 0) + 1
    return found


def chip_lines(planner: str, cost: ChipCost) -> Iterator[str]:
    """Yield lines with the cost of the chips for a planner's plan and the limits that bind."""
    chips = ", ".join(f"{name} in {count} switch{'es' * (count > 1)}" for name, count in cost.chips.items())
    rate, generic = cost.sending_rate_bps, cost.generic_sending_rate_bps
    lost = 1 - rate / generic
    compared = "as much as" if abs(lost) < SAME else f"{lost:.1%} less than" if lost > 0 else f"{-lost:.1%} more than"
    with_chips, with_generic = in_words(rate, "bit/s"), in_words(generic, "bit/s")
    yield f"{planner}: with {chips} {with_chips}, {compared} with generic ({with_generic})"
    for kind in dict.fromkeys(limit.kind for limit in cost.binding):
        places = [limit for limit in cost.binding if limit.kind == kind]
        more = f", and {len(places) - NAMED} more" if len(places) > NAMED else ""
        yield f"  binds: {kind} at {'; '.join(limit_text(limit) for limit in places[:NAMED])}{more}"
    if not cost.binding:
        yield "  no limit of links or chips binds"


def limit_text(limit: UsedLimit) -> str:
    """The place of a limit, with its use and its value, in words."""
    if limit.kind in {CHILDREN, WINDOW}:
        return f"{limit.where} ({limit.used:.0f} of {limit.limit:.0f})"
    of = " of gradients and results" if limit.kind == LINK else ""
    return f"{limit.where} ({in_words(limit.used, 'bit/s')} of {in_words(limit.limit, 'bit/s')}{of})"


def print_chip_costs(
    console: Console,
    runs: Mapping[str, Prepared],
    planners: Mapping[str, str],
    *,
    seed: int,
    headroom: str = AFTERWARDS,
) -> None:
    """Print the cost of a fabric's chips for each planner's plan; print nothing for a fabric without chips.

    `planners`: the planner as the user gave it, by the name of the run.
    """
    for name, run in runs.items():
        cost = chip_cost(run, planners[name], seed=seed, headroom=headroom)
        for line in () if cost is None else chip_lines(name, cost):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
