"""The interface description of the Thrift services, and the numbers of a program's resources."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import thriftpy2

DESCRIPTION = Path(__file__).with_name("bmv2.thrift")


@cache
def description() -> Any:
    """The parsed description; its attributes bear the names that stand in it."""
    return thriftpy2.load(str(DESCRIPTION), module_name="inakit_bmv2_thrift")


TABLE, PROFILE, COUNTER, METER, REGISTER, LEARNING_LIST = range(6)
"""The kinds of resources, as clients number them."""

ARRAYS = {COUNTER: "counter_arrays", METER: "meter_arrays", REGISTER: "register_arrays", LEARNING_LIST: "learn_lists"}
OF_PIPELINES = {TABLE: "tables", PROFILE: "action_profiles"}
"""Where a program's JSON declares each kind."""


@lru_cache(maxsize=2)
def resource_ids(program: str) -> dict[int, dict[str, int]]:
    """The numbers of resources in the JSON of a program, by kind and name."""
    document = json.loads(program)

    def numbers(holders: list[Any], key: str) -> dict[str, int]:
        return {each["name"]: each["id"] for holder in holders for each in holder.get(key, [])}

    found = {kind: numbers([document], key) for kind, key in ARRAYS.items()}
    return found | {kind: numbers(document["pipelines"], key) for kind, key in OF_PIPELINES.items()}
