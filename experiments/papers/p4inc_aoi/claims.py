"""The reductions that P4INC-AOI's text gives: by how much one scheme is below another, and what ours are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean

from inakit.experiments.papers.common.estimates import MISSING, Estimate, estimate
from inakit.experiments.papers.common.panels import BARS, Panel, Printed
from inakit.experiments.papers.common.sweep import Measured, Trial
from inakit.experiments.styles.method_styles import categories

NAMES = {"connections": "AOI", "ct_bti_s": "CT-BTI", "total_jct_s": "JCT"}
TrialOf = Callable[[str, int], Trial]
"""The trial of a scheme and a seed."""


@dataclass(frozen=True)
class Claim:
    """The text's percentage by which scheme `better` is below `worse`, averaged over a figure's places."""

    metric: str
    better: str
    worse: str
    paper: float

    @property
    def name(self) -> str:
        """The claim in the figures: "INC-TW to noINC-TW, AOI"."""
        return f"{self.better} to {self.worse}, {NAMES[self.metric]}"

    def estimate(self, measured: Measured, points: Sequence[TrialOf], seeds: range) -> Estimate:
        """Our mean reduction in percent; its interval is over the seeds, of which each has a mean over the places.

        It is missing where `worse` is 0 at every place.
        """
        value = self.ours(measured, points, seeds)
        if isnan(value):
            return MISSING
        found = estimate([self.ours(measured, points, range(seed, seed + 1)) for seed in seeds])
        return replace(found.map(lambda mean: mean + value - found.value), draws=found.draws)

    def ours(self, measured: Measured, points: Sequence[TrialOf], seeds: range) -> float:
        """Our mean reduction in percent; NaN where `worse` is 0 at every place."""
        reductions = []
        for trial_of in points:
            low, high = (
                measured.mean(self.metric, [trial_of(scheme, seed) for seed in seeds])
                for scheme in (self.better, self.worse)
            )
            if high:
                reductions.append(100 * (1 - low / high))
        return fmean(reductions) if reductions else nan


FIGURE_8 = (
    Claim("connections", "INC-FCFS", "noINC-FCFS", 55.4),
    Claim("connections", "INC-TW", "noINC-TW", 50.3),
    Claim("connections", "noINC-TW", "noINC-FCFS", 92.8),
    Claim("connections", "INC-TW", "INC-FCFS", 91.7),
    Claim("ct_bti_s", "noINC-TW", "noINC-FCFS", 86.8),
    Claim("ct_bti_s", "INC-TW", "INC-FCFS", 85.6),
)
FIGURE_9 = (
    Claim("connections", "INC-TW", "noINC-FCFS", 89.5),
    Claim("ct_bti_s", "INC-TW", "noINC-FCFS", 72.6),
)
REDUCTION = "mean reduction"


def reductions_panel(claims: Sequence[Claim], measured: Measured, points: Sequence[TrialOf], seeds: range) -> Panel:
    """A bar for each reduction that the text gives, with the text's value."""
    names = [claim.name for claim in claims]
    ours = [claim.estimate(measured, points, seeds) for claim in claims]
    paper: Printed = {REDUCTION: {name: claim.paper for name, claim in zip(names, claims, strict=True)}}
    styles = categories([REDUCTION])
    return Panel(BARS, names, {REDUCTION: ours}, "", "reduction (%)", "what the text gives", paper, styles=styles)
