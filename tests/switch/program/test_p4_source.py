"""P4 source is compiled once and kept, whatever kind of p4c the machine has; without p4c the ways to it are named.

The compilers are fakes that write what they were given: what p4c makes of P4 is not looked at here.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from inakit.switch.program.p4_source import compiled, find_compiler, ways_to_p4c
from inakit.topo.errors import InputError, MachineError

ROOT = Path(__file__).parents[3]
INSTALLED = """#!/bin/sh
[ "$1" = --version ] && { cat "$0.version"; exit; }
echo "$@" >>"$0.calls"
grep -q WRONG "$5" && { echo "$5(1): [--Werror=type-error] error: WRONG" >&2; exit 1; }
echo "{\\"of\\": \\"$(head -n1 "$5")\\"}" >"$4"
"""
"""p4c as it is installed: called as `p4c-bm2-ss --std p4-16 -o RESULT SOURCE`."""
IMAGE = """#!/bin/sh
[ "$2" = inspect ] && { echo sha256:1234; exit; }
echo "$@" >>"$0.calls"
echo '{"by": "image"}'
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Path:
    """Make a fake program the only one of its kind; return it."""
    programs = folder / "bin"
    programs.mkdir()
    fake = programs / name
    fake.write_text(text)
    fake.chmod(0o755)
    (programs / f"{name}.version").write_text("Version 1.2.4\n")
    for tool in ("cat", "echo", "grep", "head", "sh"):
        (programs / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    return fake


def calls(fake: Path) -> int:
    """How often a fake has compiled."""
    log = fake.with_name(f"{fake.name}.calls")
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_source_is_compiled_once_until_it_or_what_it_includes_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = install(tmp_path, monkeypatch, "p4c-bm2-ss", INSTALLED)
    source, included = tmp_path / "x.p4", tmp_path / "headers.p4"
    source.write_text('// first\n#include "headers.p4"\n')
    included.write_text("// none\n")
    first = compiled(source)
    assert json.loads(first.read_text()) == {"of": "// first"}
    assert compiled(source) == first and calls(fake) == 1
    included.write_text("// other\n")
    assert compiled(source) != first and calls(fake) == 2
    source.write_text('// second\n#include "headers.p4"\n')
    assert json.loads(compiled(source).read_text()) == {"of": "// second"}


def test_errors_have_their_lines_and_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(tmp_path, monkeypatch, "p4c-bm2-ss", INSTALLED)
    source = tmp_path / "x.p4"
    source.write_text("WRONG\n")
    for attempt in (1, 2):
        with pytest.raises(InputError, match=r"does not compile:\nx\.p4\(1\): .*error: WRONG"):
            compiled(source)
        assert calls(fake) == attempt


@pytest.mark.parametrize("runner", ["docker", "podman"])
def test_images_compile_what_stands_beside_the_source_and_may_not_write_there(
    runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = install(tmp_path, monkeypatch, runner, IMAGE)
    source = tmp_path / "x.p4"
    source.write_text("// any\n")
    assert json.loads(compiled(source).read_text()) == {"by": "image"}
    assert f"-v {tmp_path}:/work:ro -w /work p4lang/p4c p4c-bm2-ss" in Path(f"{fake}.calls").read_text()


def test_without_p4c_the_ways_to_it_are_named_and_json_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    source = tmp_path / "x.p4"
    source.touch()
    assert find_compiler() is None
    told = r"where Docker runs: docker pull.*where podman runs: podman pull.*vagrant up.*inakit p4c --install-help"
    with pytest.raises(MachineError, match=told):
        compiled(source)
    assert compiled(tmp_path / "x.json") == tmp_path / "x.json"


@pytest.mark.parametrize("name", ["p4/ina.p4", "p4/examples/count.p4", "tests/stf/programs/router.p4"])
def test_programs_of_the_kit_come_compiled_until_they_change(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "no programs"))
    for folder in ("p4", "tests/stf"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    program = tmp_path / name
    assert json.loads(compiled(program).read_text())["actions"]
    program.write_text(program.read_text() + "// changed\n")
    with pytest.raises(MachineError, match="p4c is not installed"):
        compiled(program)


def test_a_copy_of_an_example_needs_no_p4c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the page that has it, from which it is copied without the end of its last line."""
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    copy = tmp_path / "mine.p4"
    copy.write_text((ROOT / "p4" / "examples" / "count.p4").read_text().rstrip())
    assert json.loads(compiled(copy).read_text())["actions"]


@pytest.mark.parametrize(
    ("system", "machine", "first", "option"),
    [
        ("ubuntu 22.04", "x86_64", "p4lang's package for ubuntu 22.04", ""),
        ("ubuntu 22.04", "aarch64", "Docker's image", "--platform linux/amd64 "),
        ("debian 13", "x86_64", "Docker's image", ""),
        ("darwin", "arm64", "Docker's image", "--platform linux/amd64 "),
    ],
)
def test_the_ways_are_those_of_the_system(system: str, machine: str, first: str, option: str) -> None:
    ways = {way.heading: way.commands for way in ways_to_p4c(system, machine)}
    assert next(iter(ways)) == first
    assert ways["Docker's image"] == (f"docker pull {option}p4lang/p4c",)
