"""Sweeps of the papers' figures with made-up results, so that figures are drawn without measuring anything."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from inakit.experiments.papers.common import figure_engine
from inakit.experiments.papers.common.sweep import Result, Trial, Value, name_of

SWEEPING = figure_engine
"""The module whose `sweep` every figure calls: it has to be replaced."""


class MadeUp(dict[str, Value]):
    """A result that has every key: rates in Gbit/s, everything else between 1 and 100."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(verdict="VALID", status="optimal", gap=0.0)
        self.name = name_of(trial)

    def __missing__(self, key: str) -> float:
        return Random(self.name + key).uniform(1, 100) * (1e9 if key.endswith("bps") else 1)


def made_up_sweep(trials: Iterable[Trial], *_: object, **__: object) -> dict[str, Result]:
    return {name_of(trial): MadeUp(trial) for trial in trials}
