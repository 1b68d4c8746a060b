"""The file of a study: the values that vary, their combination, the settings that stay, and the figures to show.

    version: 1
    stays: {world: virtual, gradient_bytes: 65536}
    varies:
      - fabric: ["fattree:k=4", "leafspine:leaves=4,spines=2"]
        workers: 4..12 by 4
      - planner: [aro, forest, atp]
        seed: 0..9
    figures:
      - {x: workers, y: sending_rate_bps, colour: planner, facet: fabric}

Each item of `varies` combines its lists as `combine` says; each combination of an item meets each combination of the
other items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, StrictStr, create_model

from inakit.experiments.run.run import MODES
from inakit.experiments.study.setting import ALL, CENTER_KEYS, COMBINE, KEYS, PLANS_ONLY, SCHEDULE_KEYS, Block, Setting
from inakit.experiments.study.study import FigureAsked, Study
from inakit.experiments.study.table import ASIDE, FIGURES
from inakit.experiments.worlds.registry import WORLDS
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.own_planners import is_path
from inakit.planner.registry import OWN, SCHEDULERS, by_name, find_method, find_scheduler
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files.quantities import Whole
from inakit.topo.files.reader import FileKind, ParsedFile, Place, Record, read_file, validate

FILE = FileKind("study file", max_bytes=1 << 20, tells_lines=True)
RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)(?: by ([1-9][0-9]*))?")
NUMBERS = (*("pipelines", "workers", "servers", "gradient_bytes", "iterations", "first_jobs", "optical_ports", "seed"),)
"""The keys whose values can be given as a range."""


def ranged(value: object) -> object:
    """Expand a range such as "0..9" or "10..100 by 10", both ends included, to whole numbers; keep other values."""
    parts = RANGE.fullmatch(value) if isinstance(value, str) else None
    return list(range(int(parts[1]), int(parts[2]) + 1, int(parts[3] or 1))) if parts else value


def not_empty(value: object) -> object:
    """Return the value unchanged. Raises `ValueError` for an empty list."""
    if value == []:
        raise ValueError
    return value


def listed(name: str) -> tuple[Any, Any]:
    """The field of an item of `varies` for a key of a setting: a list of the setting's type."""
    field = Setting.model_fields[name]
    kind: Any = list[field.rebuild_annotation()]  # type: ignore[misc]
    checks = [BeforeValidator(not_empty), *([BeforeValidator(ranged)] if name in NUMBERS else [])]
    range_words = ", or a range such as 0..9 or 10..100 by 10" if name in NUMBERS else ""
    description = f"a list{range_words}; each value {field.description}"
    return (Annotated[kind | None, *checks], Field(None, description=description))


class BlockRecord(Record):
    """An item of `varies`."""

    combine: StrictStr = Field(ALL, description=COMBINE)
    draw: Whole = Field(0, description="a whole number, the seed of a sample")

    @property
    def block(self) -> Block:
        """The given lists, in the order of `KEYS`."""
        values = {name: getattr(self, name) for name in KEYS if name in self.model_fields_set}
        return Block(values, self.combine, self.draw)


LISTS: dict[str, Any] = {name: listed(name) for name in KEYS}
Varied = cast("type[BlockRecord]", create_model("Varied", __base__=BlockRecord, **LISTS))


class StudyRecord(Record):
    """The contents of a study file."""

    version: Literal[1] = Field(description="1")
    name: StrictStr | None = Field(None, description="the name of the study's folder; without it, that of the file")
    stays: Setting = Field(Setting(), description="the keys that stay the same")
    varies: list[Varied] = Field(description="a list of items, each with lists of values")  # type: ignore[valid-type]
    groups: list[StrictStr] | None = Field(None, description="a list of keys; a group has the same values of these")
    shows: list[StrictStr] = Field([], description="a list of figures such as sending_rate_bps")
    against: StrictStr | None = Field(None, description="the planner with which the others are compared")
    labels: dict[StrictStr, StrictStr] = Field(
        {}, description="names of values in tables and figures: {fattree:k=4: ...}"
    )
    figures: list[FigureAsked] = Field([], description="a list of {x: ..., y: ..., colour: ..., facet: ...}")


def one_of(what: str, known: Collection[str]) -> Callable[[str], None]:
    """A function that raises `InputError` with the nearest name for an unknown one."""

    def check(name: str) -> None:
        if name not in known:
            raise unknown_name(what, name, known)

    return check


def there(name: str) -> None:
    """Raise `InputError` for a file that does not exist."""
    if not Path(name).is_file():
        raise InputError(f"there is no file '{name}'")


CHECKS: Mapping[str, Callable[[str], object]] = {
    "fabric": lambda name: Setting(fabric=name).fabric_choice.base(),
    "planner": find_method,
    "policy": policy_of,
    "world": one_of("world", [*WORLDS, PLANS_ONLY]),
    "mode": one_of("mode", MODES),
    "jobs": there,
    "faults": there,
    "center": there,
    "trace": there,
}
"""The keys whose values are names, and functions that raise `InputError` for an unknown name."""


def load_study(path: Path) -> Study:
    """Load the study of a YAML file. Raises `InputError` that names file, line, key and the way out."""
    return study_of(read_file(path, FILE))


def study_from(document: Mapping[str, Any], name: str = "study") -> Study:
    """Return the study that a dictionary describes with the keys of the file. Raises `InputError`."""
    return study_of(ParsedFile(Path(name), FILE, dict(document)))


def study_of(file: ParsedFile) -> Study:
    """Return the study that a parsed file describes. Raises `InputError`."""
    record = validate(file, StudyRecord)
    check_names(file, record)
    blocks = [cast("BlockRecord", each).block for each in record.varies]
    check_blocks(file, blocks)
    varied = tuple(key for key in KEYS if any(key in block.values for block in blocks))
    check_shown(file, record)
    return Study(
        record.name or file.path.stem,
        record.stays,
        tuple(blocks),
        groups=tuple(record.groups if record.groups is not None else (key for key in varied if key != "seed")),
        shows=tuple(record.shows),
        against=record.against,
        labels=record.labels,
        figures=tuple(record.figures),
    )


def check_names(file: ParsedFile, record: StudyRecord) -> None:
    """Raise `InputError`, with its line, for an unknown name."""
    schedules = check_schedules(file, record)
    for place, key, value in named_values(record):
        try:
            (find_scheduler if schedules and key == "planner" else CHECKS[key])(value)
        except InputError as error:
            raise file.error(place, str(error)) from None
    if schedules:
        return
    try:
        planners = by_name(value for _, key, value in named_values(record) if key == "planner").values()
    except InputError as error:
        raise file.error(("varies",), str(error)) from None
    for planner in filter(is_path, planners):
        OWN.add(planner.partition(":")[0])  # for its colour in figures


def check_schedules(file: ParsedFile, record: StudyRecord) -> bool:
    """Whether the study is one of schedules. Raises `InputError` for keys that its runs would ignore."""
    given: list[tuple[Place, str]] = [(("stays", key), key) for key in KEYS if key in record.stays.model_fields_set]
    for number, block in enumerate(record.varies):
        given += [(("varies", number, key), key) for key in cast("BlockRecord", block).block.values]
    keys = {key for _, key in given}
    schedules = "center" in keys
    for place, key in given:
        if schedules and key not in SCHEDULE_KEYS:
            raise file.error(place, f"schedules of a `center` have no {key}: choose from {', '.join(SCHEDULE_KEYS)}")
        if not schedules and key in CENTER_KEYS:
            raise file.error(place, f"{key} is for schedules: give a data centre's file under `center`")
    if schedules and "planner" not in keys:
        raise file.error(("varies",), f"no scheduler: list some under `planner`: {', '.join(SCHEDULERS)}")
    return schedules


def named_values(record: StudyRecord) -> Iterator[tuple[Place, str, str]]:
    """Yield every name in the file: its place, its key and the name."""
    for key in CHECKS:
        if key in record.stays.model_fields_set and (value := getattr(record.stays, key)):
            yield ("stays", key), key, value
        for number, block in enumerate(record.varies):
            for place, value in enumerate(getattr(block, key) or ()):
                if value:
                    yield ("varies", number, key, place), key, value


def check_blocks(file: ParsedFile, blocks: list[Block]) -> None:
    """Raise `InputError` for lists that cannot be combined, and for a key that varies in two items."""
    seen: set[str] = set()
    for number, block in enumerate(blocks):
        place = ("varies", number)
        if not block.values:
            raise file.error(place, f"nothing varies here: give a list for one of {', '.join(KEYS)}")
        if twice := seen & set(block.values):
            raise file.error((*place, min(twice)), "also varies in an item above: a key varies in one item")
        seen |= set(block.values)
        try:
            block.combinations()
        except InputError as error:
            raise file.error((*place, "combine"), str(error)) from None


def check_shown(file: ParsedFile, record: StudyRecord) -> None:
    """Raise `InputError` for an unknown key or figure in `groups`, `shows` and `figures`."""
    keys: list[tuple[Place, str]] = [(("groups", n), name) for n, name in enumerate(record.groups or ())]
    values: list[tuple[Place, str]] = [(("shows", n), name) for n, name in enumerate(record.shows)]
    for number, figure in enumerate(record.figures):
        place = ("figures", number)
        keys += [((*place, key), name) for key in ("x", "colour", "facet") if (name := getattr(figure, key))]
        values.append(((*place, "y"), figure.y))
    for what, known, given in (("key", KEYS, keys), ("figure", (*FIGURES, *ASIDE), values)):
        for where, name in given:
            if name not in known:
                raise file.error(where, str(unknown_name(what, name, known)))
