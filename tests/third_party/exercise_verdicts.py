"""Says of an exercise's trials whether the kit's switches behave as BMv2, differ, or lost packets on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from exercise_list import SHOWN, Check, Exercise
from exercise_trials import BMV2, SHIM, Seen


class Word(StrEnum):
    """How an exercise went."""

    AS_BMV2 = "as with BMv2"
    AS_EXPECTED = "as expected"
    DIFFERS = "DIFFERS"
    LOST = "LOST"
    UNSTEADY = "UNSTEADY"
    NOT_AS_README = "not as its README says"
    NOTHING = "shows nothing"
    FAILS_ON_BMV2 = "fails on BMv2"
    NOT_RUN = "not run"


FINE = (Word.AS_BMV2, Word.AS_EXPECTED)
"""After these words an exercise is not tried again."""

Trial = Mapping[str, Seen]
"""What each switch showed in one run."""


@dataclass(frozen=True)
class Verdict:
    """How an exercise went, why, what ran its programs, how often it was tried, and for how many seconds."""

    word: Word
    why: str = ""
    ran: str = ""
    trials: int = 0
    seconds: float = 0.0


def judge(exercise: Exercise, trials: Sequence[Trial]) -> Verdict:
    """The verdict of all trials so far; the last is the one that may be fine.

    A switch that shows something else each time is UNSTEADY, and LOST if it only fails to bring packets now and then:
    neither is a difference.
    """
    verdict = verdict_of_trial(exercise, trials[-1])
    if verdict.word == Word.DIFFERS and len(trials) > 1:
        for switch in changing(trials):
            word = Word.LOST if only_lost(exercise, [trial[switch] for trial in trials]) else Word.UNSTEADY
            verdict = replace(verdict, word=word, why=f"{switch} differs from itself; {verdict.why}")
    return replace(verdict, trials=len(trials))


def changing(trials: Sequence[Trial]) -> Iterator[str]:
    """The switches that did not show the same in each trial."""
    for switch, first in trials[0].items():
        if any((trial[switch].shown, trial[switch].failure) != (first.shown, first.failure) for trial in trials):
            yield switch


def only_lost(exercise: Exercise, seen: Sequence[Seen]) -> bool:
    """Whether a switch differs from itself only in what could be reached."""
    if any(each.failure for each in seen):
        return False
    shown = zip(exercise.checks, *(each.shown for each in seen), strict=True)
    return all(check.keep is SHOWN for check, *found in shown if len(set(map(str, found))) > 1)


def verdict_of_trial(exercise: Exercise, seen: Trial) -> Verdict:
    """Compare what the switches showed with one another, and with what is expected."""
    ran = seen[SHIM].ran if SHIM in seen else ""
    failed = failure(seen)
    if failed is not None:
        return replace(failed, ran=ran)
    for number, check in enumerate(exercise.checks):
        found = fault(check, {name: each.shown[number] for name, each in seen.items() if number < len(each.shown)})
        if found is not None:
            return replace(found, ran=ran)
    return Verdict(Word.AS_BMV2 if BMV2 in seen else Word.AS_EXPECTED, ran=ran)


def failure(seen: Trial) -> Verdict | None:
    """The verdict if a switch did not come to the end of the checks."""
    failures = {switch: each.failure for switch, each in seen.items() if each.failure}
    if not failures:
        return None
    switch = BMV2 if BMV2 in failures else SHIM
    return Verdict(Word.FAILS_ON_BMV2 if switch == BMV2 else Word.DIFFERS, f"{switch}: {failures[switch]}")


def fault(check: Check, shown: Mapping[str, list[str]]) -> Verdict | None:
    """The verdict of one check, if it is not fine."""
    differs = len(set(map(str, shown.values()))) > 1
    if check.expect is not None and any(found != check.expect for found in shown.values()):
        word = Word.DIFFERS if differs or BMV2 not in shown else Word.NOT_AS_README
        return Verdict(word, f"{check.run}: {dict(shown)}, expected {check.expect}")
    if check.must_show and not any(shown.values()):
        return Verdict(Word.NOTHING, check.run)
    return Verdict(Word.DIFFERS, f"{check.run}: {dict(shown)}") if differs else None
