"""`inakit study run`, `inakit study show`, and the page of a study.

They read and write Parquet files, for which pyarrow is needed, an optional dependency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from rich.console import Console

from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import made_by
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.report.write import PAGE, write_page
from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.study import FigureAsked, Study, kept_in, run_study
from inakit.experiments.study.study_figures import draw
from inakit.experiments.study.study_file import load_study
from inakit.experiments.study.summary import (
    Left,
    Unit,
    baseline,
    bootstrapped,
    column_of,
    counting,
    differences_of,
    differences_sheet,
    grouped,
    groups_of,
    groups_sheet,
    labelled,
    name,
    shown_by_default,
    terminal_table,
    title_of,
    value_of,
    write_differences,
    write_groups,
    write_latex,
)
from inakit.experiments.study.table import (
    ASIDE,
    COLUMNS,
    FIGURES,
    FILES,
    OCCASIONS,
    TABLE,
    UNITS,
    WHOLE,
    Row,
    occasion_of,
    rows_of,
)
from inakit.experiments.sweeps.trial import Finished, Kept, Trial
from inakit.experiments.sweeps.trial_engines import find_engine
from inakit.topo.errors import InputError, unknown_name, writing
from inakit.topo.live.signals import interrupts_held
from inakit.traffic.measure.verdict import VALID

# -- The tables of a study as Parquet files.


def write_tables(folder: Path, rows: Sequence[Row], occasions: Sequence[Row]) -> None:
    """Write both tables, each in one step. Raises `OutputError`."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    columns = {UNITS.get(name, name): pa.array([row[name] for row in rows], type_of(name)) for name in COLUMNS}
    write(pa.table(columns), folder / TABLE)
    kinds = {"run": pa.string(), "duration_s": pa.float64(), "machine": pa.string(), "ended": pa.string()}
    write(pa.Table.from_pylist(list(occasions), pa.schema(list(kinds.items()))), folder / OCCASIONS)


def type_of(column: str) -> pa.DataType:
    if column in WHOLE:
        return pa.int64()
    if column in (*FIGURES, "aggregation_rate", "slot_s", "reconfiguration_s"):
        return pa.float64()
    return pa.bool_() if column in ("exact", "sample") else pa.string()


def write(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet in one step. Raises `OutputError`."""
    draft = path.with_suffix(".draft")
    with writing(path):
        parquet.write_table(table, draft, compression="zstd")
        draft.replace(path)


def rows_in(file: Path) -> list[Row]:
    """Read the rows of `results.parquet`. Raises `InputError` for a file that is broken or of another version."""
    keys = {column: key for key, column in UNITS.items()}
    try:
        listed = parquet.read_table(file).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} is cut short or no table of a study: `inakit study run` writes a new one") from error
    rows: list[Row] = [{keys.get(column, column): value for column, value in row.items()} for row in listed]
    if rows and not {"verdict", "error", "planner", *KEYS} <= rows[0].keys():
        raise InputError(f"{file} is of another version of inakit: `inakit study run` writes a new one")
    return rows


# -- The commands.

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
    for number, asked in enumerate(study.figures, start=1):
        path = study.folder(results) / f"figure-{number}-{asked.y}-over-{asked.x}.pdf"
        draw(asked, rows, path)
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


def check_names(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise `InputError` with the nearest name for an unknown one."""
    for each in names:
        if each not in known:
            raise unknown_name(what, each, known)


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


# -- The page of a study (`inakit report`): groups with intervals, paired differences, figures, and every run.


@dataclass(frozen=True)
class Shown:
    """The content of a study's page: all rows, the keys of groups, figures of tables, the comparison, and charts."""

    title: str
    rows: Sequence[Row]
    groups: Sequence[str]
    figures: Sequence[str]
    against: str | None
    charts: Sequence[FigureAsked]


def report_study(path: Path, results: Path, output: Path | None = None) -> Path:
    """Write the page of a study, given its file or results folder; return the page's path. Raises `InakitError`."""
    shown, folder = shown_of_file(path, results) if path.suffix in FILES else shown_of_folder(path)
    return write_page(document_of(shown), output or folder / PAGE)


def shown_of_file(file: Path, results: Path) -> tuple[Shown, Path]:
    """The content that a study's file requests, with the kept runs' rows, and its folder. Raises `InakitError`."""
    study = load_study(file)
    rows = labelled(tables(study, results), study.labels)
    figures = study.shows or shown_by_default(rows)
    return Shown(study.name, rows, study.groups, figures, study.against, study.figures), study.folder(results)


def shown_of_folder(path: Path) -> tuple[Shown, Path]:
    """The content from a results folder alone: groups are by all keys that vary but the seed. Raises `InputError`."""
    folder = path.parent if path.name == TABLE else path
    rows = rows_in(folder / TABLE)
    groups = [key for key in varied_in(rows) if key != "seed"]
    return Shown(folder.resolve().name, rows, groups, shown_by_default(rows), None, ()), folder


def varied_in(rows: Sequence[Row]) -> list[str]:
    """The keys for which rows have more than one value."""
    return [key for key in KEYS if len({row[key] for row in rows}) > 1]


def document_of(shown: Shown) -> Document:
    """The document of the page. Raises `InputError` if no run has figures."""
    counted, left = counting(shown.rows)
    if not counted:
        raise InputError(f"study {shown.title}: no run has figures yet ({left.words}): run them by `inakit study run`")
    against = baseline(counted, shown.against)
    columns = list(dict.fromkeys(column_of(counted[0], figure) for figure in shown.figures))
    varied = varied_in(shown.rows)
    listed = ("run", *varied, *columns, "verdict", "reasons", "error")
    study = {
        "counted": left.words + ", all VALID" * all(row["verdict"] == VALID for row in shown.rows),
        "keys": list(shown.groups),
        "baseline": name("planner", against),
        "varied": varied,
        "shown": columns,
        "groups": list(groups(shown, counted)),
        "differences": list(differences(shown, counted, against)),
        "figures": [chart(asked, counted) for asked in shown.charts or default_charts(counted, shown)],
        "rows": [{key: row[key] for key in listed} for row in shown.rows],
    }
    return Document(finding_of(study, f"study {shown.title}".replace("study study", "study")), made_by(), study=study)


def finding_of(study: Mapping[str, Any], name: str) -> str:
    """The title of the page: of the first figure, the largest paired difference whose interval does not reach 0."""
    clear = [
        each
        for each in study["differences"]
        if each["figure"] == study["differences"][0]["figure"] and (each["low"] or 0) * (each["high"] or 0) > 0
    ]
    if not clear:
        return f"{name[0].upper()}{name[1:]}: {study['counted']}"
    most = max(clear, key=lambda each: abs(each["share"] or 0))
    keys = [key for key in study["keys"] if key != "planner"]
    *values, who = most["names"]
    where = ", ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
    figure = title_of(most["figure"].removeprefix("measured_"), Unit())
    far = f"{abs(most['share'] or 0):.1%} {'above' if most['mean'] > 0 else 'below'}"
    return f"{who}'s {figure} is {far} {study['baseline']}'s{where and f' ({where})'}: {name}"


def groups(shown: Shown, counted: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for each in groups_of(counted, shown.groups, shown.figures):
        names = [name(key, value) for key, value in zip(shown.groups, each.names, strict=True)]
        interval = {"mean": each.mean.value, "low": each.mean.low, "high": each.mean.high, "median": each.median}
        yield {"names": names, "figure": each.figure, "runs": each.runs, **interval}


def differences(shown: Shown, counted: Sequence[Row], against: str) -> Iterator[dict[str, Any]]:
    keys = [key for key in shown.groups if key != "planner"]
    planners = dict.fromkeys(name("planner", row["planner"]) for row in counted)
    colors = {planner: style.color for planner, style in styles_of(list(planners)).items()}
    for each in differences_of(counted, shown.groups, shown.figures, against):
        names = [name(key, value) for key, value in zip(keys, each.names, strict=True)]
        interval = {"mean": each.mean.value, "low": each.mean.low, "high": each.mean.high, "share": each.share}
        planner = name("planner", each.planner)
        yield {
            "names": [*names, planner],
            "color": colors[planner],
            "figure": each.figure,
            "runs": len(each.mean.draws),
            **interval,
        }


def default_charts(counted: Sequence[Row], shown: Shown) -> list[FigureAsked]:
    """A chart of the first figure over the first key that varies in numbers; none if no key does."""
    numbers = [key for key in shown.groups if all(isinstance(row[key], int | float) for row in counted)]
    return [FigureAsked(x=numbers[0], y=shown.figures[0])] if numbers else []


def chart(asked: FigureAsked, counted: Sequence[Row]) -> dict[str, Any]:
    """A chart: a line for each colour of each facet, with the mean and the interval of every point."""
    known = [row for row in counted if value_of(row, asked.y) is not None]
    colours = list(dict.fromkeys(name(asked.colour, row[asked.colour]) for row in known))
    styles = styles_of(colours)
    keys = [asked.facet, asked.colour] if asked.facet else [asked.colour]
    lines = []
    for values, own in grouped(known, keys).items():
        label = name(asked.colour, values[-1])
        facet = str(values[0]) if asked.facet else ""
        points = [point(place, rows, asked.y) for (place,), rows in grouped(own, [asked.x]).items()]
        lines.append({"name": label, "facet": facet, "color": styles[label].color, "points": points})
    return {"x": asked.x, "y": column_of(counted[0], asked.y), "lines": lines}


def point(place: Any, rows: Sequence[Row], figure: str) -> dict[str, Any]:
    """A point of a chart: the mean of some rows with its interval."""
    found = bootstrapped([value for row in rows if (value := value_of(row, figure)) is not None])
    return {"x": place, "mean": found.value, "low": found.low, "high": found.high}
