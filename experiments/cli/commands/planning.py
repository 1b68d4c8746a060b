"""`inakit plan`, `check`, `topo`, `jobs` and `planners`: commands that need no running network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from inakit.experiments.cli.options import (
    FabricOptions,
    GradientOptions,
    Headroom,
    Iterations,
    JobsOptions,
    PlanMode,
    Program,
    Seed,
    ShapeOptions,
    SizedJobsOptions,
    one_planner,
    output_option,
    some_planners,
    split_names,
)
from inakit.experiments.run.console import Screen
from inakit.experiments.run.planning import (
    check_files,
    draw_fabric,
    plan_to_run,
    print_chip_costs,
    print_comparison,
    print_headroom,
    print_plan,
    write_plan,
)
from inakit.experiments.run.scenario import build_problem, jobs_text
from inakit.planner.core.method import AFTERWARDS, Method, own_options
from inakit.planner.install.ina_program import DataPlaneProgram, find_program
from inakit.planner.own_planners import write_package, write_planner
from inakit.planner.prepared import Prepared
from inakit.planner.registry import KIT, METHODS, OWN, SCHEDULERS, by_name, find_method
from inakit.topo.errors import InputError, lacking_import
from inakit.topo.files.reader import write_new

Planners = Annotated[
    str,
    typer.Option(
        help="by name or file (./mine.py); several, separated by commas, are compared", autocompletion=some_planners
    ),
]
Output = Annotated[
    Path | None, output_option("folder for plan.json and the table entries; a subfolder per planner if several")
]


def plan(
    fabric: FabricOptions,
    job: SizedJobsOptions,
    planners: Planners = "aro",
    mode: PlanMode = "reliable",
    headroom: Headroom = AFTERWARDS,
    seed: Seed = 0,
    output: Output = None,
    program: Program = "ina",
) -> None:
    """Plan without running: the plan, its predicted figures, and the table entries; or compare planners."""
    problem = build_problem(fabric.choice(seed), job.sized(seed, 1))
    methods = by_name(split_names(planners) or (planners,))
    for each in methods.values():
        find_method(each)
    plans = {name: plan_to_run(problem, each, seed, mode, headroom) for name, each in methods.items()}
    if len(plans) == 1:
        print_plan(Screen(), *plans.values())
    else:
        print_comparison(Screen(), plans)
    print_chip_costs(Screen(), plans, methods, seed=seed, headroom=headroom)
    if output is not None:
        for name, made in plans.items():
            write(output if len(plans) == 1 else output / name, made, name, find_program(program))


def write(folder: Path, made: Prepared, name: str, program: DataPlaneProgram) -> None:
    """Write a planner's plan with its entries and the files for hardware, and print the reasons for missing files."""
    write_plan(folder, made.fitted(program))
    try:
        from inakit.experiments.hardware.handover import write_handover  # noqa: PLC0415, needs an extra
    except ImportError as error:
        if (told := lacking_import(error, "the export to hardware")) is None:
            raise
        Screen().print(f"{name}: {told}", highlight=False, markup=False, soft_wrap=True)
        return
    for line in write_handover(folder, made.problem, made.plan, program=program):
        Screen().print(f"{name}: {line}", highlight=False, markup=False, soft_wrap=True)


PlanFile = Annotated[Path, typer.Argument(help="a plan.json, or the folder that `inakit plan --output` writes")]
FabricFile = Annotated[
    Path | None, typer.Argument(help="the plan's fabric: .yml or .graphml; default: fabric.yml beside the plan")
]
JobsFile = Annotated[Path | None, typer.Argument(help="the plan's jobs: .yml; default: jobs.yml beside the plan")]


def check(plan: PlanFile, fabric: FabricFile = None, jobs: JobsFile = None) -> None:
    """Check a plan against a fabric and jobs: every rule, with code that no planner shares."""
    file = plan / "plan.json" if plan.is_dir() else plan
    check_files(file, fabric or file.with_name("fabric.yml"), jobs or file.with_name("jobs.yml"))
    Screen().row(f"{plan}: valid", {"plan": str(plan), "verdict": "valid"})


DrawnPlanner = Annotated[
    str | None,
    typer.Option(
        "--planners", help="one planner, whose trees and link loads are drawn too", autocompletion=one_planner
    ),
]
PictureName = Annotated[Path, output_option("name of the files; .png, .svg and .yml are added")]
FABRIC = Path("fabric")


def topo(
    fabric: FabricOptions,
    job: JobsOptions,
    planner: DrawnPlanner = None,
    mode: PlanMode = "reliable",
    seed: Seed = 0,
    output: PictureName = FABRIC,
) -> None:
    """Draw a fabric as PNG and SVG and, given a planner, its trees and link loads; save it as YAML."""
    choice = fabric.choice(seed)
    made = None
    if planner is not None:
        made = plan_to_run(build_problem(choice, job.choice(seed)), planner, seed, mode)
        print_headroom(Screen(), planner, made)
    for path in draw_fabric(choice.build(), made, output):
        Screen().print(f"wrote {path}", highlight=False)


JobsFileToWrite = Annotated[Path | None, output_option("a new .yml file; default: print the jobs")]


def jobs(
    fabric: ShapeOptions,
    job: GradientOptions,
    iterations: Iterations = 3,
    seed: Seed = 0,
    output: JobsFileToWrite = None,
) -> None:
    """Write a starter file of jobs: the single job that is run without --jobs, with every key explained."""
    problem = build_problem(fabric.choice(seed), job.sized(seed, iterations))
    if output is None:
        print(jobs_text(problem, fabric.topo), end="")
        return
    write_new({output: jobs_text(problem, fabric.topo)}, other="--output")
    Screen().print(f"wrote {output}", highlight=False)


Load = Annotated[
    bool, typer.Option("--load", help="load all planners, to show their options and why some cannot be used")
]


def list_planners(load: Load = False) -> None:
    """List the planners, and the schedulers of optical circuits."""
    console = Screen(highlight=False, markup=False, soft_wrap=True)
    kit = ((name, f"{line.summary}{options_of(METHODS[name]) if load else ''}") for name, line in KIT.items())
    own = ((name, own_line(name, load=load)) for name in OWN)
    schedulers = ((name, line.summary) for name, line in SCHEDULERS.items())
    for kind, heading, lines in (
        ("planner", "", kit),
        ("own planner", "\nyour own planners, which take part in every comparison:" if OWN else "", own),
        ("scheduler", "\nschedulers of optical circuits (P4INC-AOI), for `inakit schedule`:", schedulers),
    ):
        if heading:
            console.print(heading)
        for name, summary in lines:
            console.row(f"{name:16} {summary}", {"kind": kind, "name": name, "summary": summary})
    console.print("\n`inakit design` also chooses the network, for a cluster of optical links (ATRO).")
    if not load:
        console.print("`inakit planners --load` also shows options, and whether your own planners can be used.")
    console.print("`inakit planners new mine.py` writes a starter planner, for `--planners ./mine.py`.")


def own_line(name: str, *, load: bool) -> str:
    """The text after the name of a user-defined planner: its origin or, once it is loaded, its summary or its error."""
    own = OWN[name]
    if not load and not own.clash:
        return own.where
    try:
        return f"{own.method.summary}{options_of(own.method)} ({own.where})"
    except InputError as error:
        return f"CANNOT BE USED: {error}"


def options_of(method: Method[Any]) -> str:
    """The options that can follow a planner's name, as in `soar:switches=8`, with their defaults."""
    known = [f"{key}={getattr(method.options(), key)}" for key in own_options(method)]
    return f" [:{', :'.join(known)}]" if known else ""


def new(
    file: Annotated[Path, typer.Argument(help="a new .py file")] = Path("mine.py"),
    package: Annotated[
        Path | None, typer.Option(help="write a package with pyproject.toml and a test into this folder instead")
    ] = None,
) -> None:
    """Write a starter planner: a file, or a package."""
    if package is not None:
        name = write_package(package, KIT)
        print(f"wrote {package}: install it with `pip install --editable {package}`, and try it:")
        print(f"inakit plan --topo fattree --planners {name},aro")
        return
    write_planner(file, KIT)
    path = file if file.parent != Path() else f"./{file}"
    print(f"wrote {file}; try it:")
    print(f"inakit plan --topo fattree --planners {path},aro")
    print(f"inakit emulate --topo fattree --switch virtual --planners {path},aro")
