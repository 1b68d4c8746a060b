"""A student's study file in a sandbox, since a short file can ask for more runs than memory can hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inakit.experiments.study.study_file import FILE, study_of
from inakit.topo.errors import InakitError, InputError
from inakit.topo.files.reader import parse_text

NAME = "study.yml"
MOST_RUNS = 2000


class StudyRunner:
    """Answers with the runs of a study file, or with `["mistake", message]`."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[..., Any]] = {"runs": self.runs}

    def runs(self, folder: str, text: str) -> list[dict[str, Any]]:
        """For each run, the keys that differ from the default. `folder` has the fabric file that the study names."""
        os.chdir(folder)
        settings = study_of(parse_text(text, Path(NAME), FILE)).settings
        if len(settings) > MOST_RUNS:
            raise InputError(f"{NAME} asks for more than {MOST_RUNS} runs")
        return [each.model_dump(mode="json", exclude_defaults=True) for each in settings]

    def explain(self, error: Exception) -> list[str]:
        """The answer for a mistake in the file."""
        if isinstance(error, InakitError):
            return ["mistake", str(error)]
        if isinstance(error, MemoryError):
            return ["mistake", f"{NAME} asks for more runs than can be counted"]
        raise error


runner = StudyRunner
