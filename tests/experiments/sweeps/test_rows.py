"""Rows that are measured one after another: whatever ends them, those that came are printed, shown and kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from quick_trials import kept, trials
from rich.console import Console

from inakit.experiments.sweeps.run_trials import Row, measure_rows, run_trials
from inakit.experiments.sweeps.trial_engines import Loky
from inakit.topo.errors import MachineError, OutputError

ENDINGS = (KeyboardInterrupt, SystemExit, OutputError)


def inverse(number: int) -> float:
    return 1 / number


class Rows:
    """What `measure_rows` has kept after each row, shown in the end, and printed."""

    def __init__(self, asked: list[int], measure: Callable[[int], float]) -> None:
        self.kept: list[int] = []
        self.shown: list[list[Row[int, float]]] = []
        text = StringIO()
        try:
            measure_rows(
                asked,
                measure,
                lambda found: f"{found:g}",
                self.shown.append,
                Console(file=text),
                lambda rows: self.kept.append(len(rows)),
            )
        finally:
            self.lines = text.getvalue().splitlines()


def test_each_row_is_printed_and_kept_as_it_comes_and_an_error_is_a_row() -> None:
    rows = Rows([2, 0, 4], inverse)
    assert rows.kept == [1, 2, 3]
    assert [[row.found for row in shown] for shown in rows.shown] == [[0.5, None, 0.25]]
    assert rows.lines == [
        "1 of 3: 2: 0.5",
        f"2 of 3: 0: failed: ZeroDivisionError: division by zero (inverse, line {inverse.__code__.co_firstlineno + 1})",
        "3 of 3: 4: 0.25",
    ]


def test_an_error_of_the_kit_is_told_as_it_is_also_with_brackets() -> None:
    def refused(_: int) -> float:
        raise MachineError("s1[2] cannot run here")

    assert Rows([1], refused).lines == ["1 of 1: 1: failed: s1[2] cannot run here"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_that_came_before_the_end_are_shown(ending: type[BaseException]) -> None:
    shown: list[Any] = []

    def measured(number: int) -> float:
        if number == 3:
            raise ending
        return inverse(number)

    with pytest.raises(ending):
        measure_rows([1, 2, 3, 4], measured, str, shown.append, Console(file=StringIO()))
    assert [row.found for row in shown[0]] == [1, 0.5]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_a_sweep_that_is_ended_says_how_many_of_its_trials_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    wanted = trials(tmp_path, 5)
    monkeypatch.setattr("inakit.experiments.sweeps.run_trials.keep_here", Interruption(3, ending))
    with pytest.raises(ending) as ended:
        run_trials(wanted, kept(tmp_path), Loky(1), Console(file=StringIO()), "test")
    assert ended.value.__notes__ == ["test: 2 of 5 are kept, and the same command continues"]


class Interruption:
    """Raises an exception at its call number `at`."""

    def __init__(self, at: int, ending: type[BaseException]) -> None:
        self.left, self.ending = at, ending

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.ending


def test_what_a_row_shows_itself_is_left_to_it() -> None:
    waited: list[str] = []

    def waiting(_: Console, name: str) -> nullcontext[None]:
        waited.append(name)
        return nullcontext()

    measure_rows([1], inverse, str, lambda _: None, Console(file=StringIO()), waiting=waiting)
    assert waited == ["1 of 1: 1"]
