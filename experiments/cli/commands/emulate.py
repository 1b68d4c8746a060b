"""`inakit emulate` and `train`: plans, a paper's preset or a training, on a network."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.cli.options import (
    FabricOptions,
    Iterations,
    RunOptions,
    SizedJobsOptions,
    TaskOptions,
    exit_code,
    one_mode,
    some_planners,
    split_names,
    time_option,
)
from inakit.experiments.emulate.defaults import Free
from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.emulate.emulate import run as run_emulation
from inakit.experiments.emulate.presets import PresetRun, run_preset
from inakit.experiments.emulate.training_run import run_training, training_problem
from inakit.experiments.inspect.capture import capture_places
from inakit.experiments.run.console import Screen
from inakit.experiments.run.faults_file import load_faults
from inakit.experiments.run.observation import parse_sampling
from inakit.experiments.run.scenario import build_problem
from inakit.topo.errors import InputError
from inakit.traffic.training.training_task import Recipe, parse_layers

DEFAULT_PLANNERS = ("aro", "atp", "lbmm")

Planners = Annotated[
    str | None,
    typer.Option(
        help="by name or file (./mine.py), separated by commas; default: aro,atp,lbmm; list: `inakit planners`",
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
LOOK = "Look"
Pcap = Annotated[
    str, typer.Option(help="keep the packets of switches (s1) or of single ports (s2:3)", rich_help_panel=LOOK)
]
PatchPanel = Annotated[
    bool,
    typer.Option(
        "--patch-panel", help="all optical links through one circuit switch", rich_help_panel=FabricOptions.panel
    ),
]
Series = Annotated[
    str,
    typer.Option(
        help="in virtual time: sampling interval of the time series of links and workers, such as 100us; "
        "on: an interval that fits the run (the default); off: no series",
        rich_help_panel=LOOK,
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="in virtual time: send three short pieces of a steady run by packets, and compute the rest",
        rich_help_panel=RunOptions.panel,
    ),
]
Replan = Annotated[
    bool,
    typer.Option(
        "--replan",
        help="also measure InArt planning anew during the run, beside the background traffic of --faults",
        rich_help_panel=RunOptions.panel,
    ),
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
    sample: Sample = False,
) -> None:
    """Plan, build the network, send real gradients through it, and compare planned with measured figures."""
    names = None if planners is None else split_names(planners)
    if preset:
        others = {"replan": replan, "model": job.model, "patch-panel": patch_panel, "series": series, "sample": sample}
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
        free=Free(rates=not chosen.gives_rates, gradients=not jobs.gives_size),
        sampling=parse_sampling(series),
        sample=sample,
        **run.of_emulation,
    )
    raise typer.Exit(exit_code(run_emulation(emulation, Screen()).verdict))


def emulate_preset(
    preset: str,
    fabric: FabricOptions,
    run: RunOptions,
    planners: tuple[str, ...] | None,
    mode: str,
    others: dict[str, object],
) -> int:
    """Run a paper's network and models, and return the exit code. Raises `InputError` if any of `others` is set."""
    others |= {"faults": run.faults, "policies": run.policies, "program": run.chosen_program}
    for option, value in others.items():
        if value:
            why = "a preset does not take this option; describe its jobs instead"
            raise InputError(f"--{option} {value} with --preset {preset}: {why}")
    chosen = fabric.choice(run.seed)
    asked = PresetRun(
        preset, chosen, planners, run.switch, mode, run.seed, run.results, fabric.factor, run.keep_going, run.headroom
    )
    return exit_code(run_preset(asked, Screen()))


TrainedPlanners = Annotated[
    str,
    typer.Option(
        help="by name or file (./mine.py), separated by commas; list: `inakit planners`", autocompletion=some_planners
    ),
]
Epochs = Annotated[int, typer.Option(help="passes over the training data")]
Batch = Annotated[int, typer.Option(help="samples per worker and iteration")]
Hidden = Annotated[str, typer.Option(help="units of the model's hidden layers, separated by commas")]
Filters = Annotated[str, typer.Option(help="filters of a convolutional net's layers; none: a perceptron")]
Compute = Annotated[float, time_option("computing time of an iteration; 0: as measured on this machine")]
FrameworkName = Annotated[str, typer.Option(help="numpy, or torch (DDP with a communication hook)")]


def train(
    fabric: FabricOptions,
    job: TaskOptions,
    run: RunOptions,
    planners: TrainedPlanners = "aro,atp",
    epochs: Epochs = 4,
    batch: Batch = 16,
    hidden: Hidden = "256,64",
    filters: Filters = "",
    compute: Compute = 0.05,
    framework: FrameworkName = "numpy",
) -> None:
    """Train a small model through the emulated switches: time per epoch, throughput, loss and accuracy by planner."""
    chosen = fabric.choice(run.seed)
    recipe = Recipe(parse_layers(hidden), epochs, batch, seed=run.seed, filters=parse_layers(filters))
    problem, task = training_problem(build_problem(chosen, job.choice(run.seed)), recipe, compute)
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
