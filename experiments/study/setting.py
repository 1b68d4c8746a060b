"""A setting: all that a run of a study is given, and what it makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictStr

from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.method import AFTERWARDS
from inakit.planner.core.problem import Problem
from inakit.topo.files.quantities import RATE, SIZE, Rate, Size, Whole
from inakit.topo.files.validation import Record

PLANS_ONLY = "none"
"""The world of a study that plans and runs nothing."""


def as_text(value: object) -> object:
    """A number as its text, because YAML takes `ina: 0.2` and `scale: 1` for numbers; anything else as it is."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[StrictStr, BeforeValidator(as_text)]
Count = Annotated[Whole, Field(ge=1)]
COUNT = "a whole number, at least 1"
FILE = "the name of a file, from the folder where the command is run"


class Setting(Record):
    """What a run is given, by the names of the command line's options; `world: none` only plans."""

    fabric: StrictStr = Field("fattree", description="a fabric such as fattree:k=4 or leafspine:leaves=4, or a file")
    capacity: Text | None = Field(None, description="a rate of all links such as 20M, or 10M:30M for random ones")
    ina: Text | None = Field(
        None,
        description="switches that aggregate: a share such as 0.2 (0.2+ps: PSs' ToRs among it), or names: leaf1,spine1",
    )
    pipelines: Count | None = Field(None, description="pipelines per switch, 1 to 8")
    aggregation_rate: Rate | None = Field(None, description=RATE)
    scale: Text = Field("1", description="what all rates are multiplied by, such as 1/5000")
    jobs: StrictStr | None = Field(None, description=FILE)
    workers: Count | None = Field(None, description=COUNT)
    servers: Count = Field(1, description=COUNT)
    gradient_bytes: Annotated[Size, Field(ge=1)] | None = Field(None, description=SIZE)
    model: StrictStr = Field("", description="a table of planner/models such as vgg16, or a .csv file")
    iterations: Count = Field(1, description=COUNT)
    planner: StrictStr = Field(
        "aro",
        description="a planner; `inakit planners` lists them; or a file, from the folder where the command is run",
    )
    policy: StrictStr = Field("", description="a slot policy such as shadow-copy")
    headroom: StrictStr = Field(AFTERWARDS, description="room for results: planned, or made afterwards")
    faults: StrictStr | None = Field(None, description=FILE)
    world: StrictStr = Field(PLANS_ONLY, description="none, virtual, fast or bmv2")
    mode: StrictStr = Field("reliable", description="reliable or replay")
    seed: Annotated[Whole, Field(ge=0)] = Field(0, description="a whole number that is not negative")

    @property
    def problem(self) -> Problem:
        """The fabric and the jobs. Raises `InputError`."""
        return build_problem(self.fabric_choice, self.job_choice)

    @property
    def fabric_choice(self) -> FabricChoice:
        """The fabric, as the command line chooses one."""
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
    def job_choice(self) -> JobChoice:
        """The jobs, as the command line chooses them."""
        file = None if self.jobs is None else Path(self.jobs)
        return JobChoice(file, self.workers, self.servers, self.gradient_bytes, self.iterations, self.seed, self.model)

    @property
    def files(self) -> list[Path]:
        """The files that the setting names."""
        named = (self.fabric, self.jobs, self.model, self.faults)
        return [Path(name) for name in named if name and Path(name).is_file()]

    def differs_in(self, names: tuple[str, ...]) -> dict[str, Any]:
        """The values of some of the keys."""
        return {name: getattr(self, name) for name in names}


KEYS = tuple(Setting.model_fields)
"""All that may vary, in the order of tables."""
