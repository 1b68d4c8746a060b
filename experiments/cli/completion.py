"""What a shell is told when it completes the value of an option: the names of registries.

    topo: Annotated[str, typer.Option(autocompletion=one_of("inakit.topo.fabric.generators:FABRICS"))]

A registry is imported once a shell asks for its names. Where a value may be a file as well, the shell completes files
whenever no name fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

import typer


def one_of(*sources: str) -> Callable[[str], list[str]]:
    """The completion of one name: of those in registries, each `module:attribute`, and of names that are given."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names_of(sources) if name.startswith(incomplete)]

    return complete


def some_of(*sources: str) -> Callable[[str], list[str]]:
    """The completion of several names with commas between, each once; sources are those of `one_of`."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in names_of(sources) if name.startswith(last) and name not in taken]

    return complete


def one_figure(ctx: typer.Context, incomplete: str) -> list[str]:
    """The completion of a figure of the paper that stands before it."""
    papers = import_module("inakit.experiments.papers.figures").FIGURES
    return [name for name in papers.get(ctx.params.get("paper"), ()) if name.startswith(incomplete)]


def names_of(sources: Iterable[str]) -> Iterator[str]:
    """The names that sources stand for, in their order."""
    for source in sources:
        module, is_registry, attribute = source.partition(":")
        yield from getattr(import_module(module), attribute) if is_registry else (source,)


one_fabric = one_of("inakit.topo.fabric.generators:FABRICS")
one_planner = one_of("inakit.planner.registry:METHODS")
some_planners = some_of("inakit.planner.registry:METHODS")
one_world = one_of("virtual", "inakit.switch.targets:TARGETS", "auto")
some_worlds = some_of("virtual", "inakit.switch.targets:TARGETS", "auto")
one_chip = one_of("inakit.topo.files.chip_profiles:PROFILES")
one_program = one_of("inakit.planner.install.data_plane_program:PROGRAMS")
some_policies = some_of("inakit.planner.core.policies:POLICIES")
one_headroom = one_of("inakit.planner.core.method:HEADROOM")
one_mode = one_of("reliable", "replay")
one_paper = one_of("inakit.experiments.papers.figures:FIGURES")
