"""A study as data: its settings in order, and the trial of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from inakit.experiments.study.combining import Block, combined
from inakit.experiments.study.measuring import measure_setting
from inakit.experiments.study.setting import PLANS_ONLY, Setting
from inakit.experiments.sweeps.code_version import ROOT, code_version
from inakit.experiments.sweeps.engines import Engine
from inakit.experiments.sweeps.kept import Finished, Kept
from inakit.experiments.sweeps.one_trial import Trial, key_of
from inakit.experiments.sweeps.run_trials import run_trials
from inakit.experiments.worlds.registry import is_virtual
from inakit.planner.registry import find_own

FOLDER, KEPT = "studies", "kept"
PLANNING = (
    *("topo/errors.py", "topo/fabric", "topo/files", "planner", "traffic/wire"),
    *("experiments/study/measuring.py", "experiments/study/setting.py"),
    *("experiments/run/scenario.py", "experiments/emulate/emulate.py"),
)
"""The code on which plans depend, without `planner/own`: of planners of one's own, only that of the run counts."""
RUNNING = ("topo", "switch", "traffic", "p4/build", "experiments/run", "experiments/worlds", "experiments/faults")
"""The code on which runs depend besides."""


@dataclass(frozen=True)
class FigureAsked:
    """A figure that a study file asks for: the keys of its axes, lines and panels, and how it is drawn."""

    x: str
    y: str
    colour: str = "planner"
    facet: str | None = None
    kind: str = "lines"
    size: str = "column"
    log: str = ""


@dataclass(frozen=True)
class Study:
    """What stays, what varies, and how results are shown: the keys that make a group, the figures, the comparison.

    `labels` are shorter names of values, such as fabrics, for tables and figures.
    """

    name: str
    stays: Setting
    varies: tuple[Block, ...]
    groups: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    against: str | None = None
    figures: tuple[FigureAsked, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> list[Setting]:
        """The setting of every run, in order. What varies overrides what stays."""
        stays = {name: getattr(self.stays, name) for name in self.stays.model_fields_set}
        return [Setting(**stays | varied) for varied in combined(self.varies)]

    @property
    def trials(self) -> list[Trial]:
        """The trial of every run, in order."""
        return [trial_of(setting) for setting in self.settings]

    def folder(self, results: Path) -> Path:
        """Where the study's table, summaries and figures are."""
        return results / FOLDER / self.name


def kept_in(results: Path) -> Kept:
    """The results of all studies in a folder: what one has run, another does not run again."""
    return Kept(results / FOLDER / KEPT)


def trial_of(setting: Setting) -> Trial:
    """The trial that runs a setting. Its key is the hash of the setting, of the files it names, and of the code."""
    given = setting.model_dump(mode="json")
    files = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in setting.files}
    emulated = setting.world != PLANS_ONLY and not is_virtual(setting.world)
    kind = f"{setting.world} {setting.fabric} {setting.workers} {setting.planner}"
    key = key_of(setting=given, files=files, code=code_of(setting))
    return Trial(key, measure_setting, given, kind, emulated)


def code_of(setting: Setting) -> list[str]:
    """The versions of the code on which a run of the setting depends."""
    parts: Sequence[str] = PLANNING if setting.world == PLANS_ONLY else (*PLANNING, *RUNNING)
    kit = code_version(*(ROOT / part for part in parts), without=(ROOT / "planner" / "own",))
    own = find_own(setting.planner)
    return [kit] if own is None else [kit, own.sha256]


def run_study(study: Study, results: Path, engine: Engine, console: Console) -> list[Finished]:
    """Run what is not kept yet; what came of every run, in order. Raises `OutputError`."""
    return list(run_trials(study.trials, kept_in(results), engine, console, study.name).values())
