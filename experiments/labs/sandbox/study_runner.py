"""A student's study file in a sandbox: what runs it asks for. A short file may ask for more than a machine can hold.

A question is `[folder, text]`, where the folder has the fabric file that the study names. An answer is `["ok", runs]`,
with the keys of each run that are not the default, or `["mistake", message]`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from inakit.experiments.labs.sandbox.frames import answer_all
from inakit.experiments.study.study_file import FILE, study_of
from inakit.topo.errors import InakitError
from inakit.topo.files.reader import ParsedFile, PlainLoader

NAME = "study.yml"
MOST_RUNS = 2000


def runs_of(folder: str, text: str) -> list[dict[str, Any]]:
    """The runs of a study file."""
    os.chdir(folder)
    loader = PlainLoader(text)
    tree = loader.get_single_node()
    document = loader.construct_document(tree) if tree else None
    settings = study_of(ParsedFile(Path(NAME), FILE, document, tree)).settings
    return [each.model_dump(mode="json", exclude_defaults=True) for each in settings[: MOST_RUNS + 1]]


def answer_to(question: list[Any]) -> list[Any]:
    try:
        runs = runs_of(*question)
    except InakitError as error:
        return ["mistake", str(error)]
    except yaml.YAMLError as error:
        return ["mistake", f"{NAME} is not YAML: {' '.join(str(error).split())}"]
    except RecursionError:
        return ["mistake", f"{NAME} is nested too deeply"]
    except MemoryError:
        return ["mistake", f"{NAME} asks for more runs than can be counted"]
    if len(runs) > MOST_RUNS:
        return ["mistake", f"{NAME} asks for more than {MOST_RUNS} runs"]
    return ["ok", runs]


def main(questions: int, answers: int) -> None:
    """Answer questions until there are no more."""
    answer_all(questions, answers, answer_to)
