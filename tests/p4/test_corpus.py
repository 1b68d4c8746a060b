"""The recorded answers of simple_switch: they are of this program, and every switch still gives them."""

from __future__ import annotations

import numpy as np
import pytest
from recorded import FILE, Corpus, program_fingerprint, read_corpus
from recording_json import REGISTERS
from sequences import PacketSwitch

from inakit.traffic.wire.packet_format import Event

pytest_plugins = ["switches"]

REMEDY = "record it again with `sudo pytest tests/p4 --record`, on a machine that has BMv2 and p4c, and commit it"
LARGEST_FILE_BYTES = 500_000


@pytest.fixture(scope="module")
def corpus(request: pytest.FixtureRequest) -> Corpus:
    if request.config.getoption("record"):
        pytest.skip("it is being recorded")
    found = read_corpus()
    if found.versions["program_sha256"] != program_fingerprint():
        pytest.fail(f"{FILE.name} was recorded with another p4/build/ina.json: {REMEDY}", pytrace=False)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "in_process",
        pytest.param("in_kernel", marks=pytest.mark.root),
        pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
    ],
)
def test_the_answers_are_still_the_same(request: pytest.FixtureRequest, corpus: Corpus, name: str) -> None:
    switch: PacketSwitch = request.getfixturevalue(name)
    for recording in corpus.recordings:
        found = recording.replay(switch)
        assert not found, f"{recording.name}: simple_switch gave, and {name} does not:\n{found}"


def test_the_corpus_saw_every_outcome_and_is_small(corpus: Corpus) -> None:
    seen = np.sum([recording.seen.counters["InaIngress.events"][0] for recording in corpus.recordings], axis=0)
    assert {event.name: int(seen[event]) for event in Event if seen[event] < 10} == {}
    assert all(any(recording.seen.registers[name].any() for recording in corpus.recordings) for name in REGISTERS)
    assert FILE.stat().st_size < LARGEST_FILE_BYTES


def test_the_corpus_names_its_tools(corpus: Corpus) -> None:
    assert set(corpus.versions) == {"simple_switch", "p4c", "program_sha256"}
    assert all(corpus.versions.values())
