"""`inakit train`: a small model trained through the switches."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.cli.options import FabricOptions, RunOptions, TaskOptions, exit_code, some_planners, split_names
from inakit.experiments.emulate.defaults import Free
from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.emulate.training_run import run_training, training_problem
from inakit.experiments.run.console import Screen
from inakit.experiments.run.faults_file import load_faults
from inakit.experiments.run.scenario import build_problem
from inakit.traffic.training.training_task import Recipe, parse_layers

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
Compute = Annotated[
    float, typer.Option(help="seconds that workers compute per iteration; 0: as measured on this machine")
]
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
    compute_s: Compute = 0.05,
    framework: FrameworkName = "numpy",
) -> None:
    """Train a small model through the emulated switches: time per epoch, throughput, loss and accuracy by planner."""
    chosen = fabric.choice(run.seed)
    recipe = Recipe(parse_layers(hidden), epochs, batch, seed=run.seed, filters=parse_layers(filters))
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
