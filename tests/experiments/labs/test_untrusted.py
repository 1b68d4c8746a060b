"""Each field of each file, and of each answer, with values that students might write: only their faults are raised."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tiers import long_unless

from inakit.experiments.labs.course import measure_lab, plan_lab, plan_networks, plan_rules, pool_lab
from inakit.experiments.labs.course.loss_network import Event, Fragments, ModelSwitch, judge_results, step_in
from inakit.experiments.labs.course.measure_lab import HandedIn, study_limits, write_own_fabric
from inakit.experiments.labs.course.plan_rules import plan_of
from inakit.experiments.labs.course.tree_lab import StudentEntries, course_entries, model_network
from inakit.experiments.labs.course.tree_network import TABLES, drawn_plan, run_jobs
from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.lab import Finding, WrongError
from inakit.experiments.labs.grading.p4c import read_archive
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.grading.teacher import program_in, texts_in
from inakit.experiments.labs.registry import TEACHER
from inakit.experiments.labs.sandbox.confinement import landlock_version
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch, switch_limits
from inakit.experiments.labs.sandbox.untrusted import Reader, plain, printable, shown
from inakit.topo.errors import InputError, UnsupportedError
from inakit.topo.files.reader import FileKind, parse_text

THEIRS = (WrongError, InputError, UnsupportedError, EndedError)
"""What a submission can be told; everything else is the grader's fault."""


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


nested: list[Any] = []
for _ in range(300):
    nested = [nested]
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 1 << 15, 1 << 31, 1 << 32, 1 << 64, 10**18 + 1, 10**400, -(10**400), 10**4299,
    0.5, -0.0, 5e-324, 1e-17, 1e17, 1.8e308, float("nan"), float("inf"), -float("inf"), "", " ", "h1", "leaf1", "a",
    "\ud800", "\udcff", "\x1b[2J", "a" * 5000, "9" * 5000, "=1+1", "\u0663", "1e999", [], {}, [[]], [0] * 8, [1] * 2000,
    {"a": 1}, {"": {}}, {str(n): n for n in range(2000)}, nested, "\u202e", "\n100 of 100",
]  # fmt: skip
WORDS = [
    '!!int ""', "!!bool maybe", "!!timestamp soon", "!!binary x", "!!float x", "!!null x", "!!set {a}",
    "!!omap [a]", "!!python/name:os.system", "!!python/object/apply:os.system ['true']", "!",
    "!<tag:yaml.org,2002:int> x", "!a b", "&a 1", "*a", "&a [*a]", "0x" + "F" * 3000, "0b" + "1" * 3000,
    "0" + "7" * 3000, "9" * 5000, "-" + "9" * 300, ".nan", ".inf", "-.inf", "1e400", "1.0e+400", "5.0e-324",
    "1_000", "0x_", "190:20:30", "1:" * 300 + "30.5", "2026-13-45", "2026-01-01", "0001-01-01T00:00:00+23:00", "~",
    "", "null", "yes", "On", "=", "<<", "{<<: 1}", "[", "{", "[" * 500, "{a: " * 300, "? [a]", "- -", "|", ">-",
    "\t", "%YAML 9.9", "---", "...", "\0", "\r", '"', "'", '"\\ud800"', '"\\x1b[2J"', '"\\0"', "[1, 2",
    "{a: 1, a: 2}", "[1, 2, 3]", "[true, false]", "[.nan, .inf]", "a: b: c", "#", "-1", "0", "1", "2048", "1024.5",
    "ann", "\u0663", "\ufeff", "\u2028", "x" * 200_000, '"' + "x" * 200_000 + '"', '"a\nb"', "a,b",
]  # fmt: skip
"""Texts for a value in YAML, and for a cell of a table."""


# -- fields


def places(document: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a document."""
    yield here
    inner: Any = enumerate(document) if isinstance(document, list) else ()
    for key, value in document.items() if isinstance(document, dict) else inner:
        yield from places(value, (*here, key))


def with_value(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A document with another value, or with another key for it."""
    if not place:
        return value
    key, *inner = place
    changed = copy.copy(document)
    if inner:
        changed[key] = with_value(document[key], tuple(inner), value)
    elif isinstance(changed, dict) and isinstance(value, str):
        changed[value] = changed.pop(key)
    else:
        changed[key] = value
    return changed


def documents(right: Any, random: Random, count: int) -> Iterator[Any]:
    """A document with one value in one field of each kind, or with one or two of its fields changed: `count` of each.

    What JSON cannot carry never comes from a sandbox.
    """
    every = list(places(right))
    kinds = {tuple(key if isinstance(key, str) else 0 for key in place): place for place in every}
    one_changed = list(product(kinds.values(), VALUES))
    for place, value in random.sample(one_changed, min(count, len(one_changed))):
        yield json.loads(json.dumps(with_value(right, place, value)))
    for _ in range(count):
        changed = right
        for _ in range(random.choice((1, 1, 1, 2))):
            place = random.choice(every)
            try:
                changed = with_value(changed, place, random.choice(VALUES))
            except (KeyError, IndexError, TypeError):
                continue  # the first change has removed the second's place
        yield json.loads(json.dumps(changed))


def texts(right: str, random: Random, count: int) -> Iterator[str]:
    """A file of YAML with the value or the key of a line changed, or with another line."""
    lines = right.splitlines()
    for _ in range(count):
        number, word = random.randrange(len(lines)), random.choice(WORDS)
        key, colon, _ = lines[number].partition(":")
        changed = random.choice((f"{key}{colon} {word}", f"{word}{colon} 1", word, f"{lines[number]}\n{word}"))
        yield "\n".join([*lines[:number], changed, *lines[number + 1 :]])


def tables(right: str, random: Random, count: int) -> Iterator[str]:
    """A table with one of its cells changed, and with one of the usual line ends."""
    lines = right.splitlines()
    for _ in range(count):
        number, word, end = random.randrange(len(lines)), random.choice(WORDS), random.choice(("\n", "\r\n", "\r"))
        cells = lines[number].split(",")
        cells[random.randrange(len(cells))] = word
        yield end.join([*lines[:number], ",".join(cells), *lines[number + 1 :]])


# -- what reads them


def handed_in(name: str, text: str) -> Bench:
    """A submission of lab 7 with another text of a file."""
    files = texts_in(TEACHER / "7-measure" / "solutions") | {name: text}
    bench = Bench(Submission(Path("ann"), files))
    handed = bench.once(HandedIn.of_bench)
    vars(handed)["study"] = [key._asdict() for key in rows()]
    return bench


@cache
def rows() -> list[measure_lab.RunKey]:
    """The runs of the solution's table."""
    return list(HandedIn(Submission(Path("ann"), texts_in(TEACHER / "7-measure" / "solutions"))).results)


def of_lab_7(name: str) -> Callable[[Any], None]:
    """All checks of a file of lab 7, except for those that run its study."""
    checks = ("table", "intervals", "crossover", "speedup", "report")

    def read(text: str) -> None:
        bench = handed_in(name, text)
        for check in checks:
            tried(getattr(measure_lab, f"check_{check}"), bench)
        written(bench.once(HandedIn.of_bench).student)

    return read


def tried(action: Callable[..., Any], *given: Any) -> None:
    """Carry out an action that may find a student's fault, and can tell it."""
    try:
        action(*given)
    except THEIRS as error:
        Finding(str(error)).cause.encode()


intervals = cache(measure_lab.intervals)
"""The intervals of most values of a table are the same in each case."""
CURVE = pool_lab.Curve(pool_lab.ModelPool())
SCRATCH = Path()


@cache
def written(student: str) -> Path:
    """The file of a student's fabric."""
    return write_own_fabric(student, SCRATCH)


def answers_of_lab_3(text: str) -> None:
    answers = pool_lab.read_answers(text)
    measured = answers.measured
    pool_lab.check_near("one_slot_mbps", measured.one_slot_mbps, CURVE.at(pool_lab.TASK, 1) / 1e6, "Mbit/s")
    pool_lab.flat_from("flat_from_slots", measured.flat_from_slots, CURVE, pool_lab.TASK)


JOB = Fragments(2, tuple(tuple((worker, n, 0, 0, 0, 0, 0, 0) for n in range(4)) for worker in range(2)))


SUMS = {str(n): list(JOB.sum_of(n)) for n in range(2)}


def step_of_lab_4(answer: Any) -> None:
    step = step_in(answer)
    judge_results(JOB, 0, step)
    switch = ModelSwitch(JOB)
    for _, packet in step.sent:
        switch.step(switch.first(), Event("receive", packet, 0))


DRAWN = drawn_plan(Random(0))
SWITCH = DRAWN.switches[0]


class Answers:
    """A process that gives one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def ask(self, *_: Any) -> Any:
        return self.answer

    def close(self) -> None:
        """Nothing runs."""


def entries_of_lab_5(answer: Any) -> None:
    student = StudentEntries.__new__(StudentEntries)
    vars(student).update(process=Answers(answer), drawn=None, rows={})

    def entries(drawn: Any, switch: str, wanted: Any = tuple(TABLES)) -> Any:
        return student(drawn, switch, wanted) if switch == SWITCH else course_entries(drawn, switch, wanted)

    network = model_network(entries, DRAWN, *TABLES)
    run_jobs(network, Random(0))


def rows_of_lab_5() -> list[Any]:
    """The right answer for a switch."""
    found = course_entries(DRAWN, SWITCH)
    rows: list[Any] = [["entry", each.table, list(each.key), each.action, list(each.params)] for each in found.tables]
    return rows + [["group", each.group, list(each.ports)] for each in found.groups]


PROBLEM = plan_networks.for_slots(Random(0))[0]


def keeps(found: plan_rules.StudentPlan, rules: Sequence[plan_lab.Check]) -> None:
    for rule in rules:
        rule(found)


def plan_of_lab_6(answer: Any) -> None:
    found = plan_of(answer, PROBLEM)
    plan_rules.check_ends(found)
    for item in plan_lab.LAB.items:
        if isinstance(item.check, partial):
            tried(keeps, found, item.check.args[1])
    plan_rules.check_climbs(found)
    found.routes_bps()


def trees_of_lab_6() -> list[Any]:
    """A right plan."""
    space: dict[str, Any] = {"__name__": "planner"}
    exec((TEACHER / "6-plan" / "solutions" / "planner.py").read_text(), space)
    planned = space["plan"](plan_networks.fabric_given(PROBLEM.fabric), plan_networks.jobs_given(PROBLEM))
    return list(json.loads(json.dumps(planned)))


def of_lab(lab: str, name: str) -> str:
    return (TEACHER / lab / "solutions" / name).read_text()


READ: Mapping[str, tuple[Callable[[], Any], Callable[[Any, Random, int], Iterator[Any]], Callable[[Any], None]]] = {
    "answers of lab 3": (lambda: of_lab("3-pool", "answers.yml"), texts, answers_of_lab_3),
    "steps of lab 4": (lambda: [0, [[1, 0, 1, 0, [7] * 8]] * 2, SUMS], documents, step_of_lab_4),
    "entries of lab 5": (rows_of_lab_5, documents, entries_of_lab_5),
    "trees of lab 6": (trees_of_lab_6, documents, plan_of_lab_6),
    **{
        f"{name} of lab 7": (partial(of_lab, "7-measure", name), kind, of_lab_7(name))
        for name, kind in (
            ("answers.yml", texts),
            ("results.csv", tables),
            ("summary.csv", tables),
            ("report.md", texts),
        )
    },
}
QUICK, LONG = 60, 100_000 // len(READ)


@pytest.mark.parametrize(("name", "count"), [long_unless(n == QUICK, name, n) for name in READ for n in (QUICK, LONG)])
def test_only_their_faults_are_told(name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.SCRATCH", tmp_path)
    monkeypatch.setattr(measure_lab, "intervals", lambda values: intervals(tuple(values)))
    right, changes, read = READ[name]
    document = right()
    read(document)
    for number, changed in enumerate(changes(document, Random(f"{name}/{count}"), count)):
        try:
            tried(read, changed)
        except Exception as error:
            pytest.fail(f"case {number}: {type(error).__name__}: {error}: {shown(changed)}")


@pytest.mark.parametrize("word", WORDS, ids=map(str, range(len(WORDS))))
def test_yaml_is_plain_or_refused(word: str) -> None:
    kind = FileKind("file", max_bytes=1 << 20)
    for text in (f"a: {word}\n", f"{word}: 1\n", f"- {word}\n"):
        try:
            document = parse_text(text, Path("a.yml"), kind).document
        except InputError as error:
            str(error).encode()
        else:
            assert "!" not in word[:1]
            shown(document).encode()


@pytest.mark.skipif(not landlock_version(), reason="needs Landlock")
@pytest.mark.parametrize("count", [long_unless(True, 40), long_unless(False, 4000)])
def test_study_files(count: int, tmp_path: Path) -> None:
    write_own_fabric("ann", tmp_path)
    right = of_lab("7-measure", "study.yml")
    module = "inakit.experiments.labs.sandbox.study_runner"
    with closing(Sandboxed(module, study_limits(str(tmp_path)), {"mistake": WrongError}, site=True)) as process:
        assert process.ask("runs", str(tmp_path), right)
        for changed in texts(right, Random(count), count):
            tried(process.ask, "runs", str(tmp_path), changed)


@pytest.mark.skipif(not landlock_version(), reason="needs Landlock")
@pytest.mark.parametrize("count", [long_unless(True, 25), long_unless(False, 16_000)])
def test_compiled_programs(count: int) -> None:
    right = program_in(read_archive(TEACHER / "2-sum"), of_lab("2-sum", "sum.p4"), "sum.p4")
    with closing(SandboxedSwitch(right, "sum", replace(switch_limits(), cpu_s=2, wall_s=4.0))) as switch:
        for changed in documents(json.loads(right), Random(count), count):
            tried(loaded, switch, json.dumps(changed))


def loaded(switch: SandboxedSwitch, text: str) -> None:
    """Load a program and send a packet."""
    switch.process.load = ("load", text, "sum")
    switch.process.ask("load", text, "sum")
    switch.inject(1, bytes(60))
    for line in switch.trace(1, bytes.fromhex("02000000000202000000000188b5") + bytes(40)).lines:
        Finding("x", trace=(line,))


# -- the reader


@pytest.mark.parametrize("value", [*VALUES, Unprintable(), b"", object, {1: 2}])
def test_what_is_read_is_bounded_and_can_be_shown(value: Any) -> None:
    reader = Reader(WrongError)
    for read in (reader.whole, reader.number, reader.text, reader.wholes):
        try:
            found = read("x", value)
        except WrongError as wrong:
            wrong.cause.encode()
            assert wrong.cause.startswith("x: ")
        else:
            str(found).encode()
            assert len(str(found)) < 6000
    shown(value).encode()
    assert shown(value).isprintable()


def test_cells_are_numbers_or_texts() -> None:
    assert [plain(each) for each in ("12", " 1.5 ", "1e3", "x", "9" * 50, "\u0663", "")] == [
        12, 1.5, 1000.0, "x", "9" * 50, "\u0663", ""
    ]  # fmt: skip
    assert plain(repr(-math.pi * 1e-105)) == -math.pi * 1e-105
    assert plain(f"{math.pi:.35f}") == math.pi


def test_control_characters_are_shown_each_in_its_own_form() -> None:
    assert printable("a\x1b[2J\n\u202e\ud800\\") == "a\\x1b[2J\\n\\u202e\\ud800\\"
