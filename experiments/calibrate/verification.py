"""`inakit calibrate --verify`: whether an overloaded run is always judged OVERLOADED, and a lighter one VALID."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from inakit.experiments.calibrate.limit import rates, words_of
from inakit.experiments.calibrate.trials import Trial, TrialNetwork
from inakit.experiments.run.printed.report import without_names
from inakit.experiments.run.printed.tables import NARROW
from inakit.experiments.sweeps.rows import Row, measure_rows
from inakit.traffic.measure.verdict import OVERLOADED, VALID

LIGHT, HEAVY = 0.7, (1.5, 2.0, 4.0)
"""The rates of the runs, as multiples of the calibrated rate: the machine carries the light one only."""
RUNS_PER_MISS = 30
"""One of so many light runs may fail, because other work on the machine can spoil it; no heavy run may pass."""


@dataclass(frozen=True)
class Verified:
    """The trials at one multiple of the calibrated rate."""

    multiple: float
    trials: tuple[Trial, ...]

    @property
    def verdicts(self) -> Counter[str]:
        """How many trials got each verdict."""
        return Counter(trial.verdict for trial in self.trials)

    @property
    def kept(self) -> bool:
        """Whether the promise is kept: heavy runs all OVERLOADED, light ones VALID but for one in `RUNS_PER_MISS`."""
        if self.multiple > 1:
            return self.verdicts[OVERLOADED] == len(self.trials)
        return len(self.trials) - self.verdicts[VALID] <= len(self.trials) // RUNS_PER_MISS

    def reasons(self) -> Counter[str]:
        """The number of trials that gave each kind of reason."""
        return Counter(kind for trial in self.trials for kind in {without_names(reason) for reason in trial.reasons})


@dataclass(frozen=True)
class Multiple:
    """A run at a multiple of the calibrated rate, whose links then have the `rates`."""

    multiple: float
    rates: str

    def __str__(self) -> str:
        return f"{self.multiple:g} times the calibrated, links of {self.rates}"


def verify(bed: TrialNetwork, calibrated: float, runs: int, console: Console) -> bool:
    """Try `runs` runs at each multiple of the calibrated scale, and print their verdicts; whether all are as promised.

    However it ends, the table of what was tried is printed. A run that breaks is a broken promise.
    """
    multiples = [Multiple(each, rates(bed.problem.fabric, each * calibrated)) for each in (LIGHT, *HEAVY)]

    def show(rows: Sequence[Row[Multiple, Trial]]) -> bool:
        tried = {row.asked.multiple: [each.found for each in rows if each.asked == row.asked] for row in rows}
        found = [Verified(multiple, tuple(filter(None, trials))) for multiple, trials in tried.items()]
        if found:
            console.print(verification_table(found))
        return all(one.kept for one in found) and not any(row.error for row in rows)

    asked = [each for each in multiples for _ in range(runs)]
    return measure_rows(asked, lambda each: bed.trial(each.multiple * calibrated), words_of, show, console)


def verification_table(found: list[Verified]) -> Table:
    """A row for each multiple of the calibrated rate: the verdicts, and what caught the overload."""
    headings = ("times the\ncalibrated", "runs", VALID, OVERLOADED, "promise", "caught by (runs)")
    table = Table(*headings, **NARROW)
    for verified in found:
        reasons = "\n".join(f"{kind} ({count})" for kind, count in verified.reasons().most_common(4))
        counts = (len(verified.trials), verified.verdicts[VALID], verified.verdicts[OVERLOADED])
        kept = "[green]kept[/]" if verified.kept else "[bold red]broken[/]"
        table.add_row(f"{verified.multiple:g}", *map(str, counts), kept, reasons)
    return table
