"""`inakit labs export`: what students get."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.labs.export import export_labs


def export(
    folder: Annotated[Path, typer.Argument(help="a folder for what students get; labs that it has already stay")],
    labs: Annotated[list[str] | None, typer.Option("--lab", help="only this lab (several times: these)")] = None,
) -> None:
    """Write what students get: tasks, figures, skeletons and the tests that they see; no solutions."""
    for path in export_labs(folder, labs or ()):
        print(f"wrote {path}")
