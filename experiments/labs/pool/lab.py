"""Lab 3: a pool of slots: a program, and answers about its throughput in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from inakit.experiments.labs.course.bench import Bench
from inakit.experiments.labs.course.switch_lab import ProgramPart
from inakit.experiments.labs.course.targets import SANDBOX
from inakit.experiments.labs.grading.finding import Finding, WrongError
from inakit.experiments.labs.grading.item import Item
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.pool.items import check_admission, check_again, check_pool, check_shadow, check_sum, check_versions
from inakit.experiments.labs.pool.answers import (
    FILE,
    Answers,
    Curve,
    check_explained,
    check_measured,
    check_predicted,
    read_answers,
)
from inakit.experiments.labs.pool.model import ModelPool
from inakit.experiments.labs.pool.star import Star, StarSwitch, throughput
from inakit.experiments.labs.runners.sandboxed_switch import SandboxedSwitch, switch_limits
from inakit.topo.errors import RunError

PROGRAM = "pool"
MEASURING_S = 30
"""The processor time that a program has for all that is measured."""


@dataclass(frozen=True)
class AnswersBench:
    """What an item about answers is given."""

    answers: Answers
    curve: Curve


def of_answers(check: Any) -> Any:
    """A check of answers as one that takes a bench."""

    def checked(bench: AnswersBench) -> None:
        check(bench.answers, bench.curve)

    return checked


OF_PROGRAM = (
    Item("admission", "who may send what", 10, "Step 1", check_admission),
    Item("sum", "the sum of one slot", 10, "Step 1", check_sum),
    Item("pool", "all slots at once", 10, "Step 2", check_pool),
    Item("versions", "two versions, round after round", 15, "Step 3", check_versions),
    Item("again", "a gradient comes again before the sum is complete", 10, "Step 4", check_again),
    Item("shadow", "a gradient comes again when the sum is complete", 15, "Step 5", check_shadow),
)
OF_ANSWERS = (
    Item("measured", "throughput over the pool's size", 10, "Step 6", of_answers(check_measured)),
    Item("explained", "round trip and bandwidth-delay product", 10, "Step 7", of_answers(check_explained)),
    Item("predicted", "other networks", 10, "Step 8", of_answers(check_predicted)),
)
NAMES_OF_ANSWERS = {item.name for item in OF_ANSWERS}


class OpenedPool:
    """A submission's program and answers. What is wrong with one of them is told at the items that need it."""

    def __init__(self, submission: Submission, target: str, stack: ExitStack) -> None:
        self.submission, self.stack, self.failed = submission, stack, False
        self.program = ProgramPart(submission, PROGRAM, target, stack)
        self.curve: Curve | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return self.program.notes

    def bench(self, item: Item, random: Random) -> Bench | AnswersBench:
        """The bench of an item; `InputError` if there is no program, or no answers, for it."""
        if item.name in NAMES_OF_ANSWERS:
            if self.curve is None:
                self.curve = Curve(self.measuring())
            return AnswersBench(read_answers(self.submission.text(FILE)), self.curve)
        return self.program.needed.bench(item, random)

    def measuring(self) -> Any:
        """What measures throughput: with the student's program, or where that fails with the course's own."""
        switch: StarSwitch = ModelPool()
        if self.program.opened is not None and not self.failed:
            limits = replace(switch_limits(), cpu_s=MEASURING_S, wall_s=2.0 * MEASURING_S)
            own = SandboxedSwitch(self.program.text, PROGRAM, limits)
            self.stack.callback(own.close)
            switch = own

        def measure(star: Star, slots: int) -> float:
            try:
                return throughput(switch, star, slots)
            except RunError as error:
                raise WrongError(f"in virtual time ({star}) {error}") from None

        return measure

    def after(self, item: Item, *, passed: bool) -> None:
        """Hear whether an item has its points."""
        self.failed |= not passed and item.name not in NAMES_OF_ANSWERS

    def finding(self, wrong: WrongError) -> Finding:
        """The packets that show what is wrong; for answers the sentence is all."""
        return Finding(wrong.cause) if self.program.opened is None else self.program.opened.finding(wrong)


@dataclass(frozen=True)
class PoolLab:
    """Lab 3."""

    name: str = "3-pool"
    title: str = "A pool of slots, and its throughput"
    hours: str = "6 to 8"
    files: tuple[str, ...] = (f"{PROGRAM}.p4", FILE)
    items: tuple[Item, ...] = (*OF_PROGRAM, *OF_ANSWERS)

    @contextmanager
    def open(self, submission: Submission, target: str = SANDBOX) -> Iterator[OpenedPool]:
        """Open a submission."""
        with ExitStack() as stack:
            yield OpenedPool(submission, target, stack)
