"""Lab 7: a study. Does in-network aggregation (INA) pay on this fabric, and for which messages?

The fabric is drawn from the student's name. Submissions (answers, a study file, the table of its runs, a summary, a
report) are parsed strictly, within size limits, and never executed. The grader checks the design, the table (some runs
are repeated), the 95 % intervals, and the answers that follow from the table. A person reads the rest, with the rubric
of the teacher's guide.
"""

from __future__ import annotations

import csv
import io
import re
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.lab import Item, Lab, WrongError, scored
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import ROOT, Sandboxed, python_paths
from inakit.experiments.labs.sandbox.untrusted import Reader, plain, shown
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.study.study import measure_setting
from inakit.experiments.study.summary import bootstrapped
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_ina
from inakit.topo.files.fabrics import save_fabric
from inakit.topo.files.reader import FileKind, parse_text

FILE = "fabric.yml"
WORKERS = 8
MOST_NAME = 60
LEAVES, HOSTS_PER_LEAF = 4, 4
SUMMING = 2
"""The number of leaves that sum; no spine does. The server's link carries several flows, which slows long messages."""
GBPS, MICROSECOND_S = 1e9, 1e-6


def own_fabric(student: str) -> Fabric:
    """The leaf-spine of a student: drawn rates, delays, and leaves that sum. Raises `InputError` for an empty name."""
    name = student.strip()
    if not name or len(name) > MOST_NAME:
        raise InputError(f"student '{name[:MOST_NAME]}': expected a name of 1 to {MOST_NAME} letters")
    random = Random(f"7-measure/{name}")
    plain = leaf_spine(LEAVES, random.choice((2, 3)), HOSTS_PER_LEAF)
    host_bps = random.choice((10, 25, 40)) * GBPS
    links = []
    for link in plain.links:
        bps = host_bps if link.a in plain.host_names else host_bps * random.choice((1, 1, 1.6))
        delay_s = random.choice((0.4, 0.7, 1.0, 1.5)) * MICROSECOND_S
        links.append(replace(link, capacity_ab_bps=bps, capacity_ba_bps=bps, delay_s=delay_s))
    leaves = random.sample([switch.name for switch in plain.switches if switch.tier == 1], SUMMING)
    return with_ina(replace(plain, name="own", links=tuple(links)), leaves)


def write_own_fabric(student: str, folder: Path) -> Path:
    """Write the fabric of a student to `fabric.yml` in a folder. Raises `InputError` and `OutputError`."""
    save_fabric(own_fabric(student), folder / FILE)
    return folder / FILE


ANSWERS, STUDY, RESULTS, SUMMARY, REPORT = "answers.yml", "study.yml", "results.csv", "summary.csv", "report.md"
FILES = (ANSWERS, STUDY, RESULTS, SUMMARY, REPORT)
MOST_BYTES = {ANSWERS: 4_000, STUDY: 8_000, RESULTS: 400_000, SUMMARY: 100_000, REPORT: 100_000}
KIND = FileKind("file of answers", MOST_BYTES[ANSWERS], tells_lines=True)
READER = Reader(WrongError)
INA, RING = "aro", "ring"
RESULT_COLUMNS = ("planner", "gradient_bytes", "seed", "communication_time_s")
FIGURES = (INA, RING, "difference")
ENDS = ("mean_s", "low_s", "high_s")
SUMMARY_COLUMNS = ("gradient_bytes", *(f"{figure}_{end}" for figure in FIGURES for end in ENDS))
MOST_GRADIENT_BYTES, MOST_SEED, MOST_ROWS = 1 << 20, 1 << 20, 2000


class RunKey(NamedTuple):
    """The key of a run."""

    planner: str
    gradient_bytes: int
    seed: int

    def __str__(self) -> str:
        return f"{self.planner}, {self.gradient_bytes} bytes, seed {self.seed}"


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def study_limits(folder: str) -> Limits:
    """The limits of the process that reads a study file; the fabric is in `folder`."""
    parts = (str(ROOT / "inakit" / name) for name in ("topo", "planner", "switch", "traffic", "experiments", "p4"))
    readable = (*python_paths(), *parts, sysconfig.get_path("purelib"), folder)
    return Limits(cpu_s=10, wall_s=30.0, memory_bytes=1536 * MIB, readable=readable)


@dataclass(frozen=True)
class HandedIn:
    """The files of a submission, each read on first use."""

    submission: Submission

    @classmethod
    def of_bench(cls, bench: Bench) -> HandedIn:
        """The files of the bench's submission."""
        return cls(bench.submission)

    def text(self, name: str) -> str:
        """The text of a file. Raises `InputError` if it is missing, `WrongError` if it is too long."""
        text = self.submission.text(name)
        if len(text.encode()) > MOST_BYTES[name]:
            raise WrongError(f"{name} has more than {MOST_BYTES[name]} bytes")
        return text

    @cached_property
    def answers(self) -> dict[str, Any]:
        """`answers.yml`."""
        document = parse_text(self.text(ANSWERS), Path(ANSWERS), KIND).document
        return READER.mapping(ANSWERS, document, "answers: student, crossover_bytes and speedup")

    @property
    def student(self) -> str:
        """The name that the fabric is drawn from."""
        student = READER.text(f"{ANSWERS}: 'student'", self.answers.get("student"), MOST_NAME).strip()
        if not student:
            raise WrongError(f"{ANSWERS}: 'student' is empty: the name with which your fabric was made is expected")
        return student

    @cached_property
    def study(self) -> list[dict[str, Any]] | WrongError:
        """The runs that the study file asks for, or the mistake in it."""
        text, module = self.text(STUDY), "inakit.experiments.labs.sandbox.study_runner"
        with tempfile.TemporaryDirectory(prefix="inakit-study-") as folder:
            write_own_fabric(self.student, Path(folder))
            with closing(Sandboxed(module, study_limits(folder), {"mistake": WrongError}, site=True)) as process:
                try:
                    found: list[dict[str, Any]] = process.ask("runs", folder, text)
                except WrongError as mistake:
                    return mistake
                return found

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs of the study file: for each, the keys that differ from the default."""
        if isinstance(self.study, WrongError):
            raise WrongError(self.study.cause)
        return self.study

    @property
    def keys(self) -> list[RunKey]:
        """The keys of the runs that the study file asks for."""
        return [
            RunKey(str(run.get("planner", INA)), int(run.get("gradient_bytes", 0)), int(run.get("seed", 0)))
            for run in self.runs
        ]

    @cached_property
    def results(self) -> dict[RunKey, float]:
        """`results.csv`: the seconds of each run. Raises `WrongError` for a repeated run."""
        found: dict[RunKey, float] = {}
        for line, row in rows_of(self.text(RESULTS), RESULTS, RESULT_COLUMNS):
            key = RunKey(
                row[0],
                READER.whole(line, plain(row[1]), MOST_GRADIENT_BYTES),
                READER.whole(line, plain(row[2]), MOST_SEED),
            )
            if key.planner not in (INA, RING):
                raise WrongError(f"{line}: planner {shown(key.planner)}: {INA} or {RING} is expected")
            if key in found:
                raise WrongError(f"{line}: the run {key} is there twice")
            if len(found) == MOST_ROWS:
                raise WrongError(f"{RESULTS} has more than {MOST_ROWS} runs")
            found[key] = READER.number(line, plain(row[3]), positive=True)
        if not found:
            raise WrongError(f"{RESULTS} has no run")
        return found

    @cached_property
    def summary(self) -> dict[int, dict[str, Interval]]:
        """`summary.csv`: by size, the intervals of INA, of the ring, and of their difference, in seconds."""
        found: dict[int, dict[str, Interval]] = {}
        for line, row in rows_of(self.text(SUMMARY), SUMMARY, SUMMARY_COLUMNS):
            values = [READER.number(line, plain(each)) for each in row[1:]]
            ends = (Interval(*values[3 * n : 3 * n + 3]) for n in range(len(FIGURES)))
            size = READER.whole(line, plain(row[0]), MOST_GRADIENT_BYTES)
            if size in found:
                raise WrongError(f"{line}: the size {size} is there twice")
            found[size] = dict(zip(FIGURES, ends, strict=True))
        return found

    def pairs(self, size: int) -> list[tuple[float, float]]:
        """The times of INA and of the ring at a size, in runs of the same seed."""
        seeds = sorted(key.seed for key in self.results if key[:2] == (INA, size))
        both = [(RunKey(INA, size, seed), RunKey(RING, size, seed)) for seed in seeds]
        return [(self.results[a], self.results[b]) for a, b in both if b in self.results]

    @property
    def sizes(self) -> list[int]:
        """The sizes in the table, in ascending order."""
        return sorted({key.gradient_bytes for key in self.results})


def rows_of(text: str, name: str, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines of a CSV file below its heading, each with its location for messages."""
    # StringIO turns the line ends of Windows and of old Macs into newlines.
    reader = csv.reader(io.StringIO(text, newline=None))
    try:
        heading = [each.strip() for each in next(reader, [])]
        if heading != list(columns):
            raise WrongError(f"{name}: the first line is {shown(','.join(heading))}: {','.join(columns)} is expected")
        for row in reader:
            line = f"{name}:{reader.line_num}"
            if len(row) != len(columns):
                raise WrongError(f"{line}: {len(row)} values, where there are {len(columns)} columns")
            yield line, row
    except csv.Error as error:
        raise WrongError(f"{name}:{reader.line_num}: {error}") from None


ROUNDED = 5e-4
"""The relative tolerance of a number, for rounding to four digits."""
EXACT, LOOSE = 0.0025, 0.14
"""The tolerances of an interval's end, relative to half the width: of Student's t, which the task's formula gives to
0.2 %, and of the bootstrap, which is random. Up to 20 values a t of another number of values is farther away."""
WIDTHS = 0.07
"""The relative tolerance of the widths of bootstrap intervals in the mean; intervals of 90 % have 16 % less."""


def intervals(values: Sequence[float]) -> tuple[Interval, Interval]:
    """Student's t interval of the mean, and the bootstrap's percentile interval, which is narrower."""
    t, drawn = estimate(values), bootstrapped(values)
    t_low, t_high = (t.value, t.value) if t.low is None or t.high is None else (t.low, t.high)
    low, high = (t.value, t.value) if drawn.low is None or drawn.high is None else (drawn.low, drawn.high)
    return Interval(t.value, t_low, t_high), Interval(t.value, low, high)


class Claim(NamedTuple):
    """An interval that a student gives for values; `scale` is a number whose rounding counts, as that of the ends."""

    what: str
    given: Interval
    values: Sequence[float]
    scale: float

    @property
    def rounding(self) -> float:
        """The tolerance for rounding."""
        return ROUNDED * max(abs(number) for number in (self.scale, *self.given))

    def near(self, right: Interval, tolerance: float) -> bool:
        """Whether both ends are those of an interval, up to a part of half its width and to rounding."""
        loose = tolerance * (right.high - right.low) / 2 + self.rounding
        return abs(self.given.low - right.low) <= loose and abs(self.given.high - right.high) <= loose

    @property
    def symmetric(self) -> bool:
        """Whether the mean is in the middle, as of an interval by a formula."""
        low, high = self.given.mean - self.given.low, self.given.high - self.given.mean
        return abs(high - low) <= max(2 * self.rounding, EXACT * abs(high + low) / 2)


def check_claims(where: str, claims: Sequence[Claim], *, only_t: bool = False) -> None:
    """Raise `WrongError` unless all intervals are of 95 %, by Student's t or by the bootstrap.

    At ten values an interval of 90 % by Student's t is as wide as the bootstrap's of 95 %. So intervals that all are
    symmetric are taken to be Student's.
    """
    only_t = only_t or (len(claims) > len(FIGURES) and all(each.symmetric for each in claims))
    ratios = []
    for claim in claims:
        t, drawn = intervals(claim.values)
        given = claim.given
        if abs(given.mean - t.mean) > claim.rounding:
            raise WrongError(f"{where}{claim.what}: the mean is {given.mean:.6g}, of the table it is {t.mean:.6g}")
        if claim.near(t, EXACT):
            continue
        if only_t or not claim.near(drawn, LOOSE):
            ends = [("low", given.low, t.low, drawn.low), ("high", given.high, t.high, drawn.high)]
            name, end, one, other = max(ends, key=lambda each: abs(each[1] - each[2]))
            kinds = f"{one:.6g} by Student's t" + ("" if only_t else f", {other:.6g} by the bootstrap")
            found = f"the {name} end of the 95 % interval is {end:.6g}, of the table it is {kinds}"
            raise WrongError(f"{where}{claim.what}: {found}")
        ratios.append((given.high - given.low) / (drawn.high - drawn.low))
    if ratios and len(claims) > len(FIGURES) and abs(fmean(ratios) - 1) > WIDTHS:
        width = f"{fmean(ratios):.0%} of the width of those of 95 % in the mean"
        raise WrongError(f"{where}intervals by the bootstrap have {width}")


def verdicts(values: Sequence[float]) -> set[int]:
    """The possible signs of a mean: 1 or -1 where the interval excludes 0, 0 where it does not.

    There are two signs if the two kinds of intervals disagree.
    """
    return {(each.low > 0) - (each.high < 0) for each in intervals(values)}


STAYS = {"world": "virtual", "fabric": FILE, "workers": WORKERS}
VARIES = ("planner", "gradient_bytes", "seed")
LEAST_SEEDS, LEAST_SIZES = 10, 7
SHORT_BYTES, LONG_BYTES = 2048, 131072
MOST_RUNS = 600
SAMPLES = 8
"""The number of runs of each method that are repeated: if a quarter are altered, one of them is with 99 %."""
SAME = 1e-3
NARROW = 4.0
HEADINGS = ("Question", "Setup", "Results", "Limits", "Answer")
LEAST_WORDS = 20


def begin(bench: Bench) -> None:
    """Note the student whose fabric is graded; `InputError` for a submission without any of the files."""
    if not set(FILES) & set(bench.submission.texts):
        bench.submission.text(ANSWERS)
    with suppress(WrongError, InputError):
        bench.notes.append(f"graded on the fabric of student {shown(bench.once(HandedIn.of_bench).student)}")


def check_own(bench: Bench) -> None:
    """The study uses the student's own fabric, as the task requires."""
    handed = bench.once(HandedIn.of_bench)
    student, expected = handed.student, bench.submission.student
    if expected and student != expected:
        raise WrongError(f"{ANSWERS} names the student {shown(student)}, but {shown(expected)} handed it in")
    for run in handed.runs:
        stays = {key: value for key, value in run.items() if key not in VARIES}
        for key in sorted({*stays, *STAYS}):
            if stays.get(key) != STAYS.get(key):
                there = shown(stays[key]) if key in stays else "missing"
                wanted = repr(STAYS[key]) if key in STAYS else "nothing, leave it out"
                raise WrongError(f"{STUDY}: '{key}' is {there}; the task has {wanted}")


def check_design(bench: Bench) -> None:
    """The study has both methods in the same runs, enough seeds, and sizes from short to long."""
    keys = bench.once(HandedIn.of_bench).keys
    if len(keys) > MOST_RUNS:
        raise WrongError(f"{STUDY} asks for {len(keys)} runs: at most {MOST_RUNS} are enough")
    if others := sorted({key.planner for key in keys} - {INA, RING}):
        raise WrongError(f"{STUDY} has the planner {shown(others[0])}: {INA} (with INA) and {RING} are compared")
    seeds: dict[int, dict[str, set[int]]] = defaultdict(lambda: {INA: set(), RING: set()})
    for key in keys:
        seeds[key.gradient_bytes][key.planner].add(key.seed)
    for size, by in sorted(seeds.items()):
        if by[INA] != by[RING]:
            told = f"{INA} has seeds {listed(by[INA])} and {RING} {listed(by[RING])}"
            raise WrongError(f"{STUDY}: at {size} bytes {told}: both run with the same ones")
        if len(by[INA]) < LEAST_SEEDS:
            raise WrongError(f"{STUDY}: {len(by[INA])} seeds at {size} bytes: at least {LEAST_SEEDS} are expected")
    sizes = sorted(seeds)
    if len(sizes) < LEAST_SIZES:
        raise WrongError(f"{STUDY} has {len(sizes)} sizes: at least {LEAST_SIZES} are expected")
    if sizes[0] > SHORT_BYTES or not LONG_BYTES <= sizes[-1] <= MOST_GRADIENT_BYTES:
        wanted = f"from {SHORT_BYTES} or less to {LONG_BYTES} or more, and at most {MOST_GRADIENT_BYTES}"
        raise WrongError(f"{STUDY} has sizes from {sizes[0]} to {sizes[-1]} bytes: {wanted}")


def listed(numbers: set[int]) -> str:
    """The first few numbers, in order."""
    shown = ", ".join(map(str, sorted(numbers)[:5]))
    return f"{shown}, ..." if len(numbers) > 5 else shown or "none"


def check_table(bench: Bench) -> None:
    handed = bench.once(HandedIn.of_bench)
    asked, there = handed.keys, handed.results
    if missing := [key for key in asked if key not in there]:
        raise WrongError(f"{RESULTS} lacks {len(missing)} of the runs of {STUDY}, such as {missing[0]}")
    if more := sorted(set(there) - set(asked)):
        raise WrongError(f"{STUDY} does not ask for {len(more)} of the runs in {RESULTS}, such as {more[0]}")


def check_again(bench: Bench) -> None:
    """Repetitions of a random sample of runs give the same times."""
    handed = bench.once(HandedIn.of_bench)
    results = handed.results
    with tempfile.TemporaryDirectory(prefix="inakit-study-") as folder:
        fabric = write_own_fabric(handed.student, Path(folder))
        for planner in (INA, RING):
            own = sorted(key for key in results if key.planner == planner and key.gradient_bytes >= 4)
            for key in sorted(bench.random.sample(own, min(SAMPLES, len(own)))):
                row = measure_setting({**STAYS, "fabric": str(fabric), **key._asdict()})
                given, found = results[key], row["measured_communication_time_s"]
                if found is None or abs(given - found) > SAME * found:
                    took = f"{found:.9g} s" if found is not None else "nothing"
                    again = f"run again on the fabric of student {shown(handed.student)} it gives {took}"
                    raise WrongError(f"{RESULTS}: the run {key} has {given:.9g} s; {again}")


def summary_claims(handed: HandedIn) -> Iterator[Claim]:
    """The intervals of the summary. Raises `WrongError` if a line is missing."""
    for size in handed.sizes:
        if size not in handed.summary:
            raise WrongError(f"{SUMMARY} has no line for {size} bytes")
        pairs = handed.pairs(size)
        if len(pairs) < 2:
            raise WrongError(f"{RESULTS} has {len(pairs)} seeds with both methods at {size} bytes: no interval")
        columns = ([a for a, _ in pairs], [b for _, b in pairs], [b - a for a, b in pairs])
        for figure, values in zip(FIGURES, columns, strict=True):
            scale = fmean(columns[1] if figure == FIGURES[2] else values)
            yield Claim(f"{figure} at {size} bytes", handed.summary[size][figure], values, scale)


def check_intervals(bench: Bench) -> None:
    """The summary has a line for each size, with the means and intervals of the table, and for no other."""
    handed = bench.once(HandedIn.of_bench)
    check_claims(f"{SUMMARY}: ", list(summary_claims(handed)))
    if more := sorted(set(handed.summary) - set(handed.sizes)):
        raise WrongError(f"{SUMMARY} has a line for {more[0]} bytes, a size that {RESULTS} does not have")


def check_crossover(bench: Bench) -> None:
    """The crossover lies where the difference's intervals change sign, and is known to a factor of 4."""
    handed = bench.once(HandedIn.of_bench)
    what = "sizes, the largest at which INA is quicker and the smallest at which the ring is,"
    found = handed.answers.get("crossover_bytes")
    low, high = READER.wholes(f"{ANSWERS}: 'crossover_bytes'", found, what=what, length=2, least=2)
    if not 0 < low < high:
        raise WrongError(f"{ANSWERS}: 'crossover_bytes' is [{low}, {high}]: the second size is greater")
    given = f"{ANSWERS}: crossover_bytes [{low}, {high}]"
    signs = {size: verdicts([b - a for a, b in pairs]) for size in handed.sizes if (pairs := handed.pairs(size))}
    for end in (low, high):
        if end not in signs:
            raise WrongError(f"{ANSWERS}: crossover_bytes has {end}, a size that the table does not have")
    words = {1: "INA is quicker", -1: "the ring is quicker"}
    shows = {sign: f"says that {quicker}" for sign, quicker in words.items()} | {0: "contains 0"}
    for size, found in signs.items():
        sign = 1 if size <= low else -1 if size >= high else 0
        if sign not in found:
            claims = f"says that {words[sign]}" if sign else "leaves open who is quicker"
            table = " or ".join(shows[each] for each in sorted(found))
            raise WrongError(f"{given} {claims} at {size} bytes; the interval of the difference in the table {table}")
    if high > NARROW * low:
        raise WrongError(f"{given} is wider than a factor of 4: measure seeds or sizes between")


def check_speedup(bench: Bench) -> None:
    """The speedups for the shortest and the longest message follow from the table."""
    handed = bench.once(HandedIn.of_bench)
    given = READER.mapping(f"{ANSWERS}: 'speedup'", handed.answers.get("speedup"), "intervals: shortest, longest")
    sizes, only_t = handed.sizes, False
    with suppress(WrongError, InputError):
        only_t = all(claim.symmetric for claim in summary_claims(handed))
    for name, size in (("shortest", sizes[0]), ("longest", sizes[-1])):
        ratios = [b / a for a, b in handed.pairs(size)]
        where, what = (
            f"{ANSWERS}: speedup, {name} ({size} bytes)",
            "numbers (mean, low, high) of the ring's time over INA's",
        )
        ends = [READER.number(where, each) for each in READER.items(where, given.get(name), what, 3, 3)]
        if len(ratios) < 2:
            raise WrongError(f"{RESULTS} has {len(ratios)} seeds with both methods at {size} bytes: no interval")
        check_claims("", [Claim(where, Interval(*ends), ratios, fmean(ratios))], only_t=only_t)


def check_report(bench: Bench) -> None:
    """The report has its parts, and the answer names two sizes, those of the crossover in `answers.yml`."""
    handed = bench.once(HandedIn.of_bench)
    text = handed.text(REPORT)
    parts = {each[1].strip(): each[2] for each in re.finditer(r"^#+ (.*)\n((?:(?!#).*\n?)*)", text, re.M)}
    for heading in HEADINGS:
        if heading not in parts:
            raise WrongError(f"{REPORT} has no part '# {heading}': it has the parts {', '.join(HEADINGS)}")
        words = len(parts[heading].split())
        if words < LEAST_WORDS:
            raise WrongError(f"{REPORT}: '{heading}' has {words} words: at least {LEAST_WORDS} are expected")
    answer = re.sub(r"(?<=\d)[, ](?=\d{3})", "", parts["Answer"])
    sizes = handed.sizes
    named = {int(number) for number in re.findall(r"\b\d{1,7}\b", answer) if sizes[0] <= int(number) <= sizes[-1]}
    crossover = handed.answers.get("crossover_bytes")
    own = {each for each in crossover if each in sizes} if isinstance(crossover, list) else set()
    if len(named) < 2 or not own <= named:
        raise WrongError(f"{REPORT}: the answer does not name the two sizes of the crossover, in bytes")


LAB = Lab(
    name="7-measure",
    title="A study: does INA pay here?",
    hours="5 to 8",
    files=FILES,
    items=scored(
        "7-measure",
        Item("own", "a study of your own fabric", "Step 1", check_own),
        Item("design", "both methods, sizes, seeds", "Step 2", check_design),
        Item("table", "all runs in the table", "Step 3", check_table),
        Item("again", "runs that are run again give the same", "Step 3", check_again),
        Item("intervals", "means and 95 % intervals", "Step 4", check_intervals),
        Item("crossover", "where the ring becomes quicker", "Step 5", check_crossover),
        Item("speedup", "how much quicker INA is", "Step 6", check_speedup),
        Item("report", "the parts of the report", "Step 7", check_report),
    ),
    sandbox_only="has no P4; leave the option out",
    begin=begin,
)
