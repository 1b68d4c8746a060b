"""`inakit emulate`, `train`, `report` and `reproduce`: runs of plans, and what is shown of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inakit.experiments.cli.options import (
    RESULTS,
    FabricOptions,
    Iterations,
    Results,
    RunOptions,
    SizedJobsOptions,
    Switch,
    TaskOptions,
    exit_code,
    one_figure,
    one_mode,
    one_paper,
    some_planners,
    split_names,
)
from inakit.experiments.run.console import Screen
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem, parse_scale
from inakit.topo.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from inakit.experiments.emulate.defaults import Free


DEFAULT_PLANNERS = ("aro", "atp", "lbmm")

Planners = Annotated[
    str | None,
    typer.Option(
        help="planners by name or file (./mine.py), comma between; default: aro,atp,lbmm; `inakit planners` lists them",
        autocompletion=some_planners,
    ),
]
Preset = Annotated[str, typer.Option(help="a paper's network and models, such as inart")]
Mode = Annotated[
    str,
    typer.Option(
        help="reliable (closed loop, exact sums) or replay (pcaps at the planned rate)", autocompletion=one_mode
    ),
]
Pcap = Annotated[str, typer.Option(help="keep the packets of switches (s1) or of single ports (s2:3)")]
PatchPanel = Annotated[bool, typer.Option(help="all optical links through one circuit switch")]
Series = Annotated[
    str,
    typer.Option(
        help="in virtual time: the interval of the series of links and workers, such as 100us; "
        "on: one that fits the run (the default there); off: no series"
    ),
]
Replan = Annotated[
    bool, typer.Option("--replan", help="also InArt's plans made anew beside the background traffic of --faults")
]


def emulate(
    fabric: FabricOptions,
    job: SizedJobsOptions,
    run: RunOptions,
    iterations: Iterations = 3,
    planners: Planners = None,
    preset: Preset = "",
    mode: Mode = "reliable",
    pcap: Pcap = "",
    patch_panel: PatchPanel = False,
    replan: Replan = False,
    series: Series = "",
) -> None:
    """Plan, build the network, send real gradients through it, and compare planned with measured."""
    from inakit.experiments.emulate.emulate import Emulation
    from inakit.experiments.emulate.emulate import run as run_emulation
    from inakit.experiments.inspect.capture import capture_places
    from inakit.experiments.run.faults_file import load_faults
    from inakit.experiments.run.observation import parse_sampling

    names = None if planners is None else split_names(planners)
    if preset:
        others = {"replan": replan, "model": job.model, "patch-panel": patch_panel, "series": series}
        raise typer.Exit(emulate_preset(preset, fabric, run, names, mode, others))
    chosen, jobs = fabric.choice(run.seed), job.sized(run.seed, iterations)
    problem = build_problem(chosen, jobs)
    emulation = Emulation(
        problem,
        DEFAULT_PLANNERS if names is None else names,
        run.switch,
        mode,
        *(run.seed, run.results, fabric.factor, capture_places(problem.fabric, pcap)),
        faults=None if run.faults is None else load_faults(run.faults, problem),
        replan=replan,
        patch_panel=patch_panel,
        free=left_open(chosen, jobs),
        sampling=parse_sampling(series),
        **run.of_emulation,
    )
    raise typer.Exit(exit_code(run_emulation(emulation, Screen()).verdict))


def left_open(chosen: FabricChoice, jobs: JobChoice) -> Free:
    """What the user has not said of rates and gradients."""
    from inakit.experiments.emulate.defaults import Free

    return Free(rates=not chosen.gives_rates, gradients=not jobs.gives_size)


def refuse_beside_preset(preset: str, run: RunOptions, others: dict[str, object]) -> None:
    """Raise `InputError` for an option that cannot be combined with a preset."""
    for option, value in {"faults": run.faults, "policy": run.policy, "program": run.chosen_program, **others}.items():
        if value:
            why = "a preset has none; describe its jobs instead"
            raise InputError(f"--{option} {value} with --preset {preset}: {why}")


def emulate_preset(
    preset: str,
    fabric: FabricOptions,
    run: RunOptions,
    planners: tuple[str, ...] | None,
    mode: str,
    others: dict[str, object],
) -> int:
    """Run a paper's network and models, and return the exit code. Raises `InputError` where `others` have a value."""
    from inakit.experiments.emulate.presets import PresetRun, run_preset

    refuse_beside_preset(preset, run, others)
    chosen = fabric.choice(run.seed)
    asked = PresetRun(
        preset, chosen, planners, run.switch, mode, run.seed, run.results, fabric.factor, run.keep_going, run.headroom
    )
    return exit_code(run_preset(asked, Screen()))


TrainedPlanners = Annotated[
    str,
    typer.Option(
        help="by name or file (./mine.py), comma between; `inakit planners` lists names", autocompletion=some_planners
    ),
]
Epochs = Annotated[int, typer.Option(help="passes over the training data")]
Batch = Annotated[int, typer.Option(help="samples per worker and iteration")]
Hidden = Annotated[str, typer.Option(help="units of the model's hidden layers, comma between")]
Compute = Annotated[float, typer.Option(help="how long workers compute in an iteration; 0: as long as it takes here")]
FrameworkName = Annotated[str, typer.Option(help="numpy, or torch (DDP with a communication hook)")]


def train(
    fabric: FabricOptions,
    job: TaskOptions,
    run: RunOptions,
    planners: TrainedPlanners = "aro,atp",
    epochs: Epochs = 4,
    batch: Batch = 16,
    hidden: Hidden = "256,64",
    compute_s: Compute = 0.05,
    framework: FrameworkName = "numpy",
) -> None:
    """Train a small model through the emulated switches: time per epoch, throughput, loss and accuracy by planner."""
    from inakit.experiments.emulate.defaults import Free
    from inakit.experiments.emulate.emulate import Emulation
    from inakit.experiments.run.faults_file import load_faults
    from inakit.experiments.training import run_training, training_problem
    from inakit.traffic.training.training_task import Recipe, parse_layers

    chosen = fabric.choice(run.seed)
    recipe = Recipe(parse_layers(hidden), epochs, batch, seed=run.seed)
    problem, task = training_problem(build_problem(chosen, job.choice(run.seed)), recipe, compute_s)
    emulation = Emulation(
        problem,
        split_names(planners),
        run.switch,
        "reliable",
        run.seed,
        run.results,
        fabric.factor,
        faults=None if run.faults is None else load_faults(run.faults, problem),
        free=Free(rates=not chosen.gives_rates),
        **run.of_emulation,
    )
    raise typer.Exit(exit_code(run_training(emulation, task, framework, Screen()).verdict))


Paths = Annotated[
    list[Path],
    typer.Argument(help="a run's folder, or several to compare; or a study's file or folder", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option(help="the file to write; default: report.html in the folder, comparison.html here for several runs"),
]
COMPARISON = Path("comparison.html")


def report(paths: Paths, output: Output = None, results: Results = RESULTS) -> None:
    """Write one page that shows a run, compares several, or shows a study. Any browser opens it, without a network."""
    from inakit.experiments.report.write import write_comparison, write_report
    from inakit.experiments.study.table import is_study

    if any(is_study(path) for path in paths):
        if len(paths) > 1:
            raise InputError(f"{len(paths)} studies or runs at once: a study is shown by itself, runs can be compared")
        from inakit.experiments.study.study_report import report_study

        written = report_study(paths[0], results, output)
    elif len(paths) > 1 or output is not None:
        written = write_comparison(paths, output or COMPARISON)
    else:
        written = write_report(paths[0])
    Screen().print(f"wrote {written}", highlight=False, soft_wrap=True)


Paper = Annotated[
    str | None, typer.Argument(help="goat, p4inc-aoi, ...; all figures are listed without it", autocompletion=one_paper)
]
FigureName = Annotated[
    str | None, typer.Argument(help="one of the paper's; listed without it", autocompletion=one_figure)
]
Simulated = Annotated[bool, typer.Option("--simulated", help="all of the paper's that need no network")]
FigureScale = Annotated[
    str | None,
    typer.Option("--scale", help="of rates and sizes, 1 for the paper's own, where a figure by packets has a choice"),
]
PlannerFiles = Annotated[
    str,
    typer.Option(
        help="files of planners that take part as well, comma between: ./mine.py; those of planner/own and of packages "
        "always do"
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="fewer and shorter runs")]


def reproduce(
    paper: Paper = None,
    figure: FigureName = None,
    simulated: Simulated = False,
    quick: Quick = False,
    switch: Switch = "auto",
    scale: FigureScale = None,
    planners: PlannerFiles = "",
    results: Results = RESULTS,
) -> None:
    """Run a figure or a claim of a paper: table, CSV and plot."""
    from inakit.experiments.papers.common.figure import Request
    from inakit.experiments.papers.figures import figures, find_figure, run_simulated
    from inakit.experiments.run.run_folder import check_results

    if paper is None or (figure is None and not simulated):
        for names, found in figures(paper):
            print(f"{names:28} {found.summary}")
        return
    check_results(results)
    add_planners(split_names(planners), Screen())
    request = Request(results, quick, switch, None if scale is None else parse_scale(scale))
    if figure is None:
        raise typer.Exit(exit_code(run_simulated(paper, Screen(), request)))
    found = find_figure(paper, figure)
    found.check(request)
    raise typer.Exit(exit_code(found.run(Screen(), request)))


def add_planners(files: Iterable[str], console: Console) -> None:
    """Let planner files take part in figures, and print which planners of one's own cannot. Raises `InputError`."""
    from inakit.experiments.papers.common.figure import print_unusable
    from inakit.planner.own_planners import is_path
    from inakit.planner.registry import OWN, find_method

    for file in files:
        if not is_path(file):
            raise InputError(f"--planners {file}: a file is expected, such as ./mine.py; others take part anyway")
        find_method(OWN.add(file))
    print_unusable(console)
