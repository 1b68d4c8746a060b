"""Examples that hypothesis draws: the same ones in every run, new ones with `make fuzz`, and the ones that failed.

`make fuzz` writes every failing example to a file in `tests/found`. `make test` replays these files before it draws
its own examples. A file holds the choices from which the strategies make the example (`blob`), and the example in words
(`arguments`). If the strategies have changed, so that the same choices make another example, the test fails and says
so: no example is lost silently.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import is_hypothesis_test, settings
from hypothesis.errors import DidNotReproduce
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

FOUND = Path("tests/found")
"""The folder of the failing examples, relative to the project's folder."""

BLOB = re.compile(r"@reproduce_failure\('[^']*', b'([^']*)'\)")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True)
class Found:
    """A failing example: the node id of its test, the choices, the arguments and the failure in words."""

    test: str
    blob: str
    arguments: str
    failure: str

    @property
    def file_name(self) -> str:
        name = self.test.split("::")[-1].split("[")[0].removeprefix("test_")
        return f"{name[:60]}-{sha256((self.test + self.blob).encode()).hexdigest()[:8]}.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("examples that hypothesis draws")
    group.addoption("--fuzz-seconds", type=float, metavar="S", help="draw new examples for S seconds in all")
    group.addoption("--fuzz-examples", type=int, metavar="N", help="draw N new examples for each test")


def pytest_configure(config: pytest.Config) -> None:
    """Without `--fuzz-...`, draw the same examples in every run, whichever modules it happens to import."""
    if fuzzing(config):
        return
    settings.register_profile("same", derandomize=True, deadline=None)
    settings.load_profile("same")
    none = Constants()
    providers._get_local_constants = lambda: none


def fuzzing(config: pytest.Config) -> bool:
    return any(config.getoption(name) is not None for name in ("fuzz_seconds", "fuzz_examples"))


def drawn(item: pytest.Item) -> bool:
    """Whether hypothesis draws a test's arguments."""
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--fuzz-...`, run only the tests that draw, each for its share of the time."""
    if not fuzzing(config):
        return
    others = [item for item in items if not drawn(item)]
    items[:] = [item for item in items if drawn(item)]
    config.hook.pytest_deselected(items=others)
    config.stash[SHARE_S] = (config.getoption("fuzz_seconds") or 0.0) / max(1, len(items))


SHARE_S = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Replay the kept examples of a test; then draw examples as usual or, with `--fuzz-...`, new ones."""
    if not drawn(pyfuncitem):
        return None
    for found in kept(pyfuncitem.config.rootpath / FOUND, pyfuncitem.nodeid):
        replay(pyfuncitem, found)
    if not fuzzing(pyfuncitem.config):
        return None
    draw_anew(pyfuncitem)
    return True


def kept(folder: Path, test: str) -> list[Found]:
    """The failing examples that a folder keeps of a test."""
    everything = (Found(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json")))
    return [found for found in everything if found.test == test]


def keep(folder: Path, found: Found) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / found.file_name
    path.write_text(json.dumps(asdict(found), indent=2) + "\n")
    return path


def run(item: pytest.Function) -> None:
    item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})


def replay(item: pytest.Function, found: Found) -> None:
    """Run a test with a kept example. Fails as the test does, or if the choices make another example today."""
    choices = hypothesis.__version__, found.blob.encode()
    with watched(item) as seen, attribute(item.obj, "reproduce_failure", choices), suppress(DidNotReproduce):
        run(item)  # if nothing is reproduced, the fault is mended or the choices make no example: `seen` tells which
    if [found.arguments] != seen:
        pytest.fail(
            f"a kept example is not drawn any more, for the strategies have changed. It was: {found.arguments}\n"
            f"Give it to {found.test} as an @example, if it still has a meaning, and delete {FOUND / found.file_name}",
            pytrace=False,
        )


def draw_anew(item: pytest.Function) -> None:
    """Draw new examples until the test's share of the time is over, at least once, and keep the one that fails."""
    started, share_s = time.monotonic(), item.config.stash[SHARE_S]
    usual: settings = item.obj._hypothesis_internal_use_settings
    examples = item.config.getoption("fuzz_examples") or usual.max_examples
    anew = settings(
        usual, max_examples=examples, derandomize=False, database=None, print_blob=True, report_multiple_bugs=False
    )
    with watched(item) as seen, attribute(item.obj, "settings", anew):
        while True:
            try:
                run(item)
            except BaseException as error:
                keep_failure(item, error, seen)
                raise
            if time.monotonic() - started >= share_s:
                return


def keep_failure(item: pytest.Function, error: BaseException, seen: list[str]) -> None:
    """Write the example to a file and say where, in a note of the error."""
    notes = "\n".join(getattr(error, "__notes__", []))
    blob = BLOB.search(notes)
    if blob is None or not seen:
        return
    found = Found(item.nodeid, blob[1], seen[-1], f"{type(error).__name__}: {error}")
    path = keep(item.config.rootpath / FOUND, found)
    error.add_note(f"Kept as {path.relative_to(item.config.rootpath)}: `make test` replays it; commit it.")


@contextmanager
def watched(item: pytest.Function) -> Iterator[list[str]]:
    """Collect the drawn arguments of each call in words; the last call of a failing test is its smallest example."""
    handle = item.obj.hypothesis
    inner: Callable[..., Any] = handle.inner_test
    seen: list[str] = []

    @wraps(inner)
    def watching(*args: Any, **arguments: Any) -> Any:
        own = {name: value for name, value in arguments.items() if name not in item.funcargs}
        seen[:] = [ADDRESS.sub("", ", ".join(f"{name}={value!r}" for name, value in own.items()))]
        return inner(*args, **arguments)

    handle.inner_test = watching
    try:
        yield seen
    finally:
        handle.inner_test = inner


@contextmanager
def attribute(test: Any, name: str, value: object) -> Iterator[None]:
    """Give a test another value of one of its attributes that hypothesis keeps, during the block."""
    full = f"_hypothesis_internal_use_{name}"
    before = getattr(test, full)
    setattr(test, full, value)
    try:
        yield
    finally:
        setattr(test, full, before)
