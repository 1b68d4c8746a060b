"""Emulations of the papers, by name: the fabric's constants, the jobs, the planners, and the paper's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from inakit.experiments.emulate.defaults import Free
from inakit.experiments.emulate.emulate import Emulation, check, planned_and_settled, run
from inakit.experiments.run.console import NARROW, NamedTable, figures, names
from inakit.experiments.run.printed_report import verdict
from inakit.experiments.run.record import RunRecord
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.method import AFTERWARDS
from inakit.planner.core.problem import Problem
from inakit.topo.errors import unknown_name
from inakit.traffic.measure.verdict import worst_of


@dataclass(frozen=True)
class Preset:
    """A paper's emulation.

    `figures[model, planner]`: the sending rate (bit/s) and the communication time (s) that the paper reports, None if
    it does not report one. `servers` hosts are PSs, and all others are workers. `models`: the gradient's size in bytes,
    by the model's name.
    """

    source: str
    capacity: str
    aggregation_rate_bps: float
    servers: int
    models: Mapping[str, int]
    planners: tuple[str, ...]
    iterations: int
    figures: Mapping[tuple[str, str], tuple[float | None, float | None]]
    remark: str

    def problem(self, fabric: FabricChoice, model: str, seed: int) -> Problem:
        """The problem of training one model, with the preset's rates where the user has not chosen any."""
        settled = replace(
            fabric,
            capacity=fabric.capacity or self.capacity,
            aggregation_rate_bps=fabric.aggregation_rate_bps or self.aggregation_rate_bps,
        )
        workers = len(settled.build().hosts) - self.servers
        jobs = JobChoice(None, workers, self.servers, self.models[model], self.iterations, seed)
        return build_problem(settled, jobs)


PRESETS = {
    "inart": Preset(
        source="InArt, section 5.3",
        capacity="20M",
        aggregation_rate_bps=9e6,
        servers=4,
        models={"LSTM": 1_627_000, "VGG19": 548_000, "ResNet-50": 97_000},
        planners=("inart", "atp-tor", "lbmm"),
        iterations=2,
        figures={
            ("LSTM", "inart"): (10.75e6, None),
            ("LSTM", "atp-tor"): (4.7e6, None),
            ("ResNet-50", "inart"): (None, 0.068),
            ("ResNet-50", "atp-tor"): (None, 0.152),
            ("ResNet-50", "lbmm"): (None, 0.35),
        },
        remark=(
            "The paper's figures do not follow from its constants alone. The paper's ATP sends 4.44 to 4.7 Mbit/s: "
            "4 x 20 / 18, the PSs' links shared by 18 racks. Each ToR then receives 12 flows of 1.11, 13.3 Mbit/s in "
            "all, although its switches sum at 9 Mbit/s; here this limit holds. The paper's LBMM takes 0.35 s, which "
            "is 2.2 Mbit/s per worker, although 50 workers share 4 x 20 / 50 = 1.6. Our rates count whole frames, and "
            "leave room for the results."
        ),
    )
}


def find_preset(name: str) -> Preset:
    """Return the preset of this name. Raises `InputError` with the nearest known name."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


@dataclass(frozen=True)
class PresetRun:
    """The command-line options of a preset's run. If `planners` is None, the preset's planners are run."""

    name: str
    fabric: FabricChoice
    planners: tuple[str, ...] | None
    switch: str
    mode: str
    seed: int
    results: Path
    scale: float
    keep_going: bool = False
    headroom: str = AFTERWARDS

    def emulation(self, preset: Preset, model: str) -> Emulation:
        return Emulation(
            preset.problem(self.fabric, model, self.seed),
            preset.planners if self.planners is None else self.planners,
            self.switch, self.mode, self.seed, self.results, self.scale,
            free=Free(rates=not self.fabric.gives_rates, gradients=True, described=True), keep_going=self.keep_going,
            headroom=self.headroom,
        )  # fmt: skip


def run_preset(chosen: PresetRun, console: Console) -> str:
    """Run every model with every planner, print the paper's figures beside ours, and return the worst verdict."""
    preset = find_preset(chosen.name)
    emulations = {model: chosen.emulation(preset, model) for model in preset.models}
    first = next(iter(emulations.values()))
    # Shares and rates are independent of the gradient's size, so all models have the same plans and the same scale.
    settled_first, plans = planned_and_settled(first, check(first), console)
    scale = settled_first.scale / first.scale
    records: dict[str, RunRecord] = {}
    for model, emulation in emulations.items():
        console.print(f"\n{preset.source}: {model}", style="bold", highlight=False)
        scaled = emulation.at(scale)
        own = {name: replace(prepared, problem=scaled.problem) for name, prepared in plans.items()}
        records[model] = run(scaled, console, own)
    console.print(comparison(preset, records))
    console.print(preset.remark, highlight=False)
    return worst_of([record.verdict for record in records.values()])


def comparison(preset: Preset, records: Mapping[str, RunRecord]) -> NamedTable:
    """A table with one row per model and planner: the paper's figures, planned figures, measured figures."""
    table = Table(
        *names("model", "planner"),
        *figures("rate\npaper", "\nplan", "\nhere", "time\npaper", "\nplan", "\nhere", "\nup", no_wrap=True),
        *names("verdict"),
        title=f"{preset.source}, and here (rates in Mbit/s at the paper's scale, times in s)",
        **NARROW,
    )
    for row in rows(preset, records):
        table.add_row(*row)
    return NamedTable(table, names=2)


def rows(preset: Preset, records: Mapping[str, RunRecord]) -> Iterator[Sequence[str]]:
    """Yield a row for each model and planner: the paper's, the planned and the measured rate and time."""
    for model, record in records.items():
        for planner, entry in record.planners.items():
            rate, time_s = preset.figures.get((model, planner), (None, None))
            found, scale = (entry.planned, entry.measured), record.fabric.scale
            rates = (rate, *(None if figures is None else figures.sending_rate_bps / scale for figures in found))
            times = (time_s, *(None if figures is None else figures.communication_time_s for figures in found))
            yield (
                model,
                planner,
                *("-" if value is None else f"{value / 1e6:.2f}" for value in rates),
                *("-" if value is None else f"{value:.3f}" for value in times),
                "-" if entry.setup_s is None else f"{entry.setup_s:.1f}",
                verdict(entry),
            )
