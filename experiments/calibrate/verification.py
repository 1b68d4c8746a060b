"""`inakit calibrate --verify`: whether an overloaded run is always judged OVERLOADED, and a lighter one VALID."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from experiments.calibrate.limit import shown
from experiments.calibrate.trials import Trial, TrialNetwork
from experiments.run.printed.report import without_names
from experiments.run.printed.tables import NARROW
from traffic.measure.verdict import OVERLOADED, VALID

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


def verify(bed: TrialNetwork, calibrated: float, runs: int, console: Console) -> Iterator[Verified]:
    """`runs` trials at each multiple of the calibrated scale."""
    for multiple in (LIGHT, *HEAVY):
        yield Verified(multiple, tuple(shown(bed, multiple * calibrated, console) for _ in range(runs)))


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
