"""`inakit p4c`: the compiler for the course's programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.labs.grading.p4c import compile_p4, needed_compiler
from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.sandbox.process import allow_unconfined
from inakit.topo.errors import InputError, writing

FAILED = 1


def p4c(
    source: Annotated[Path, typer.Argument(help="a P4 program")],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="the compiled program; default: beside the source")
    ] = None,
) -> None:
    """Compile a P4 program to BMv2 JSON, by an installed p4c, p4c in Docker, or p4c of the virtual machine.

    Exit code 1: the program has errors, which are shown with their lines.
    """
    here = source.suffix == ".p4" and source.exists()
    folder = read_submission(source.parent if here else source, expected=(source.name,) if here else ())
    compiler = needed_compiler()
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
