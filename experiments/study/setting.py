"""A setting: the parameters of a run of a study; combinations of blocks of values; the starter study file."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictStr

from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.method import AFTERWARDS
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError
from inakit.topo.files.quantities import RATE, SIZE, Rate, Size, Whole
from inakit.topo.files.reader import Record

PLANS_ONLY = "none"
"""The world of a study that plans only."""


def as_text(value: object) -> object:
    """Return a number as text, because YAML parses `ina: 0.2` and `scale: 1` as numbers; other values unchanged."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[StrictStr, BeforeValidator(as_text)]
Count = Annotated[Whole, Field(ge=1)]
Seconds = Annotated[float, Field(strict=False, ge=0, allow_inf_nan=False)]
COUNT = "a whole number, at least 1"
FILE = "the name of a file, from the folder where the command is run"


class Setting(Record):
    """The parameters of a run, by the names of the command line's options; `world: none` only plans."""

    fabric: StrictStr = Field("fattree", description="a fabric such as fattree:k=4 or leafspine:leaves=4, or a file")
    capacity: Text | None = Field(None, description="the rate of all links such as 20M, or 10M:30M for random rates")
    ina: Text | None = Field(
        None,
        description="switches that aggregate: a share such as 0.2 (0.2+ps: with the PSs' ToRs), or names: leaf1,spine1",
    )
    pipelines: Count | None = Field(None, description="pipelines per switch, 1 to 8")
    aggregation_rate: Rate | None = Field(None, description=RATE)
    scale: Text = Field("1", description="the factor of all rates, such as 1/5000")
    jobs: StrictStr | None = Field(None, description=FILE)
    workers: Count | None = Field(None, description=COUNT)
    servers: Count = Field(1, description=COUNT)
    gradient_bytes: Annotated[Size, Field(ge=1)] | None = Field(None, description=SIZE)
    model: StrictStr = Field("", description="a table of planner/models such as vgg16, or a .csv file")
    iterations: Count = Field(1, description=COUNT)
    planner: StrictStr = Field(
        "aro",
        description="a planner, or a scheduler of a `center`; `inakit planners` lists them; or a planner's file",
    )
    policy: StrictStr = Field("", description="a slot policy such as shadow-copy")
    headroom: StrictStr = Field(AFTERWARDS, description="room for results: planned, or made afterwards")
    faults: StrictStr | None = Field(None, description=FILE)
    center: StrictStr | None = Field(None, description="a data centre of `inakit schedule`, whose jobs are scheduled")
    trace: StrictStr | None = Field(None, description="its jobs: " + FILE)
    first_jobs: Count | None = Field(None, description="only so many jobs of the trace")
    optical_ports: Count | None = Field(None, description="optical ports of each unit, for those in the file")
    slot_s: Seconds | None = Field(None, description="the length of a slot in s, for that in the file")
    reconfiguration_s: Seconds | None = Field(None, description="dark time of new circuits in s, for that in the file")
    world: StrictStr = Field(PLANS_ONLY, description="none, virtual, fast or bmv2")
    mode: StrictStr = Field("reliable", description="reliable or replay")
    sample: StrictBool = Field(
        False, description="true: in virtual time, of steady runs only pieces are sent by packets"
    )
    seed: Annotated[Whole, Field(ge=0)] = Field(0, description="a whole number that is not negative")

    @property
    def problem(self) -> Problem:
        """The fabric and the jobs. Raises `InputError`."""
        file = None if self.jobs is None else Path(self.jobs)
        job = JobChoice(file, self.workers, self.servers, self.gradient_bytes, self.iterations, self.seed, self.model)
        return build_problem(self.fabric_choice, job)

    @property
    def fabric_choice(self) -> FabricChoice:
        return FabricChoice(
            self.fabric,
            capacity=self.capacity,
            ina=self.ina,
            pipelines=self.pipelines,
            scale=self.scale,
            seed=self.seed,
            aggregation_rate_bps=self.aggregation_rate,
        )

    @property
    def files(self) -> list[Path]:
        named = (self.fabric, self.jobs, self.model, self.faults, self.center, self.trace)
        return [Path(name) for name in named if name and Path(name).is_file()]


CENTER_KEYS = ("trace", "first_jobs", "optical_ports", "slot_s", "reconfiguration_s")
"""The keys that change a data centre or its jobs."""
SCHEDULE_KEYS = ("center", *CENTER_KEYS, "planner", "gradient_bytes", "iterations", "world", "scale", "seed")
"""The keys of a schedule; others are for planners of trees."""
KEYS = tuple(Setting.model_fields)
"""All keys that can vary, in the order of tables."""


ALL, SIDE_BY_SIDE = "all", "side by side"
COMBINE = "all, side by side, or a sample of 40"
SAMPLE = re.compile(r"(?:a )?sample of ([1-9][0-9]*)")


@dataclass(frozen=True)
class Block:
    """Lists of values by key, and the way to combine them. `draw` is the seed of a sample."""

    values: Mapping[str, Sequence[Any]]
    combine: str = ALL
    draw: int = 0

    def combinations(self) -> list[dict[str, Any]]:
        """The combinations, in the order of the lists. Raises `InputError` for lists that cannot be combined."""
        if self.combine == SIDE_BY_SIDE:
            return [dict(zip(self.values, each, strict=True)) for each in self.side_by_side()]
        if drawn := SAMPLE.fullmatch(self.combine):
            return list(self.sample(int(drawn[1])))
        if self.combine != ALL:
            raise InputError(f"combine: '{self.combine}': expected {COMBINE}")
        return [dict(zip(self.values, each, strict=True)) for each in product(*self.values.values())]

    def side_by_side(self) -> Iterator[tuple[Any, ...]]:
        """Zip the lists: the first values, the second ones, and so on. Raises `InputError` for unequal lengths."""
        lengths = {key: len(values) for key, values in self.values.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key} {length}" for key, length in lengths.items())
            raise InputError(f"side by side needs lists of equal length, but the lengths are {told}")
        return zip(*self.values.values(), strict=True)

    def sample(self, size: int) -> Iterator[dict[str, Any]]:
        """Yield `size` different combinations of all, drawn by the seed `draw`; all if there are fewer."""
        count = prod(map(len, self.values.values()))
        for number in sorted(random.Random(self.draw).sample(range(count), min(size, count))):
            yield dict(self.combination(number))

    def combination(self, number: int) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values of combination `number` of all, from 0."""
        for key, values in reversed(list(self.values.items())):
            number, place = divmod(number, len(values))
            yield key, values[place]


def combined(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Every combination of each block with every one of the others, without duplicates."""
    found: dict[str, dict[str, Any]] = {}
    for each in product(*(block.combinations() for block in blocks)):
        joined = {key: value for part in each for key, value in part.items()}
        found.setdefault(repr(sorted(joined.items())), joined)
    return list(found.values())


def starter_text() -> str:
    """The starter: a study, and in comments all keys of a setting with their expected values."""
    fields = Setting.model_fields.items()
    width = max(map(len, Setting.model_fields))
    beginning = Path(__file__).with_name("starter.yml").read_text(encoding="utf-8")
    return beginning + "".join(f"#   {name:{width}}  {field.description}\n" for name, field in fields)
