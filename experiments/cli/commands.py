"""The `inakit` command: plan, design, emulate, train, topo, check, bench, and dump, capture and top for a look inside.

`experiments.cli.main` runs them, and says what their errors and signals end in.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from experiments.cli.one_switch import app as switch_app
from experiments.run.scenario import DEFAULT_GRADIENT_BYTES, FabricChoice, JobChoice, build_problem, parse_scale
from planner.core.method import Options
from planner.core.policies import POLICIES
from planner.core.problem import Job, Problem
from planner.registry import BROKEN, METHODS, find_method
from topo.errors import InputError
from topo.files.quantities import parse_rate
from topo.live.running import find_network
from traffic.measure.verdict import VALID

if TYPE_CHECKING:
    from experiments.faults.faults_file import FaultPlan

app = typer.Typer(
    name="inakit",
    help="Emulation of in-network aggregation: plan it, run it on real packets, compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(switch_app, name="switch")

Topo = Annotated[
    str, typer.Option(help="fattree, leafspine, a named fabric (and options: units:ports=2), a .yml/.graphml file")
]
K = Annotated[int | None, typer.Option(help="fat-tree: ports per switch, even")]
Leaves = Annotated[int | None, typer.Option(help="leaf-spine: leaf switches")]
Spines = Annotated[int | None, typer.Option(help="leaf-spine: spine switches")]
HostsPerLeaf = Annotated[int | None, typer.Option(help="leaf-spine: hosts under each leaf")]
Capacity = Annotated[str | None, typer.Option(help="of every link: 20M, or 10M:30M for random ones")]
Ina = Annotated[str | None, typer.Option(help="switches that aggregate: a share (0.2) or names (leaf1,spine1)")]
Pipelines = Annotated[int | None, typer.Option(help="pipelines per switch, 1 to 8")]
Scale = Annotated[str, typer.Option(help="emulate every rate of the fabric at this scale: 1/5000")]
Jobs = Annotated[Path | None, typer.Option(help="a YAML file of jobs; without one, a single job")]
Workers = Annotated[
    int | None, typer.Option(help="workers of the single job; default: all other hosts, but no more than 16")
]
Servers = Annotated[int, typer.Option(help="parameter servers of the single job")]
Gradient = Annotated[
    int | None,
    typer.Option(
        help=f"gradient bytes of the single job; default: a thousandth of --model, or {DEFAULT_GRADIENT_BYTES}"
    ),
]
Model = Annotated[
    str, typer.Option(help="what layers the gradient has, for planner goat: a table of planner/models, or a .csv file")
]
Iterations = Annotated[int, typer.Option(help="iterations of the single job")]
Seed = Annotated[int, typer.Option(help="decides everything random")]
Planners = Annotated[
    str | None,
    typer.Option(help="planners by name, comma between (default: aro,atp,lbmm); `inakit planners` lists them"),
]
Planner = Annotated[str, typer.Option(help="a planner by name")]
Policies = Annotated[
    str,
    typer.Option(
        "--policy", help="slot policies, comma between: " + ", ".join(POLICIES) + "; default: the planner's own"
    ),
]
FaultsFile = Annotated[Path | None, typer.Option(help="a YAML file of losses, failures, stragglers, other traffic")]
Run = Annotated[str | None, typer.Option(help="which network, where several are running: its four-letter id")]
Switch = Annotated[str, typer.Option(help="auto, bmv2 or fast")]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="do not end a run early that clearly falls behind its plan")
]
PlanMode = Annotated[
    str, typer.Option("--mode", help="the rates of a run that is reliable (results need room) or a replay (none come)")
]
Results = Annotated[Path, typer.Option(help="where run folders go")]

DEFAULT_PLANNERS = ("aro", "atp", "lbmm")


@app.command()
def emulate(
    topo: Topo = "fattree",
    k: K = None,
    leaves: Leaves = None,
    spines: Spines = None,
    hosts_per_leaf: HostsPerLeaf = None,
    capacity: Capacity = None,
    ina: Ina = None,
    pipelines: Pipelines = None,
    scale: Scale = "1",
    jobs: Jobs = None,
    workers: Workers = None,
    servers: Servers = 1,
    gradient_bytes: Gradient = None,
    model: Model = "",
    iterations: Iterations = 3,
    planners: Planners = None,
    preset: Annotated[str, typer.Option(help="a paper's network and models, such as inart")] = "",
    switch: Switch = "auto",
    mode: Annotated[str, typer.Option(help="reliable (closed loop, exact sums) or replay (tcpreplay)")] = "reliable",
    seed: Seed = 0,
    pcap: Annotated[str, typer.Option(help="keep the packets of switches (s1) or of single ports (s2:3)")] = "",
    policy: Policies = "",
    faults: FaultsFile = None,
    patch_panel: Annotated[bool, typer.Option(help="all optical links through one circuit switch")] = False,
    replan: Annotated[
        bool, typer.Option("--replan", help="also InArt's plans made anew beside the background traffic of --faults")
    ] = False,
    keep_going: KeepGoing = False,
    results: Results = Path("results"),
) -> None:
    """Plan, build the network, send real gradients through it, and compare planned with measured."""
    from experiments.emulate.defaults import Free  # noqa: PLC0415
    from experiments.emulate.emulate import Emulation, run  # noqa: PLC0415, the network needs Mininet; planning does not
    from experiments.emulate.presets import PresetRun, run_preset  # noqa: PLC0415
    from experiments.inspect.capture import capture_places  # noqa: PLC0415

    fabric = FabricChoice(topo, k, leaves, spines, hosts_per_leaf, capacity, ina, pipelines, scale, seed)
    names = None if planners is None else split_names(planners)
    if preset:
        others = {"faults": faults, "policy": policy, "replan": replan, "model": model, "patch-panel": patch_panel}
        for option, value in others.items():
            if value:
                why = "a preset has none; describe its jobs instead"
                raise InputError(f"--{option} {value} with --preset {preset}: {why}")
        chosen = PresetRun(preset, fabric, names, switch, mode, seed, results, parse_scale(scale), keep_going)
        raise typer.Exit(exit_code(run_preset(chosen, Console())))
    job = JobChoice(jobs, workers, servers, gradient_bytes, iterations, seed, model)
    names = DEFAULT_PLANNERS if names is None else names
    problem = build_problem(fabric, job)
    captures = capture_places(problem.fabric, pcap)
    emulation = Emulation(
        problem, names, switch, mode, seed, results, parse_scale(scale), captures, faults_of(faults, problem),
        split_names(policy), replan, patch_panel,
        Free(rates=not fabric.gives_rates, gradients=not job.gives_size), keep_going,
    )  # fmt: skip
    raise typer.Exit(exit_code(run(emulation, Console()).verdict))


def faults_of(path: Path | None, problem: Problem) -> FaultPlan | None:
    from experiments.faults.faults_file import load_faults  # noqa: PLC0415

    return None if path is None else load_faults(path, problem)


def exit_code(verdict: str) -> int:
    """0 when VALID, else 1."""
    return 0 if verdict == VALID else 1


@app.command()
def train(
    topo: Topo = "fattree",
    k: K = None,
    leaves: Leaves = None,
    spines: Spines = None,
    hosts_per_leaf: HostsPerLeaf = None,
    capacity: Capacity = None,
    ina: Ina = None,
    pipelines: Pipelines = None,
    scale: Scale = "1",
    workers: Workers = None,
    servers: Servers = 1,
    planners: Annotated[str, typer.Option(help="by name, comma between; `inakit planners` lists them")] = "aro,atp",
    epochs: Annotated[int, typer.Option(help="passes over the training data")] = 4,
    batch: Annotated[int, typer.Option(help="samples per worker and iteration")] = 16,
    hidden: Annotated[str, typer.Option(help="units of the model's hidden layers, comma between")] = "256,64",
    compute_s: Annotated[
        float, typer.Option(help="how long workers compute in an iteration; 0: as long as it takes here")
    ] = 0.05,
    framework: Annotated[str, typer.Option(help="numpy, or torch (DDP with a communication hook)")] = "numpy",
    switch: Switch = "auto",
    policy: Policies = "",
    faults: FaultsFile = None,
    seed: Seed = 0,
    keep_going: KeepGoing = False,
    results: Results = Path("results"),
) -> None:
    """Train a small model through the emulated switches: time per epoch, throughput, loss and accuracy by planner."""
    from experiments.emulate.defaults import Free  # noqa: PLC0415
    from experiments.emulate.emulate import Emulation  # noqa: PLC0415, the network needs Mininet; planning does not
    from experiments.train.train import run_training, training_problem  # noqa: PLC0415
    from traffic.training.task import Recipe, parse_layers  # noqa: PLC0415

    fabric = FabricChoice(topo, k, leaves, spines, hosts_per_leaf, capacity, ina, pipelines, scale, seed)
    recipe = Recipe(parse_layers(hidden), epochs, batch, seed=seed)
    chosen = build_problem(fabric, JobChoice(None, workers, servers, seed=seed))
    problem, task = training_problem(chosen, recipe, compute_s)
    emulation = Emulation(
        problem, split_names(planners), switch, "reliable", seed, results, parse_scale(scale),
        faults=faults_of(faults, problem), policies=split_names(policy),
        free=Free(rates=not fabric.gives_rates), keep_going=keep_going,
    )  # fmt: skip
    raise typer.Exit(exit_code(run_training(emulation, task, framework, Console()).verdict))


@app.command()
def plan(
    topo: Topo = "fattree",
    k: K = None,
    leaves: Leaves = None,
    spines: Spines = None,
    hosts_per_leaf: HostsPerLeaf = None,
    capacity: Capacity = None,
    ina: Ina = None,
    pipelines: Pipelines = None,
    scale: Scale = "1",
    jobs: Jobs = None,
    workers: Workers = None,
    servers: Servers = 1,
    gradient_bytes: Gradient = None,
    model: Model = "",
    planner: Annotated[str, typer.Option(help="by name; several, comma between, are compared")] = "aro",
    mode: PlanMode = "reliable",
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option(help="folder for plan.json and the table entries; one in it for each of several")
    ] = None,
) -> None:
    """Plan without running: what the method decides, what to expect, and the table entries; or compare planners."""
    from experiments.run.planning import plan_to_run, print_comparison, print_plan, write_plan  # noqa: PLC0415

    problem = build_problem(
        FabricChoice(topo, k, leaves, spines, hosts_per_leaf, capacity, ina, pipelines, scale, seed),
        JobChoice(jobs, workers, servers, gradient_bytes, 1, seed, model),
    )
    names = split_names(planner) or (planner,)
    for name in names:
        find_method(name)
    plans = {name: plan_to_run(problem, name, seed, mode) for name in names}
    if len(plans) == 1:
        print_plan(Console(), problem, *plans.values())
    else:
        print_comparison(Console(), problem, plans)
    for name, made in plans.items():
        if output is not None:
            write_plan(output if len(plans) == 1 else output / name, problem, made.plan)


@app.command()
def design(
    aggregators: Annotated[int, typer.Option(help="switches that aggregate")] = 4,
    common: Annotated[int, typer.Option(help="switches that do not")] = 16,
    ports: Annotated[int, typer.Option(help="of every switch")] = 24,
    workers: Annotated[int, typer.Option(help="beside the one parameter server")] = 89,
    capacity: Annotated[str, typer.Option(help="of every link")] = "100G",
    layers: Annotated[int, typer.Option(help="the most switches on a way to the parameter server")] = 5,
    scale: Scale = "1",
    gradient_bytes: Gradient = None,
    iterations: Iterations = 3,
    time_limit_s: Annotated[float, typer.Option(help="for what only a solver can settle")] = 60.0,
    output: Annotated[Path | None, typer.Option(help="folder for fabric, jobs, plan, entries, picture")] = None,
) -> None:
    """Find the network itself: topology and routes with the highest rate for a cluster of optical links (ATRO)."""
    from experiments.cli.design_network import run_design  # noqa: PLC0415
    from planner.methods.atro.cluster import Cluster  # noqa: PLC0415

    cluster = Cluster(aggregators, common, ports, workers, parse_rate(capacity) * parse_scale(scale), layers)
    job = Job(1, (), (), gradient_bytes or DEFAULT_GRADIENT_BYTES, iterations=iterations)
    run_design(cluster, job, Options(time_limit_s=time_limit_s), output, Console())


@app.command()
def topo(
    topo: Topo = "fattree",
    k: K = None,
    leaves: Leaves = None,
    spines: Spines = None,
    hosts_per_leaf: HostsPerLeaf = None,
    capacity: Capacity = None,
    ina: Ina = None,
    pipelines: Pipelines = None,
    scale: Scale = "1",
    jobs: Jobs = None,
    workers: Workers = None,
    servers: Servers = 1,
    planner: Annotated[str | None, typer.Option(help="draw this planner's trees and link loads too")] = None,
    mode: PlanMode = "reliable",
    seed: Seed = 0,
    output: Annotated[Path, typer.Option(help="name of the files; .png, .svg and .yml are added")] = Path("fabric"),
) -> None:
    """Draw a fabric as PNG and SVG and, given a planner, its trees and link loads; save it as YAML."""
    from experiments.run.planning import draw_fabric, plan_to_run, tell_room  # noqa: PLC0415

    choice = FabricChoice(topo, k, leaves, spines, hosts_per_leaf, capacity, ina, pipelines, scale, seed)
    problem = made = None
    if planner is not None:
        problem = build_problem(choice, JobChoice(jobs, workers, servers, seed=seed))
        run = plan_to_run(problem, planner, seed, mode)
        tell_room(Console(), planner, run)
        made = run.plan
    for path in draw_fabric(choice.build(), problem, made, output):
        Console().print(f"wrote {path}", highlight=False)


@app.command()
def jobs(
    topo: Topo = "fattree",
    k: K = None,
    leaves: Leaves = None,
    spines: Spines = None,
    hosts_per_leaf: HostsPerLeaf = None,
    workers: Workers = None,
    servers: Servers = 1,
    gradient_bytes: Gradient = None,
    model: Model = "",
    iterations: Iterations = 3,
    seed: Seed = 0,
    output: Annotated[Path | None, typer.Option(help="a new .yml file; printed without it")] = None,
) -> None:
    """Write a file of jobs to begin with: the single job that is run without --jobs, every key explained."""
    from experiments.cli.starter_jobs import jobs_text, write_jobs  # noqa: PLC0415

    fabric = FabricChoice(topo, k, leaves, spines, hosts_per_leaf, seed=seed)
    problem = build_problem(fabric, JobChoice(None, workers, servers, gradient_bytes, iterations, seed, model))
    if output is None:
        print(jobs_text(problem, topo), end="")
        return
    write_jobs(problem, topo, output)
    Console().print(f"wrote {output}", highlight=False)


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="a plan.json")],
    fabric: Annotated[Path, typer.Argument(help="the fabric it is for: .yml or .graphml")],
    jobs: Annotated[Path, typer.Argument(help="the jobs it is for: .yml")],
) -> None:
    """Check a plan against a fabric and jobs: every rule, with code that no planner shares."""
    from experiments.run.planning import check_files  # noqa: PLC0415

    check_files(plan, fabric, jobs)
    Console().print(f"{plan}: valid", style="green", highlight=False)


@app.command()
def planners() -> None:
    """List the planners."""
    for name, method in METHODS.items():
        print(f"{name:16} {method.summary}")
    for name, error in BROKEN.items():
        print(f"{name:16} CANNOT BE USED: {error}")


@app.command()
def bench(
    planners: Annotated[bool, typer.Option("--planners", help="time ARO's planners instead; without root")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="with --planners: a few seeds, in some minutes")] = False,
) -> None:
    """Packets per second without loss, of every installed switch target, side by side."""
    from experiments.bench.measure import installed_targets, run_bench  # noqa: PLC0415
    from experiments.bench.planners import bench_planners  # noqa: PLC0415
    from experiments.bench.several_tasks import bench_several  # noqa: PLC0415
    from experiments.bench.tables import rate_table, set_up_table  # noqa: PLC0415

    console = Console()
    if planners:
        console.print(bench_planners(console, quick=quick))
        console.print(bench_several(console, quick=quick))
        return
    findings = run_bench(installed_targets(), console)
    console.print(rate_table(findings.rates), set_up_table(findings))


@app.command()
def exactness(
    switch: Annotated[
        str, typer.Option(help="process (here, without root), fast or bmv2 (a Mininet network each), auto: both")
    ] = "process",
    policies: Annotated[str, typer.Option(help="slot policies, separated by commas; all without it")] = "",
    levels: Annotated[str, typer.Option(help="levels of aggregation")] = "1,2,3",
    conditions: Annotated[str, typer.Option(help="conditions such as '1 % loss,worker paused'; all without it")] = "",
    fragments: Annotated[
        int | None, typer.Option(min=2, help="of each run's gradient; default: 400, 2000 on fast, 200 on bmv2")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="10^6 fragments on each switch, over all its runs")] = False,
) -> None:
    """Whether all sums are exact: every slot policy, over levels of aggregation, under loss and other faults."""
    from experiments.exactness.conditions import CONDITIONS  # noqa: PLC0415
    from experiments.exactness.matrix import LONG, cells, parse_levels, run_matrix, shared_out  # noqa: PLC0415
    from experiments.exactness.scales import chosen_worlds  # noqa: PLC0415

    chosen = cells(
        split_names(policies) or [*POLICIES],
        parse_levels(levels),
        split_names(conditions) or [*CONDITIONS],
        chosen_worlds(split_names(switch) or ["process"]),
    )
    if long and fragments:
        raise InputError(f"--long and --fragments {fragments}: choose one; --long shares 10^6 out by itself")
    found = run_matrix(chosen, shared_out(LONG, chosen) if long else fragments, Console())
    raise typer.Exit(0 if all(tried.exact for tried in found) else 1)


def split_names(text: str) -> tuple[str, ...]:
    """What commas separate, without what is empty."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


@app.command()
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="goat, p4inc-aoi, ...; all figures are listed without it")] = None,
    figure: Annotated[str | None, typer.Argument(help="one of the paper's; listed without it")] = None,
    simulated: Annotated[bool, typer.Option("--simulated", help="all of the paper's that need no network")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="fewer and shorter runs")] = False,
    switch: Switch = "auto",
    results: Results = Path("results"),
) -> None:
    """Run a figure or a claim of a paper: table, CSV and plot."""
    from experiments.papers.common.figure import Request  # noqa: PLC0415
    from experiments.papers.figures import figures, find_figure, run_simulated  # noqa: PLC0415
    from experiments.run.record import check_results  # noqa: PLC0415

    if paper is not None and (figure is not None or simulated):
        check_results(results)
    if paper is not None and figure is None and simulated:
        raise typer.Exit(exit_code(run_simulated(paper, Console(), Request(results, quick, switch))))
    if paper is None or figure is None:
        for names, found in figures(paper):
            print(f"{names:28} {found.summary}")
        return
    raise typer.Exit(exit_code(find_figure(paper, figure).run(Console(), Request(results, quick, switch))))


@app.command()
def dump(
    switch: Annotated[str, typer.Argument(help="a switch of a running network, by name")],
    table: Annotated[str | None, typer.Option(help="only this table, such as aggregation")] = None,
    register: Annotated[str | None, typer.Option(help="only this register, such as slot_bitmap")] = None,
    counter: Annotated[str | None, typer.Option(help="only this counter, such as events")] = None,
    json: Annotated[bool, typer.Option("--json", help="all of it, for programs")] = False,
    run: Run = None,
) -> None:
    """Show the tables, registers and counters of a switch while it works."""
    from experiments.inspect.dump import dump as show  # noqa: PLC0415

    asked = {"table": table, "register": register, "counter": counter}
    show(Console(), find_network(run), switch, asked, as_json=json)


@app.command()
def calibrate(
    topo: Topo = "fattree",
    k: K = None,
    leaves: Leaves = None,
    spines: Spines = None,
    hosts_per_leaf: HostsPerLeaf = None,
    capacity: Capacity = None,
    ina: Ina = None,
    pipelines: Pipelines = None,
    scale: Scale = "1",
    jobs: Jobs = None,
    workers: Workers = None,
    servers: Servers = 1,
    planner: Planner = "aro",
    switch: Switch = "auto",
    seed: Seed = 0,
    curve: Annotated[
        str | None, typer.Option(help="fat-trees of these k, such as 4,6,8, with all hosts working")
    ] = None,
    verify: Annotated[int, typer.Option(help="check with so many runs each that overload is always caught")] = 0,
    results: Results = Path("results"),
) -> None:
    """Find the highest link rate at which this machine carries a plan; `emulate` then warns of one that it cannot."""
    from experiments.cli.calibrate_fabric import Command, run_calibrate, run_curve  # noqa: PLC0415

    command = Command(
        fabric=FabricChoice(topo, k, leaves, spines, hosts_per_leaf, capacity, ina, pipelines, scale, seed),
        job=JobChoice(jobs, workers, servers, seed=seed),
        planner=planner,
        switch=switch,
        seed=seed,
    )
    if curve is not None:
        run_curve(command, curve, results, Console())
    else:
        raise typer.Exit(run_calibrate(command, verify, Console()))


@app.command()
def capture(
    switch: Annotated[str, typer.Argument(help="a switch of a running network, by name")],
    port: Annotated[int, typer.Argument(help="the number of one of its ports")],
    output: Annotated[Path, typer.Option(help="a .pcap file")],
    seconds: Annotated[float | None, typer.Option(help="end after so many seconds")] = None,
    packets: Annotated[int | None, typer.Option(help="end after so many packets")] = None,
    run: Run = None,
) -> None:
    """Capture what arrives and leaves at a port of a switch, until Ctrl-C or the end of the network."""
    from experiments.inspect.capture import Limit, capture_to  # noqa: PLC0415

    capture_to(Console(), find_network(run), (switch, port), output, Limit(seconds, packets))


@app.command()
def top(
    interval: Annotated[float, typer.Option(help="seconds between two looks")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="print one interval and end")] = False,
    run: Run = None,
) -> None:
    """Watch a running network: rates of links and switches, drops, processors; the busiest first."""
    from experiments.inspect.top import top as watch  # noqa: PLC0415

    watch(Console(), run, interval, once=once)


@app.command()
def dissector() -> None:
    """Print a dissector of the packet format, for Wireshark's plugin folder."""
    from traffic.wire.dissector import dissector as source  # noqa: PLC0415

    print(source(), end="")
