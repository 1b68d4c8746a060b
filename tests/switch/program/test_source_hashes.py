"""A P4 program that was edited is not run before it is compiled; what is not BMv2 JSON is refused with what it is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.install.ina_program import INA
from inakit.switch.program.bmv2_json import check_sources, compile_by, read_program
from inakit.switch.running_switch import PROGRAM
from inakit.switch.targets import choose_target
from inakit.topo.errors import InputError


@pytest.fixture
def p4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the P4 programs, on a machine without their compiler."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return Path(shutil.copytree(PROGRAM.parents[1], tmp_path / "p4"))


def add(file: Path, text: str) -> None:
    file.write_bytes(file.read_bytes() + text.encode())


def refused(program: Path) -> str:
    with pytest.raises(InputError) as error:
        check_sources(program)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["ina", "circuit"])
def test_a_program_of_its_sources_is_taken(name: str, p4: Path) -> None:
    check_sources(p4 / "build" / f"{name}.json")


@pytest.mark.parametrize(
    ("name", "source"),
    [("ina", "ina.p4"), ("ina", "values.p4"), ("ina", "faults.p4"), ("ina", "marks.p4"), ("circuit", "circuit.p4")],
)
def test_an_edited_source_is_named_even_for_white_space(name: str, source: str, p4: Path) -> None:
    add(p4 / source, "\n")
    assert refused(p4 / "build" / f"{name}.json") == (
        f"p4/{source} has changed since p4/build/{name}.json was compiled: run `make p4`. p4c-bm2-ss is not installed "
        "here: `inakit p4c --install-help` has the ways to get it"
    )


def test_line_endings_are_a_change(p4: Path) -> None:
    source = p4 / "ina.p4"
    source.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))
    assert refused(p4 / "build" / "ina.json").startswith("p4/ina.p4 has changed")


def test_several_sources_are_all_named_and_one_that_is_gone(p4: Path) -> None:
    add(p4 / "ina.p4", "// more\n")
    (p4 / "values.p4").unlink()
    assert refused(p4 / "build" / "ina.json").startswith("p4/ina.p4 and p4/values.p4 have changed or gone since")


def test_a_json_that_was_edited_by_hand_is_told_apart(p4: Path) -> None:
    add(p4 / "build" / "ina.json", "\n")
    assert refused(p4 / "build" / "ina.json").startswith(
        "p4/build/ina.json differs from the compiler's output, and its sources have not changed: it was edited"
    )


def test_a_json_that_is_gone(p4: Path) -> None:
    (p4 / "build" / "ina.json").unlink()
    assert refused(p4 / "build" / "ina.json").startswith("p4/build/ina.json is missing: undo that (git checkout")


def test_where_the_compiler_is_found_it_is_said(p4: Path, tmp_path: Path) -> None:
    (tmp_path / "p4c-bm2-ss").write_text("#!/bin/sh\n")
    (tmp_path / "p4c-bm2-ss").chmod(0o755)
    add(p4 / "ina.p4", "\n")
    assert refused(p4 / "build" / "ina.json").endswith(
        "compiled: run `make p4`, for which p4c-bm2-ss is installed here"
    )


def test_whoever_reads_or_runs_the_program_is_told(p4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(p4 / "ina.p4", "\n")
    program = p4 / "build" / "ina.json"
    monkeypatch.setattr("inakit.switch.targets.PROGRAM", program)
    edited = VirtualWorld(program=replace(INA, path=program))
    for use in (lambda: read_program(program), lambda: choose_target("fast"), edited.check):
        with pytest.raises(InputError, match=r"p4/ina\.p4 has changed"):
            use()


def test_a_program_without_hashes_is_not_asked(p4: Path, tmp_path: Path) -> None:
    own = shutil.copy(p4 / "build" / "ina.json", tmp_path / "own.json")
    read_program(Path(own))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.p4", b"#include <core.p4>\n", "is P4 source; give the compiled program"),
        ("x.json", b"", "empty; the JSON that p4c-bm2-ss writes is expected"),
        ("x.json", b'{"a": 1,\n oops}', "not JSON line 2: Expecting property name enclosed in double quotes; the JSON"),
        ("x.json", b"\xff\xfe\x00", "not JSON; the JSON that"),
        ("x.json", b"[" * 100_000, "not JSON; the JSON that"),
        ("x.json", b"{}", "is not BMv2 JSON as p4c-bm2-ss writes it: KeyError('header_types'); compile the P4 again"),
        ("x.json", b"[1]", "is not BMv2 JSON as p4c-bm2-ss writes it: TypeError("),
    ],
)
def test_what_is_no_program_is_one_line(name: str, text: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(InputError) as error:
        read_program(tmp_path / name)
    assert str(error.value).startswith(str(tmp_path / name))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_p4_source_is_told_with_the_command_that_compiles_it(tmp_path: Path) -> None:
    (tmp_path / "x.p4").write_text("")
    with pytest.raises(InputError) as error:
        read_program(tmp_path / "x.p4")
    command = f"p4c-bm2-ss --std p4-16 -o {tmp_path}/x.json {tmp_path}/x.p4"
    assert str(error.value).endswith(f"{tmp_path}/x.json: {compile_by(command)}")
