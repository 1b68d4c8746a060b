"""The page of a study (`inakit report`): groups with intervals, paired differences, figures, and every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import made_by
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.report.write import PAGE, write_page
from inakit.experiments.study.commands import tables
from inakit.experiments.study.parquet_files import rows_in
from inakit.experiments.study.setting import KEYS
from inakit.experiments.study.study import FigureAsked
from inakit.experiments.study.study_file import load_study
from inakit.experiments.study.summary import (
    baseline,
    bootstrapped,
    column_of,
    counting,
    differences_of,
    grouped,
    groups_of,
    labelled,
    name,
    shown_by_default,
    value_of,
)
from inakit.experiments.study.table import FILES, TABLE, Row
from inakit.topo.errors import InputError


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
        "counted": left.words,
        "keys": list(shown.groups),
        "against": against,
        "varied": varied,
        "shown": columns,
        "groups": list(groups(shown, counted)),
        "differences": list(differences(shown, counted, against)),
        "figures": [chart(asked, counted) for asked in shown.charts or default_charts(counted, shown)],
        "rows": [{key: row[key] for key in listed} for row in shown.rows],
    }
    return Document(f"Study {shown.title}", made_by(), study=study)


def groups(shown: Shown, counted: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for each in groups_of(counted, shown.groups, shown.figures):
        names = [name(key, value) for key, value in zip(shown.groups, each.names, strict=True)]
        interval = {"mean": each.mean.value, "low": each.mean.low, "high": each.mean.high, "median": each.median}
        yield {"names": names, "figure": each.figure, "runs": each.runs, **interval}


def differences(shown: Shown, counted: Sequence[Row], against: str) -> Iterator[dict[str, Any]]:
    """Yield every paired difference."""
    keys = [key for key in shown.groups if key != "planner"]
    for each in differences_of(counted, shown.groups, shown.figures, against):
        names = [name(key, value) for key, value in zip(keys, each.names, strict=True)]
        interval = {"mean": each.mean.value, "low": each.mean.low, "high": each.mean.high, "share": each.share}
        yield {
            "names": [*names, name("planner", each.planner)],
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
