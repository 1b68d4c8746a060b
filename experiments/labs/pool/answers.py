"""Lab 3, the answers: what a student has measured and explained, held against the curve of the student's program."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.pool.star import MOST_SLOTS, SIZE, Star
from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, ParsedFile, PlainLoader, Record, validate

FILE = "answers.yml"
KIND = FileKind("file of answers", max_bytes=1 << 14, tells_lines=True)
MOST_BRACKETS = 100
"""PyYAML takes a second for a few thousand brackets inside each other."""
NEAR = 0.02
"""How far a measured figure may be from the grader's own, as a fraction."""
FLAT = 0.999
"""The throughput from which it is called flat, as a fraction of that with all slots."""

NUMBER = "a number greater than 0"
SLOTS_EXPECTED = f"a whole number of slots from 1 to {MOST_SLOTS}"
Number = float | int


class Measured(Record):
    """What was measured on the network of the task."""

    one_slot_mbps: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    all_slots_mbps: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    flat_from_slots: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)


class Explained(Record):
    """Why the curve bends where it does."""

    round_trip_us: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    bandwidth_delay_product_bytes: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)


class Predicted(Record):
    """From how many slots throughput is flat on other networks."""

    flat_at_300_mbps: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)
    flat_at_100_us: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)
    flat_with_8_workers: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)


class Answers(Record):
    """The file of answers. `why` is for people to read."""

    version: Literal[1] = Field(description="the number 1")
    measured: Measured = Field(description="the figures of step 6")
    explained: Explained = Field(description="the figures of step 7")
    predicted: Predicted = Field(description="the figures of step 8")
    why: str = Field(default="", max_length=4000, description="a few sentences")


TASK = Star()
"""The network of the task."""
OTHERS = {
    "flat_at_300_mbps": replace(TASK, rate_bps=300e6),
    "flat_at_100_us": replace(TASK, delay_s=100e-6),
    "flat_with_8_workers": replace(TASK, workers=8),
}


def read_answers(text: str) -> Answers:
    """The answers in a text; `InputError` names the first mistake and its line."""
    if max(text.count("["), text.count("{")) > MOST_BRACKETS:
        raise InputError(f"{FILE} is not YAML as in the task: it has more than {MOST_BRACKETS} brackets")
    if len(text) > KIND.max_bytes:
        raise InputError(f"{FILE} has {len(text)} characters: expected at most {KIND.max_bytes}")
    try:
        loader = PlainLoader(text)
        tree = loader.get_single_node()
        document = loader.construct_document(tree) if tree else None
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{FILE}{line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InputError(f"{FILE} is not YAML: expected the file of the task with its numbers filled in") from None
    return validate(ParsedFile(Path(FILE), KIND, document, tree), Answers)


@dataclass(frozen=True)
class Curve:
    """The throughput of a program over its pool, in bit/s; what is asked twice is measured once."""

    measure: Callable[[Star, int], float]
    known: dict[tuple[Star, int], float] = field(default_factory=dict)

    def at(self, star: Star, slots: int) -> float:
        """The throughput with so many slots."""
        key = (star, slots)
        if key not in self.known:
            self.known[key] = self.measure(star, slots)
        return self.known[key]

    def is_flat(self, star: Star, slots: int) -> bool:
        """Whether more slots would not help."""
        return self.at(star, slots) >= FLAT * self.at(star, MOST_SLOTS)


# -- the items


def check_measured(answers: Answers, curve: Curve) -> None:
    """Throughput with one slot, with all of them, and the number of slots from which it is flat."""
    measured = answers.measured
    for name, slots, said in (
        ("one_slot_mbps", 1, measured.one_slot_mbps),
        ("all_slots_mbps", MOST_SLOTS, measured.all_slots_mbps),
    ):
        check_near(f"measured.{name}", said, curve.at(TASK, slots) / 1e6, "Mbit/s")
    flat_from("measured.flat_from_slots", measured.flat_from_slots, curve, TASK)


def check_explained(answers: Answers, curve: Curve) -> None:
    """The round trip is what a pool of one slot shows, and the bandwidth-delay product its product with the rate."""
    round_trip_s = SIZE * 8 / curve.at(TASK, 1)
    check_near("explained.round_trip_us", answers.explained.round_trip_us, round_trip_s * 1e6, "us")
    product = round_trip_s * TASK.rate_bps / 8
    check_near("explained.bandwidth_delay_product_bytes", answers.explained.bandwidth_delay_product_bytes, product, "bytes")


def check_predicted(answers: Answers, curve: Curve) -> None:
    """The number of slots from which throughput is flat on networks that differ in one thing."""
    for name, star in OTHERS.items():
        flat_from(f"predicted.{name}", getattr(answers.predicted, name), curve, star)


def check_near(name: str, said: float, right: float, unit: str) -> None:
    """Raise `WrongError` unless a figure is about what the grader has measured."""
    if not math.isclose(said, right, rel_tol=NEAR):
        raise WrongError(
            f"{FILE}: {name} is {said:.6g} {unit}, where {TASK} give something else: {hint_of(said, right)}"
        )


def hint_of(said: float, right: float) -> str:
    """In what a figure is wrong, without the right one."""
    factor = said / right
    known = {
        8.0: "eight times as much, as of bits taken for bytes",
        1 / 8: "an eighth, as of bytes taken for bits",
        1000.0: "a thousand times as much",
        0.001: "a thousandth",
        1e6: "a million times as much",
        1e-6: "a millionth",
        0.5: "half as much",
        2.0: "twice as much",
    }
    found = next((text for times, text in known.items() if math.isclose(factor, times, rel_tol=NEAR)), "")
    return f"it is {found}" if found else f"it is too {'great' if factor > 1 else 'small'}"


def flat_from(name: str, slots: int, curve: Curve, star: Star) -> None:
    """Raise `WrongError` unless throughput is flat from just so many slots on."""
    most = curve.at(star, MOST_SLOTS) / 1e6
    if not curve.is_flat(star, slots):
        got = curve.at(star, slots) / 1e6
        raise WrongError(
            f"{FILE}: {name} is {slots}, but with so many slots throughput is {got:.1f} Mbit/s, and with "
            f"{MOST_SLOTS} {most:.1f} ({star}): it still grows"
        )
    if slots > 1 and curve.is_flat(star, slots - 1):
        raise WrongError(f"{FILE}: {name} is {slots}, but {slots - 1} slots give the same {most:.1f} Mbit/s ({star})")
