"""Lab 7: a study. Does in-network aggregation (INA) pay on this fabric, and for which messages?

What can be checked is checked: the design, the table (some runs are run again), the intervals, and the answers that
follow from the table. The rest is read by a person, with the rubric of the teacher's guide.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from inakit.experiments.labs.course.targets import refuse_target
from inakit.experiments.labs.grading.finding import Finding, WrongError
from inakit.experiments.labs.grading.item import Item
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.measure.own_fabric import FILE, WORKERS, write_own_fabric
from inakit.experiments.labs.measure.handed_in import (
    ANSWERS,
    FIGURES,
    FILES,
    INA,
    MOST_GRADIENT_BYTES,
    REPORT,
    RESULTS,
    RING,
    STUDY,
    SUMMARY,
    HandedIn,
    Interval,
    RunKey,
    said,
)
from inakit.experiments.labs.measure.statistics import fault_of, verdicts
from inakit.experiments.study.study import measure_setting

STAYS = {"world": "virtual", "fabric": FILE, "workers": WORKERS}
VARIES = ("planner", "gradient_bytes", "seed")
LEAST_SEEDS, LEAST_SIZES = 10, 7
SHORT_BYTES, LONG_BYTES = 2048, 131072
MOST_RUNS = 600
SAMPLES = 2
"""So many runs of each method are run again."""
SAME = 1e-3
NARROW = 4.0
HEADINGS = ("Question", "Setup", "Results", "Limits", "Answer")
LEAST_WORDS = 20


@dataclass(frozen=True)
class MeasureBench:
    """What was handed in, and what an item draws from."""

    handed: HandedIn
    random: Random

    @property
    def keys(self) -> list[RunKey]:
        """The runs of the study file."""
        return [
            RunKey(str(run.get("planner", INA)), int(run.get("gradient_bytes", 0)), int(run.get("seed", 0)))
            for run in self.handed.runs
        ]


# -- the items


def check_own(bench: MeasureBench) -> None:
    """The study is of the student's own fabric, as the task has it."""
    student, expected = bench.handed.student, bench.handed.submission.student
    if expected and student != expected:
        raise WrongError(f"{ANSWERS} says that the student is {said(student)}, and {said(expected)} handed it in")
    for run in bench.handed.runs:
        stays = {key: value for key, value in run.items() if key not in VARIES}
        for key in sorted({*stays, *STAYS}):
            if stays.get(key) != STAYS.get(key):
                there = said(stays[key]) if key in stays else "missing"
                wanted = repr(STAYS[key]) if key in STAYS else "nothing, leave it out"
                raise WrongError(f"{STUDY}: '{key}' is {there}; the task has {wanted}")


def check_design(bench: MeasureBench) -> None:
    """Both methods in the same runs, enough seeds, sizes from short to long."""
    keys = bench.keys
    if len(keys) > MOST_RUNS:
        raise WrongError(f"{STUDY} asks for {len(keys)} runs: at most {MOST_RUNS} are enough")
    if others := sorted({key.planner for key in keys} - {INA, RING}):
        raise WrongError(f"{STUDY} has the planner {said(others[0])}: {INA} (with INA) and {RING} are compared")
    seeds: dict[int, dict[str, set[int]]] = defaultdict(lambda: {INA: set(), RING: set()})
    for key in keys:
        seeds[key.gradient_bytes][key.planner].add(key.seed)
    for size, by in sorted(seeds.items()):
        if by[INA] != by[RING]:
            told = f"{INA} has seeds {listed(by[INA])} and {RING} {listed(by[RING])}"
            raise WrongError(f"{STUDY}: at {size} bytes {told}: both run with the same ones")
        if len(by[INA]) < LEAST_SEEDS:
            raise WrongError(f"{STUDY}: {len(by[INA])} seeds at {size} bytes: at least {LEAST_SEEDS} are expected")
    check_sizes(sorted(seeds))


def check_sizes(sizes: list[int]) -> None:
    """Raise `WrongError` for sizes that are too few, or do not reach from short to long."""
    if len(sizes) < LEAST_SIZES:
        raise WrongError(f"{STUDY} has {len(sizes)} sizes: at least {LEAST_SIZES} are expected")
    if sizes[0] > SHORT_BYTES or not LONG_BYTES <= sizes[-1] <= MOST_GRADIENT_BYTES:
        wanted = f"from {SHORT_BYTES} or less to {LONG_BYTES} or more, and at most {MOST_GRADIENT_BYTES}"
        raise WrongError(f"{STUDY} has sizes from {sizes[0]} to {sizes[-1]} bytes: {wanted}")


def listed(numbers: set[int]) -> str:
    """Numbers in order, the first few of them."""
    shown = ", ".join(map(str, sorted(numbers)[:5]))
    return f"{shown}, ..." if len(numbers) > 5 else shown or "none"


def check_table(bench: MeasureBench) -> None:
    """The table has the runs of the study, each once, and no others."""
    asked, there = bench.keys, bench.handed.results
    if missing := [key for key in asked if key not in there]:
        raise WrongError(f"{RESULTS} lacks {len(missing)} of the runs of {STUDY}, such as {missing[0]}")
    if more := sorted(set(there) - set(asked)):
        raise WrongError(f"{STUDY} does not ask for {len(more)} of the runs in {RESULTS}, such as {more[0]}")


def check_again(bench: MeasureBench) -> None:
    """Some runs, drawn, give the same when they are run again."""
    results = bench.handed.results
    with tempfile.TemporaryDirectory(prefix="inakit-study-") as folder:
        fabric = write_own_fabric(bench.handed.student, Path(folder))
        for planner in (INA, RING):
            own = sorted(key for key in results if key.planner == planner and key.gradient_bytes >= 4)
            for key in sorted(bench.random.sample(own, min(SAMPLES, len(own)))):
                run_again(key, results[key], {**STAYS, "fabric": str(fabric)}, bench.handed.student)


def run_again(key: RunKey, given: float, stays: dict[str, Any], student: str) -> None:
    """Raise `WrongError` if a run on the student's fabric takes another time than is given."""
    row = measure_setting({**stays, **key._asdict()})
    found = row["measured_communication_time_s"]
    if found is None or abs(given - found) > SAME * found:
        took = f"{found:.9g} s" if found is not None else "nothing"
        again = f"run again on the fabric of student {said(student)} it gives {took}"
        raise WrongError(f"{RESULTS}: the run {key} has {given:.9g} s; {again}")


def check_intervals(bench: MeasureBench) -> None:
    """The summary has a line for each size, with the means and intervals of the table."""
    handed = bench.handed
    for size in handed.sizes:
        if size not in handed.summary:
            raise WrongError(f"{SUMMARY} has no line for {size} bytes")
        pairs = handed.pairs(size)
        if len(pairs) < 2:
            raise WrongError(f"{RESULTS} has {len(pairs)} seeds with both methods at {size} bytes: no interval")
        columns = ([a for a, _ in pairs], [b for _, b in pairs], [b - a for a, b in pairs])
        for figure, values in zip(FIGURES, columns, strict=True):
            fault = fault_of(handed.summary[size][figure], values, pairs[0][1] if figure == FIGURES[2] else values[0])
            if fault:
                raise WrongError(f"{SUMMARY}: {figure} at {size} bytes: {fault}")


def check_crossover(bench: MeasureBench) -> None:
    """The crossover lies where the intervals of the difference change sides, and is known to a factor of 4."""
    low, high = crossover_given(bench.handed.answers.get("crossover_bytes"))
    signs = {
        size: verdicts([b - a for a, b in pairs]) for size in bench.handed.sizes if (pairs := bench.handed.pairs(size))
    }
    for end in (low, high):
        if end not in signs:
            raise WrongError(f"{ANSWERS}: crossover_bytes has {end}, a size that the table does not have")
    for size, found in signs.items():
        wanted, words = (
            (1, "INA is quicker") if size <= low else (-1, "the ring is quicker") if size >= high else (0, "")
        )
        if wanted not in found and words:
            raise WrongError(
                f"{ANSWERS}: crossover_bytes [{low}, {high}] says that {words} at {size} bytes; "
                f"the interval of the difference in the table {told(found)}"
            )
        if not words and 0 not in found:
            raise WrongError(
                f"{ANSWERS}: crossover_bytes [{low}, {high}] leaves open who is quicker at {size} bytes; "
                f"the interval of the difference in the table {told(found)}"
            )
    if high > NARROW * low:
        raise WrongError(
            f"{ANSWERS}: crossover_bytes [{low}, {high}] is wider than a factor of 4: measure seeds or sizes between"
        )


def told(found: set[int]) -> str:
    """What intervals say, in words."""
    words = {1: "says that INA is quicker", -1: "says that the ring is quicker", 0: "contains 0"}
    return " or ".join(words[each] for each in sorted(found))


def crossover_given(given: Any) -> tuple[int, int]:
    """The two sizes of the answer."""
    match given:
        case [int(low), int(high)] if 0 < low < high:
            return low, high
    wanted = "two sizes: the largest at which INA is quicker, and the smallest at which the ring is"
    raise WrongError(f"{ANSWERS}: 'crossover_bytes' is {said(given)}: {wanted}")


def check_speedup(bench: MeasureBench) -> None:
    """The speedups at the shortest and the longest message follow from the table."""
    given = bench.handed.answers.get("speedup")
    if not isinstance(given, dict):
        raise WrongError(f"{ANSWERS}: 'speedup' is {said(given)}: shortest and longest, each [mean, low, high]")
    sizes = bench.handed.sizes
    for name, size in (("shortest", sizes[0]), ("longest", sizes[-1])):
        ratios = [b / a for a, b in bench.handed.pairs(size)]
        match given.get(name):
            case [int() | float() as mean, int() | float() as low, int() | float() as high] if len(ratios) > 1:
                fault = fault_of(Interval(float(mean), float(low), float(high)), ratios, 2.5 * ratios[0])
            case other:
                fault = f"it is {said(other)}: [mean, low, high] of the ring's time over INA's is expected"
        if fault:
            raise WrongError(f"{ANSWERS}: speedup, {name} ({size} bytes): {fault}")


def check_report(bench: MeasureBench) -> None:
    """The report has its parts, and the answer names two sizes between the shortest and the longest of the table."""
    text = bench.handed.text(REPORT)
    parts = {each[1].strip(): each[2] for each in re.finditer(r"^#+ (.*)\n((?:(?!#).*\n?)*)", text, re.M)}
    for heading in HEADINGS:
        if heading not in parts:
            raise WrongError(f"{REPORT} has no part '# {heading}': it has the parts {', '.join(HEADINGS)}")
        words = len(parts[heading].split())
        if words < LEAST_WORDS:
            raise WrongError(f"{REPORT}: '{heading}' has {words} words: at least {LEAST_WORDS} are expected")
    answer = re.sub(r"(?<=\d)[, ](?=\d{3})", "", parts["Answer"])
    sizes = bench.handed.sizes
    named = {int(number) for number in re.findall(r"\b\d{1,7}\b", answer) if sizes[0] <= int(number) <= sizes[-1]}
    if len(named) < 2:
        raise WrongError(f"{REPORT}: the answer does not name the two sizes of the crossover, in bytes")


ITEMS = (
    Item("own", "a study of your own fabric", 10, "Step 1", check_own),
    Item("design", "both methods, sizes, seeds", 15, "Step 2", check_design),
    Item("table", "all runs in the table", 10, "Step 3", check_table),
    Item("again", "runs that are run again give the same", 20, "Step 3", check_again),
    Item("intervals", "means and 95 % intervals", 15, "Step 4", check_intervals),
    Item("crossover", "where the ring becomes quicker", 15, "Step 5", check_crossover),
    Item("speedup", "how much quicker INA is", 10, "Step 6", check_speedup),
    Item("report", "the parts of the report", 5, "Step 7", check_report),
)


# -- the submission


class OpenedStudy:
    """What was handed in."""

    def __init__(self, handed: HandedIn) -> None:
        self.handed = handed

    @property
    def notes(self) -> tuple[str, ...]:
        """Whose fabric the study was graded on."""
        try:
            return (f"graded on the fabric of student {said(self.handed.student)}",)
        except WrongError:
            return ()

    def bench(self, item: Item, random: Random) -> MeasureBench:
        """The bench of an item."""
        del item
        return MeasureBench(self.handed, random)

    def after(self, item: Item, *, passed: bool) -> None:
        """Nothing: items are independent."""

    def finding(self, wrong: WrongError) -> Finding:
        """What is wrong, in a sentence."""
        return Finding(wrong.cause)


@dataclass(frozen=True)
class MeasureLab:
    """Lab 7."""

    name: str = "7-measure"
    title: str = "A study: does INA pay here?"
    hours: str = "5 to 8"
    files: tuple[str, ...] = FILES
    items: tuple[Item, ...] = ITEMS

    @contextmanager
    def open(self, submission: Submission, target: str) -> Iterator[OpenedStudy]:
        """Open a submission."""
        refuse_target(self.name, target)
        if not set(FILES) & set(submission.texts):
            submission.text(ANSWERS)
        yield OpenedStudy(HandedIn(submission))
