"""STF tests played: they pass alike on every target, and differences are shown byte by byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from single_targets import EVERYWHERE, PROGRAMS
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.testing.stf_play import StfVerdict, play
from inakit.switch.testing.stf_script import Add, StfNames, parse_script, read_script
from inakit.topo.errors import InputError

TESTS = sorted(path.stem for path in PROGRAMS.glob("*.stf"))


@pytest.mark.parametrize("target", EVERYWHERE)
@pytest.mark.parametrize("name", TESTS)
def test_every_target_passes(name: str, target: str) -> None:
    result = play(PROGRAMS / f"{name}.json", read_script(PROGRAMS / f"{name}.stf"), target)
    assert (result.verdict, result.reasons) == (StfVerdict.PASS, ())


def played(text: str) -> tuple[StfVerdict, str]:
    result = play(PROGRAMS / "clones.json", list(parse_script("mirroring_add 7 4\n" + text)), "interpreted")
    return result.verdict, "\n".join(result.reasons)


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "packet 1 0000aa\nexpect 4 0100ab": "port 4, packet 1 (line 3): byte 2 differs\n"
        "  expected 01 00 AB\n  got      01 00 AA\n                  ^",
        "packet 1 0000aa\nexpect 4 0100aabb": "port 4, packet 1 (line 3): 3 bytes instead of 4",
        "packet 1 0000aa\nexpect 4 0100 $": "port 4, packet 1 (line 3): 3 bytes instead of exactly 2",
        "packet 1 0000aa\nexpect 4 0100\nexpect 4 0100": "port 4: nothing came for line 4",
        "packet 4 0000aa": "port 4: a packet came that is not expected\n  got      01 00 AA",
    }.items(),
)
def test_differences_are_shown(text: str, reason: str) -> None:
    verdict, reasons = played(text)
    assert verdict is StfVerdict.FAIL
    assert reasons.startswith(reason)


@pytest.mark.parametrize(
    "text", ["packet 1 0000aa\nexpect 4", "packet 1 0000aa\nexpect 4 01**", "packet 1 0000\nexpect 4 0100$"]
)
def test_what_is_left_open_passes(text: str) -> None:
    assert played(text) == (StfVerdict.PASS, "")


@pytest.mark.parametrize(
    ("key", "part"),
    {
        "src:0x0a**": "2560&&&65280",
        "src:0x0a010203": "167838211&&&4294967295",
        "src:5&&&6": "5&&&6",
        "ipv4.src:*": "0&&&0",
    }.items(),
)
def test_ternary_values(key: str, part: str) -> None:
    name, _, value = key.partition(":")
    names = StfNames(read_program(PROGRAMS / "router.json"))
    entry = names.entry(Add("acl", 7, ((name, value),), "drop", ()))
    assert [str(each) for each in entry.key] == [part, "0&&&0", "0->65535"]
    assert entry.priority == 9993


@pytest.mark.parametrize(
    ("line", "reason"),
    {
        "add acl nonsense:1 drop()": "unknown key of table 'RouterIngress.acl' 'nonsense'",
        "add ipv4_lpm dst:0x0a000000/8 forward(port:1)": r"takes \(mac, port\), not \(port\)",
        "add ipv4_lpm dst:0x0a000000/33 drop()": "so its prefix is 0 to 32, not 33",
        "add ipv4_lpm dst:ten drop()": "'ten' is not a number",
        "add x drop()": "unknown table 'x'",
    }.items(),
)
def test_names_and_values_that_cannot_be_are_refused_with_their_line(line: str, reason: str) -> None:
    with pytest.raises(InputError, match=f"line 1: '.*{reason}"):
        play(PROGRAMS / "router.json", list(parse_script(line)), "interpreted")


def test_the_command_tells_verdicts_by_its_exit_code(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.stf"
    wrong.write_text("packet 1 0000\nexpect 3 00\n")
    arguments = ["switch", "stf", str(PROGRAMS / "clones.json")]
    good = CliRunner().invoke(app, [*arguments, str(PROGRAMS / "clones.stf"), "--target", "interpreted"])
    bad = CliRunner().invoke(app, [*arguments, str(wrong), "--target", "interpreted"])
    assert (good.exit_code, good.stdout.splitlines()[-1]) == (0, "PASS")
    assert (bad.exit_code, bad.stdout.splitlines()[-1]) == (1, "FAIL")


def test_a_trace_tells_states_keys_hits_actions_and_fields() -> None:
    arguments = ["switch", "stf", str(PROGRAMS / "router.json"), str(PROGRAMS / "router.stf"), "--steps"]
    told = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout.splitlines()
    expected = [
        "Processing packet received on port 1",
        "Parser 'parser' entering state 'ipv4'",
        "* hdr.ipv4.dst: 0xa020202",
        "Table 'RouterIngress.ipv4_lpm': hit",
        "Action RouterIngress.forward(mac=0x20000000002, port=0x2)",
        "Table 'RouterIngress.acl': miss",
        "Transmitting packet of size 36 out of port 2",
        "PASS",
    ]
    places = [told.index(line) for line in expected]
    assert places == sorted(places)
    with pytest.raises(InputError, match="only the embedded switch"):
        CliRunner().invoke(app, [*arguments, "--target", "bmv2"], catch_exceptions=False)


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="needs p4c (p4c-bm2-ss is not installed)")
@pytest.mark.parametrize("name", TESTS)
def test_the_programs_are_what_their_sources_compile_to(name: str, tmp_path: Path) -> None:
    compiled = tmp_path / "out.json"
    subprocess.run(["p4c-bm2-ss", "--std", "p4-16", "-o", compiled, f"{name}.p4"], cwd=PROGRAMS, check=True)
    assert read_program(compiled) == read_program(PROGRAMS / f"{name}.json"), "compile it again and commit both"
