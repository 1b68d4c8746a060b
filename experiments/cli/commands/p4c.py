"""`inakit p4c`: the compiler for P4 programs, and how this system gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import output_option
from inakit.experiments.labs.grading.p4c import compile_p4, compiler_of
from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.sandbox.process import allow_unconfined
from inakit.switch.program.p4_source import find_compiler, system, ways_to_p4c
from inakit.topo.errors import InputError, writing

FAILED = 1


def p4c(
    source: Annotated[Path | None, typer.Argument(help="a P4 program")] = None,
    output: Annotated[Path | None, output_option("the compiled program; default: beside the source")] = None,
    help_to_install: Annotated[
        bool, typer.Option("--install-help", help="print the commands that install p4c on this system")
    ] = False,
) -> None:
    """Compile a P4 program to BMv2 JSON, by an installed p4c, its image in Docker or podman, or the virtual machine.

    Exit code 1: the program has errors, which are shown with their lines.
    """
    if help_to_install:
        print(install_help())
        return
    if source is None:
        raise InputError("no program: name one, such as `inakit p4c sum.p4`, or ask for --install-help")
    here = source.suffix == ".p4" and source.exists()
    folder = read_submission(source.parent if here else source, expected=(source.name,) if here else ())
    compiler = compiler_of(source.name, folder.sources.get(source.name, ""))
    allow_unconfined()
    try:
        text = compile_p4(folder.sources, source.name, compiler)
    except InputError as error:
        print(error)
        raise typer.Exit(FAILED) from None
    path = output or source.with_suffix(".json")
    with writing(path):
        path.write_text(text)
    print(f"wrote {path} ({compiler})")


def install_help() -> str:
    """The ways to p4c on this system, each with its commands, and what is found already."""
    found, (name, machine) = find_compiler(), system()
    lines = [f"p4c on {name} ({machine}): {found if found else 'not found; any one of these ways is enough'}"]
    for way in ways_to_p4c(name, machine):
        lines += ["", f"{way.heading}:", *(f"    {command}" for command in way.commands)]
    lines += ["", "The kit finds each of them by itself: try `inakit p4c p4/ina.p4 --output ina.json`."]
    return "\n".join(lines)
