"""What the script that compares exercises of others says of what switches showed."""

from __future__ import annotations

import pytest
from exercise_list import Check, Exercise
from exercise_trials import BMV2, SHIM, Seen
from exercise_verdicts import Trial, Word, judge

ALL, SOME = ["h1 -> h2 "], ["h1 -> X "]
PINGALL = Exercise("an exercise", "python network.py", (Check("pingall"),), "folder")


def trial(bmv2: list[str], shim: list[str], failure: str = "") -> Trial:
    """What one check showed on both switches; `failure` is why the shim did not come to its end."""
    return {BMV2: Seen([bmv2]), SHIM: Seen([shim], ran="1 kernel", failure=failure)}


@pytest.mark.parametrize(
    ("trials", "word"),
    [
        ([trial(ALL, ALL)], Word.AS_BMV2),
        ([trial(ALL, SOME), trial(ALL, ALL)], Word.AS_BMV2),
        ([trial(ALL, SOME)], Word.DIFFERS),
        ([trial(ALL, SOME), trial(ALL, SOME)], Word.DIFFERS),
        ([trial(ALL, SOME), trial(SOME, ALL)], Word.LOST),
        ([trial(ALL, ALL, "it died"), trial(ALL, ALL, "it died")], Word.DIFFERS),
    ],
)
def test_only_a_steady_difference_is_one(trials: list[Trial], word: Word) -> None:
    assert judge(PINGALL, trials).word is word


def test_a_switch_that_says_something_else_each_time_is_unsteady() -> None:
    exercise = Exercise("an exercise", "", (Check("sh date", keep=".*"),), "folder")
    verdict = judge(exercise, [trial(["1"], ["2"]), trial(["3"], ["2"])])
    assert verdict.word is Word.UNSTEADY
    assert verdict.why.startswith("bmv2 differs from itself")


def test_what_both_show_must_be_as_the_readme_says() -> None:
    exercise = Exercise("an exercise", "", (Check("pingall", expect=ALL),), "folder")
    assert judge(exercise, [trial(SOME, SOME)]).word is Word.NOT_AS_README
    assert judge(exercise, [trial(ALL, SOME)]).word is Word.DIFFERS


def test_a_check_that_keeps_nothing_says_nothing() -> None:
    exercise = Exercise("an exercise", "", (Check("sh cat seen.txt", keep="ttl = .*"),), "folder")
    assert judge(exercise, [trial([], [])]).word is Word.NOTHING


def test_other_checks_have_another_digest() -> None:
    other = Exercise("an exercise", "python network.py", (Check("pingall", expect=ALL),), "folder")
    assert other.digest != PINGALL.digest
