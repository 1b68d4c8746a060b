"""Writes what students get of the labs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.labs.registry import LABS, lab_folder, lab_named
from topo.errors import InputError, writing

LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache")


def export_labs(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Copy the folders of labs (all, unless some are named) to a new folder; the files that were written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: choose a new or an empty folder")
    chosen = [lab_named(name).name for name in names] or list(LABS)
    sources = [lab_folder(name) for name in chosen]
    for source in sources:
        target = folder / source.name
        with writing(target):
            shutil.copytree(source, target, ignore=left_out)
        yield target


def left_out(folder: str, names: list[str]) -> set[str]:
    """What is no part of a lab: caches, and what p4c has made of a program."""
    compiled = {f"{name.removesuffix('.p4')}.json" for name in names if name.endswith(".p4")}
    return LEFT_OUT(folder, names) | (compiled & set(names))
