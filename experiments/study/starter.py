"""The study file that `inakit study new` writes: a study that runs in seconds, and every key that there is."""

from __future__ import annotations

from pathlib import Path

from inakit.experiments.study.setting import Setting
from inakit.topo.errors import InputError, writing

BEGINNING = """\
# A study. Run it: inakit study run THIS_FILE. Look at it: inakit study show THIS_FILE. docs/studies.md describes it.
version: 1

# What is the same in every run.
stays:
  world: none        # none: plans only; virtual: runs in virtual time; fast, bmv2: emulations, one at a time
  ina: 0.3           # the share of switches that aggregate; the seed draws them
  gradient_bytes: 65536
  iterations: 1

# What varies. Each item combines its lists: all (each with each), side by side (the first ones, the second ones, ...),
# or a sample of 40 (so many of all, drawn by the seed `draw`). Items meet each other: each combination with each.
varies:
  - fabric: ["fattree:k=4", "leafspine:leaves=4,spines=4,hosts_per_leaf=4"]
    workers: 4..12 by 4
    combine: all
  - planner: [aro, forest, atp]
    seed: 0..4

# What `inakit study show` prints. Groups are by all that varies, except for the seed, unless `groups` names keys.
shows: [sending_rate_bps]
against: atp         # the planner with which the others are compared, run by run
labels: {"leafspine:leaves=4,spines=4,hosts_per_leaf=4": leaf-spine, "fattree:k=4": fat-tree}
figures:             # kind: lines or bars; size: column or page; log: x, y or xy
  - {x: workers, y: sending_rate_bps, colour: planner, facet: fabric}

# All that may stay or vary:
"""


def starter_text() -> str:
    """The starter: what a study says, and in comments all keys of a setting with what is expected of them."""
    fields = Setting.model_fields.items()
    width = max(map(len, Setting.model_fields))
    return BEGINNING + "".join(f"#   {name:{width}}  {field.description}\n" for name, field in fields)


def write_starter(file: Path) -> None:
    """Write a new study file. Raises `InputError` if it exists already, since it may be the user's work."""
    if file.exists():
        raise InputError(f"{file} is there already, and may be your work: choose another name, or remove it")
    try:
        with writing(file), file.open("x", encoding="utf-8") as opened:
            opened.write(starter_text())
    except FileNotFoundError as error:
        raise InputError(f"{file}: there is no folder '{file.parent}'; make it, or choose another name") from error
