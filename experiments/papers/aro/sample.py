"""The sweep behind ARO's figures: every scheme in every setting with every seed, its rates in Gbit/s, its seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.console import Console

from inakit.experiments.papers.aro.schemes import EXACT, GAP, ROUNDING, measure
from inakit.experiments.papers.aro.setting import AroSetting
from inakit.experiments.papers.common.estimates import Estimate, Series, estimate
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, Value, sweep
from inakit.traffic.measure.verdict import VALID, Verdict

SEEDS, QUICK_SEEDS = 30, 2
QUICK_LIMIT_S = 3.0


More = tuple[tuple[str, Value], ...]
"""Further keys of a trial: `alpha`, `levels`, `time_limit_s`. Of a key that is given twice the last value counts."""


@dataclass(frozen=True)
class Case:
    """A scheme in a setting, with further keys of its trials."""

    setting: AroSetting
    scheme: str
    more: More = ()

    def trials(self, seeds: int) -> list[Trial]:
        """The case's trials with the seeds 0, 1, ..."""
        return [self.setting.trial(scheme=self.scheme, seed=seed, **dict(self.more)) for seed in range(seeds)]


@dataclass(frozen=True)
class Sample:
    """All results of the cases that were asked for; `limit` are keys that a quick request adds to each trial."""

    measured: Measured
    seeds: int
    limit: More

    def of(self, case: Case, key: str = "least_bps") -> list[float]:
        """The values of `key` in a case, by seed: rates in Gbit/s, others such as `seconds` as they are."""
        unit = 1e9 if key.endswith("bps") else 1.0
        asked = Case(case.setting, case.scheme, (*case.more, *self.limit))
        return [value / unit for value in self.measured.of(key, asked.trials(self.seeds))]

    def mean_of(self, case: Case, key: str = "least_bps") -> float:
        """The mean of `key` over the seeds, in the units of `of`."""
        return fmean(self.of(case, key))

    def estimate_of(self, case: Case, key: str = "least_bps") -> Estimate:
        """The mean of `key` over the seeds with its interval, in the units of `of`."""
        return estimate(self.of(case, key))

    def mean(self, setting: AroSetting, scheme: str, key: str = "least_bps") -> float:
        """The mean of `key` of a scheme in a setting, in the units of `of`."""
        return self.mean_of(Case(setting, scheme), key)

    def line(self, settings: Iterable[AroSetting], scheme: str, key: str = "least_bps") -> list[float]:
        """The means of `key` of a scheme over settings, in the units of `of`."""
        return [self.mean(setting, scheme, key) for setting in settings]

    def lines(self, settings: Sequence[AroSetting], schemes: Iterable[str], key: str = "least_bps") -> Series:
        """For each scheme a line of estimates over the settings."""
        return {scheme: [self.estimate_of(Case(s, scheme), key) for s in settings] for scheme in schemes}

    @property
    def unproven(self) -> int:
        """The number of ARO's results whose optimum is not proven to `GAP`."""
        gaps = (float(result["gap"]) for name, result in self.measured.results.items() if f'"{EXACT}"' in name)
        return sum(gap > GAP * (1 + ROUNDING) for gap in gaps)

    @property
    def verdict(self) -> str:
        """VALID if all results that are called optimal are proven to be."""
        return Verdict.UNPROVEN if self.unproven else VALID


def sample(
    cases: Iterable[Case],
    request: Request,
    console: Console,
    seeds: int = SEEDS,
    measure: Callable[[Trial], Result] = measure,
) -> Sample:
    """Measure all cases, except trials that an earlier run has measured; a quick request takes two seeds."""
    count = QUICK_SEEDS if request.quick else seeds
    limit: More = (("time_limit_s", QUICK_LIMIT_S),) if request.quick else ()
    trials = [trial for case in cases for trial in Case(case.setting, case.scheme, (*case.more, *limit)).trials(count)]
    trials.sort(key=lambda trial: int(trial["seed"]))
    return Sample(sweep(trials, measure, request.results / "aro-trials", console), count, limit)


def cases(settings: Iterable[AroSetting], schemes: Iterable[str]) -> list[Case]:
    """Every scheme in every setting, each setting once."""
    every = list(schemes)
    return [Case(setting, scheme) for setting in dict.fromkeys(settings) for scheme in every]
