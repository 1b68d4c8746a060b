"""The numbers that the compiler gave to what a program declares: clients look them up, notifications bear them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

TABLE, PROFILE, COUNTER, METER, REGISTER, LEARNING_LIST = range(6)
"""Kinds of what is declared, as clients number them."""

ARRAYS = {COUNTER: "counter_arrays", METER: "meter_arrays", REGISTER: "register_arrays", LEARNING_LIST: "learn_lists"}
OF_PIPELINES = {TABLE: "tables", PROFILE: "action_profiles"}
"""Where a program's JSON declares each kind."""


@lru_cache(maxsize=2)
def resource_ids(program: str) -> dict[int, dict[str, int]]:
    """For each kind, the numbers by name, of the program with this JSON."""
    document = json.loads(program)
    found = {kind: numbers([document], key) for kind, key in ARRAYS.items()}
    return found | {kind: numbers(document["pipelines"], key) for kind, key in OF_PIPELINES.items()}


def numbers(holders: list[Any], key: str) -> dict[str, int]:
    """The numbers by name of what these parts of a program declare under `key`."""
    return {each["name"]: each["id"] for holder in holders for each in holder.get(key, [])}
