"""Options that several commands share, each declared once, in groups that a command takes as a parameter.

A shell completes their values by the names of registries, each imported when a shell asks for completions:

    topo: Annotated[str, typer.Option(autocompletion=one_of("inakit.topo.fabric.generators:FABRICS"))]

If a value can also be a file, the shell completes files when no name fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from inakit.experiments.run.console import FORMATS, Printing, printing
from inakit.experiments.run.scenario import DEFAULT_GRADIENT_BYTES, FabricChoice, JobChoice, parse_scale
from inakit.planner.core.method import AFTERWARDS
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.install.ina_program import INA
from inakit.topo.errors import InputError, RunError, unknown_name
from inakit.topo.files.fabric_records import PROFILES
from inakit.topo.files.quantities import DURATION, lasting
from inakit.traffic.measure.verdict import VALID


def one_of(*sources: str) -> Callable[[str], list[str]]:
    """The completion of one name: of those in registries, each `module:attribute`, and of literal names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names_of(sources) if name.startswith(incomplete)]

    return complete


def some_of(*sources: str) -> Callable[[str], list[str]]:
    """The completion of several names separated by commas, each at most once; sources are those of `one_of`."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in names_of(sources) if name.startswith(last) and name not in taken]

    return complete


def one_figure(ctx: typer.Context, incomplete: str) -> list[str]:
    """The completion of a figure of the preceding paper."""
    papers = import_module("inakit.experiments.papers.common.figure_registry").FIGURES
    return [name for name in papers.get(ctx.params.get("paper"), ()) if name.startswith(incomplete)]


def output_option(what: str) -> Any:
    """The option of the file or folder that a command writes."""
    return typer.Option("--output", "-o", help=what)


def time_option(what: str, *, above_0: bool = False) -> Any:
    """An option of a time: seconds, or a number with a unit such as 250ms."""

    def parse(param: typer.CallbackParam, value: str | float | None) -> float | None:
        if value is None:
            return None
        try:
            seconds = lasting(value)
            if above_0 and seconds == 0:
                raise ValueError(f"expected {DURATION}, above 0")
        except ValueError as error:
            raise InputError(f"{param.opts[0]} {value}: {error}") from None
        return seconds

    return typer.Option(help=what, parser=lambda value: value, callback=parse, metavar="TIME")


def names_of(sources: Iterable[str]) -> Iterator[str]:
    """Yield the names of the sources, in order."""
    for source in sources:
        module, is_registry, attribute = source.partition(":")
        yield from getattr(import_module(module), attribute) if is_registry else (source,)


one_fabric = one_of("inakit.topo.fabric.generators:FABRICS")
one_planner = one_of("inakit.planner.registry:METHODS")
some_planners = some_of("inakit.planner.registry:METHODS")
one_world = one_of("virtual", "inakit.switch.targets:TARGETS", "auto")
some_worlds = some_of("virtual", "inakit.switch.targets:TARGETS", "auto")
one_chip = one_of("inakit.topo.files.fabric_records:PROFILES")
one_program = one_of("inakit.planner.install.ina_program:PROGRAMS")
some_policies = some_of("inakit.planner.core.slot_policies:POLICIES")
one_headroom = one_of("inakit.planner.core.method:HEADROOM")
one_mode = one_of("reliable", "replay")
one_paper = one_of("inakit.experiments.papers.common.figure_registry:FIGURES")


Scale = Annotated[str, typer.Option(help="scale of every rate of the fabric in the emulation: 1/5000")]
Gradient = Annotated[
    int | None,
    typer.Option(
        help=f"gradient bytes of the single job; default: a thousandth of --model, or {DEFAULT_GRADIENT_BYTES}"
    ),
]
Iterations = Annotated[int, typer.Option(help="iterations of the single job")]
Seed = Annotated[int, typer.Option(min=0, help="the seed of all random choices")]
Program = Annotated[
    str,
    typer.Option(
        help="the data-plane program: ina, or ina_hw, which is limited to a chip's abilities (one access per "
        "register); with emulate also your variant of ina, as P4 source or as BMv2 JSON",
        autocompletion=one_program,
    ),
]
Switch = Annotated[
    str,
    typer.Option(
        help="bmv2 or fast (both need root), or virtual (virtual time, without root); auto: the first that can run "
        "here",
        autocompletion=one_world,
    ),
]
PlanMode = Annotated[
    str,
    typer.Option(
        "--mode",
        help="plan for a run that is reliable (with room for results) or a replay (without results)",
        autocompletion=one_mode,
    ),
]
Headroom = Annotated[
    str,
    typer.Option(
        help="room for results: planned with the gradients, or made afterwards by lowering rates",
        autocompletion=one_headroom,
    ),
]
Results = Annotated[Path, typer.Option(help="where run folders go")]
Policies = Annotated[
    str,
    typer.Option(
        help="slot policies, separated by commas: " + ", ".join(POLICIES) + "; default: the planner's, or all",
        autocompletion=some_policies,
    ),
]
Network = Annotated[str | None, typer.Option("--run", help="the four-letter id of the network, if several are running")]
PlanFolder = Annotated[
    Path, typer.Argument(help="the folder of a plan, which `inakit plan --output` writes", show_default=False)
]
SwitchName = Annotated[str, typer.Argument(help="a switch of a running network, by name")]

Ina = Annotated[
    str | None,
    typer.Option(help="switches that aggregate: names (leaf1,spine1), or a share (0.2; 0.2+ps includes the PSs' ToRs)"),
]

Quick = Annotated[bool, typer.Option("--quick", help="fewer and shorter runs")]
Processes = Annotated[int | None, typer.Option(min=1, help="runs at once; default: one per processor")]

RESULTS = Path("results")


def one_format(text: str) -> str:
    if text not in FORMATS:
        raise unknown_name("format", text, FORMATS)
    return text


@dataclass(frozen=True)
class PrintOptions:
    """Options of every command that prints tables."""

    panel: ClassVar[str] = "Output"
    format: Annotated[
        str,
        typer.Option(
            help="of the tables: " + ", ".join(FORMATS) + "; all else is then printed to standard error",
            callback=one_format,
            autocompletion=one_of(*FORMATS),
        ),
    ] = FORMATS[0]
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="print the tables, and neither notes nor progress")] = (
        False
    )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A context in which tables are printed so."""
        how = Printing(**asdict(self))
        with printing(how):
            try:
                yield
            except (typer.Exit, RunError):
                how.end()
                raise
            how.end()


@dataclass(frozen=True)
class DetailOptions(PrintOptions):
    """Options of a command that prints some of its tables only if asked."""

    details: Annotated[bool, typer.Option("--details", help="print all tables, not the summary alone")] = False


@dataclass(frozen=True)
class ShapeOptions:
    """Options that choose the fabric and its size."""

    panel: ClassVar[str] = "Fabric"
    topo: Annotated[
        str,
        typer.Option(
            help="fattree, leafspine, a named fabric (and options: units:ports=2), a .yml/.graphml file",
            autocompletion=one_fabric,
        ),
    ] = "fattree"
    k: Annotated[int | None, typer.Option(help="fat-tree: ports per switch, even")] = None
    leaves: Annotated[int | None, typer.Option(help="leaf-spine: leaf switches")] = None
    spines: Annotated[int | None, typer.Option(help="leaf-spine: spine switches")] = None
    hosts_per_leaf: Annotated[int | None, typer.Option(help="leaf-spine: hosts under each leaf")] = None

    def choice(self, seed: int) -> FabricChoice:
        """Return the chosen fabric; `seed` decides its random choices."""
        return FabricChoice(self.topo, self.k, self.leaves, self.spines, self.hosts_per_leaf, seed=seed)


@dataclass(frozen=True)
class FabricOptions(ShapeOptions):
    """Options that choose the fabric, its size, and the properties of its links and switches."""

    capacity: Annotated[str | None, typer.Option(help="capacity of every link: 20M, or 10M:30M for random ones")] = None
    ina: Ina = None
    pipelines: Annotated[int | None, typer.Option(help="pipelines per switch, 1 to 8")] = None
    chip: Annotated[
        str | None,
        typer.Option(
            help="chip of every switch: " + ", ".join(PROFILES) + ", or a profile in a .yml file",
            autocompletion=one_chip,
        ),
    ] = None
    scale: Scale = "1"

    def choice(self, seed: int) -> FabricChoice:
        """Return the chosen fabric; `seed` decides its random choices."""
        sized = super().choice(seed)
        return replace(
            sized, capacity=self.capacity, ina=self.ina, pipelines=self.pipelines, scale=self.scale, chip=self.chip
        )

    @property
    def factor(self) -> float:
        """The scale as a number. Raises `InputError`."""
        return parse_scale(self.scale)


@dataclass(frozen=True)
class TaskOptions:
    """Options for the workers and parameter servers of the single job."""

    panel: ClassVar[str] = "Job"
    workers: Annotated[
        int | None, typer.Option(help="workers of the single job; default: all other hosts, at most 16")
    ] = None
    servers: Annotated[int, typer.Option(help="parameter servers of the single job")] = 1

    def choice(self, seed: int) -> JobChoice:
        """Return the chosen job; `seed` decides its random choices."""
        return JobChoice(None, self.workers, self.servers, seed=seed)


@dataclass(frozen=True)
class GradientOptions(TaskOptions):
    """Options for the workers, parameter servers and gradient of the single job."""

    gradient_bytes: Gradient = None
    model: Annotated[
        str, typer.Option(help="the gradient's layers, for planner goat: a table of planner/models, or a .csv file")
    ] = ""

    def sized(self, seed: int, iterations: int) -> JobChoice:
        """Return the chosen job, with its gradient and model and this number of iterations."""
        job = self.choice(seed)
        return replace(job, gradient_bytes=self.gradient_bytes, iterations=iterations, model=self.model)


@dataclass(frozen=True)
class JobsOptions(TaskOptions):
    """Options for the workers and parameter servers of the single job, or for a file of jobs instead."""

    jobs: Annotated[Path | None, typer.Option(help="a YAML file of jobs; default: a single job")] = None

    def choice(self, seed: int) -> JobChoice:
        """Return the chosen jobs; `seed` decides their random choices."""
        return replace(super().choice(seed), file=self.jobs)


@dataclass(frozen=True)
class SizedJobsOptions(JobsOptions, GradientOptions):
    """Options for the single job and its gradient, or for a file of jobs instead."""


@dataclass(frozen=True)
class RunOptions:
    """Options that say how plans run on a network."""

    panel: ClassVar[str] = "Run"
    switch: Switch = "auto"
    policies: Policies = ""
    faults: Annotated[Path | None, typer.Option(help="a YAML file of losses, failures, stragglers, other traffic")] = (
        None
    )
    headroom: Headroom = AFTERWARDS
    seed: Seed = 0
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="do not end runs early that clearly fall behind their plans")
    ] = False
    results: Results = RESULTS
    program: Program = INA.name

    @property
    def of_emulation(self) -> dict[str, Any]:
        """The options that an `Emulation` takes unchanged."""
        names = ("headroom", "keep_going", "program")
        return {"policies": split_names(self.policies), **{name: getattr(self, name) for name in names}}

    @property
    def chosen_program(self) -> str:
        """The data-plane program if it is not the default, else an empty text."""
        return "" if self.program == INA.name else self.program


def split_names(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas; empty names are skipped."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def exit_code(verdict: str) -> int:
    """The exit code of a verdict: 0 for VALID, else 1."""
    return 0 if verdict == VALID else 1
