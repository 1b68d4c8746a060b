"""Writes what students get of the labs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from inakit.experiments.labs.registry import LABS, lab_folder, lab_named
from inakit.topo.errors import InputError, writing

LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache")


def export_labs(folder: Path, names: Sequence[str]) -> list[Path]:
    """Copy the folders of labs (all, unless some are named) into a folder; the new folders, one for each lab.

    A lab that is there already is refused, and a copy that fails leaves nothing.
    """
    targets = {folder / name: lab_folder(name) for name in chosen(names)}
    refuse_present(folder, targets)
    above = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    with writing(folder), TemporaryDirectory(prefix=".labs-", dir=above) as stage:
        for target, source in targets.items():
            shutil.copytree(source, Path(stage) / target.name, ignore=left_out)
        folder.mkdir(parents=True, exist_ok=True)
        for target in targets:
            (Path(stage) / target.name).rename(target)
    return list(targets)


def chosen(names: Sequence[str]) -> list[str]:
    """The labs of these names, each once; all labs for no names."""
    return list(dict.fromkeys(lab_named(name).name for name in names)) or list(LABS)


def refuse_present(folder: Path, targets: Iterable[Path]) -> None:
    """Raise `InputError` where `folder` is a file, or has one of these labs: students' work is not written over."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: choose a folder")
    for target in targets:
        if target.exists():
            raise InputError(f"{target} is there already: move it away, or choose another folder")


def left_out(folder: str, names: list[str]) -> set[str]:
    """What is no part of a lab: caches, and what p4c has made of a program."""
    compiled = {f"{name.removesuffix('.p4')}.json" for name in names if name.endswith(".p4")}
    return LEFT_OUT(folder, names) | (compiled & set(names))
