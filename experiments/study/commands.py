"""The implementation of the commands `inakit study run` and `inakit study show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from inakit.experiments.study.parquet_files import write_tables
from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.study import Study, kept_in, run_study
from inakit.experiments.study.study_figures import draw
from inakit.experiments.study.study_file import load_study
from inakit.experiments.study.summary import (
    Left,
    baseline,
    counting,
    differences_of,
    differences_sheet,
    groups_of,
    groups_sheet,
    labelled,
    shown_by_default,
    terminal_table,
    write_differences,
    write_groups,
    write_latex,
)
from inakit.experiments.study.table import ASIDE, FIGURES, TABLE, Row, occasion_of, rows_of
from inakit.experiments.sweeps.trial import Finished, Kept, Trial
from inakit.experiments.sweeps.trial_engines import find_engine
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.live.signals import interrupts_held
from inakit.traffic.measure.verdict import VALID

ALL, FAILED = "all", "failed"


def run_file(file: Path, on: str, processes: int | None, again: str, results: Path, console: Console) -> bool:
    """Run a study and write its table; return whether every run succeeded and is VALID. Raises `InakitError`.

    After an error or an interrupt the table has the runs that are done.
    """
    study, kept = load_study(file), kept_in(results)
    forget(again, study.trials, kept)
    try:
        run_study(study, results, find_engine(on, processes, kept), console)
    finally:
        with interrupts_held():
            left = tell_runs(study, tables(study, results), results, console)
    return not left.out


def tell_runs(study: Study, rows: list[dict[str, object]], results: Path, console: Console) -> Left:
    """Print the number of runs that count, why others do not, and the path of the table."""
    _, left = counting(rows)
    failed = sorted({str(row["error"]) for row in rows if row["error"] is not None})
    console.print(f"{study.name}: {left.words}", highlight=False, soft_wrap=True)
    for error in failed:
        console.print(f"  - {error}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"wrote {study.folder(results) / TABLE}", highlight=False, soft_wrap=True)
    return left


def forget(again: str, trials: Sequence[Trial], kept: Kept) -> None:
    """Remove the results of runs to repeat: failed ones, all, or those whose keys begin so. Raises `InputError`."""
    if not again:
        return
    found = [finished for trial in trials if (finished := kept.get(trial.key)) is not None]
    chosen = [finished for finished in found if is_meant(again, finished)]
    if not chosen and again not in (ALL, FAILED):
        raise InputError(
            f"--again {again}: no run of this study begins with this; choose {FAILED}, {ALL}, or letters of a run"
        )
    for finished in chosen:
        kept.forget(finished.key)


def is_meant(again: str, finished: Finished) -> bool:
    """Whether `--again` selects this run. A run that is not VALID also counts as failed."""
    if again == FAILED:
        return finished.row is None or finished.row.get("verdict", VALID) != VALID
    return again == ALL or finished.key.startswith(again)


def tables(study: Study, results: Path) -> list[dict[str, object]]:
    """Write the tables of all runs that have a result, and return the rows. Raises `OutputError`."""
    kept, trials = kept_in(results), study.trials
    found = {trial.key: finished for trial in trials if (finished := kept.get(trial.key)) is not None}
    rows = rows_of(trials, found)
    write_tables(study.folder(results), rows, [occasion_of(found[trial.key]) for trial in trials if trial.key in found])
    return rows


def show_file(file: Path, by: Sequence[str], of: Sequence[str], against: str, results: Path, console: Console) -> None:
    """Print and write the summaries of a study, and draw its figures. Raises `InakitError`."""
    study = load_study(file)
    check_names("key (--by)", by, KEYS)
    check_names("figure (--of)", of, (*ASIDE, *FIGURES))
    every = tables(study, results)
    rows, left = counting(labelled(every, study.labels))
    tell(console, left, len(study.settings) - len(every), file)
    if not rows:
        raise InputError(f"{file}: no run has figures yet; run them: inakit study run {file}")
    keys = tuple(by) or study.groups
    figures = tuple(of) or study.shows or shown_by_default(rows)
    summarise(study, keys, figures, baseline(rows, against or study.against), rows, results, console)
    draw_figures(study, rows, results, console)


def check_names(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise `InputError` with the nearest name for an unknown one."""
    for name in names:
        if name not in known:
            raise unknown_name(what, name, known)


def tell(console: Console, left: Left, missing: int, file: Path) -> None:
    """Print the number of runs that count, and of those without a result."""
    more = f"; {missing} not run yet (run them: inakit study run {file})" if missing else ""
    console.print(f"{left.words}{more}", highlight=False, soft_wrap=True)


def summarise(
    study: Study,
    keys: Sequence[str],
    figures: Sequence[str],
    against: str,
    rows: Sequence[Row],
    results: Path,
    console: Console,
) -> None:
    """Print the groups and the paired differences of every figure, and write them. Raises `OutputError`."""
    groups = list(groups_of(rows, keys, figures))
    differences = list(differences_of(rows, keys, figures, against))
    sheets = []
    for figure in figures:
        if own := [group for group in groups if group.figure == figure]:
            sheets.append(groups_sheet(figure, keys, own))
        if paired := [each for each in differences if each.figure == figure]:
            sheets.append(differences_sheet(figure, keys, paired))
    for sheet in sheets:
        console.print(terminal_table(sheet))
    folder = study.folder(results)
    write_groups(folder / "groups.csv", keys, groups)
    write_differences(folder / "differences.csv", keys, differences)
    write_latex(folder / "tables.tex", sheets)
    console.print(f"wrote groups.csv, differences.csv and tables.tex into {folder}", highlight=False, soft_wrap=True)


def draw_figures(study: Study, rows: Sequence[Row], results: Path, console: Console) -> None:
    """Draw the figures that the file requests. Raises `InakitError`."""
    for number, asked in enumerate(study.figures, start=1):
        path = study.folder(results) / f"figure-{number}-{asked.y}-over-{asked.x}.pdf"
        draw(asked, rows, path)
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
