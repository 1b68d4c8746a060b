"""A faults file is read with all that it may contain, and each mistake in it gets one message with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.experiments.run.faults import Event, Span, When
from inakit.experiments.run.faults_file import __doc__ as manual
from inakit.experiments.run.faults_file import check_mode, load_faults
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.install.fault_entries import Flow, LinkFaults
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import named_fabric
from inakit.traffic.faults.attacks import Attack
from inakit.traffic.faults.endpoint_faults import Stragglers

FABRIC = named_fabric("leafspine", leaves=2, spines=2, hosts_per_leaf=4)
PROBLEM = Problem(FABRIC, (Job(1, ("h2", "h3", "h4"), ("h1",), 4000),), FragmentFormat(64, 326))


def read(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "faults.yml"
    path.write_text(text)
    return path


def test_the_example_of_the_manual_is_read(tmp_path: Path) -> None:
    assert manual is not None
    lines = manual.splitlines()
    example = "\n".join(line[4:] for line in lines[2 : lines.index("", 3)])
    faults = load_faults(read(tmp_path, example), PROBLEM)
    assert faults.seed == 7
    assert faults.links["leaf1", "h3"] == LinkFaults(0.1, 0, 0.05)
    assert faults.links["leaf1", "spine1"] == LinkFaults(0.01, 0.1, 0)
    assert faults.links["spine1", "leaf1"] == LinkFaults(0.01, 0, 0)
    assert faults.events == (
        Event(When(2.0), "down", ("leaf1", "spine1"), 0.5),
        Event(When(3.0), "restart", ("spine1",), 1.0),
        Event(When(None, 1), "pause", ("h3",), 5.0),
        Event(When(None, 2), "restart", ("h1",)),
        Event(When(9.0), "kill", ("h4",)),
    )
    assert faults.stragglers == Stragglers(spread=0.2, mean=1.0, seed=1)
    assert faults.background == (Flow("h3", "h7", 5e6, 1000), Flow("h4", "h8", 5e6, 1000))
    assert faults.spans == (Span(), Span(When(None, 2), When(None, 6)))
    assert faults.hostile == (Attack("h7", 1, ("replay", "spoof"), 2e6),)


def test_all_links_leave_out_overtaking_on_the_way_to_hosts(tmp_path: Path) -> None:
    faults = load_faults(read(tmp_path, "version: 1\nlinks: [{link: all, reorder: 5%}]"), PROBLEM)
    assert set(faults.links) == {(a, b) for a, b in FABRIC.capacities_bps if b not in FABRIC.host_names}


def test_a_later_line_overrides_what_it_names(tmp_path: Path) -> None:
    text = "version: 1\nlinks:\n - {link: all, drop: 1%, duplicate: 2%}\n - {link: [leaf1, h2], drop: 0}"
    faults = load_faults(read(tmp_path, text), PROBLEM)
    assert faults.links["leaf1", "h2"] == faults.links["h2", "leaf1"] == LinkFaults(0, 0, 0.02)


def test_a_port_names_its_link(tmp_path: Path) -> None:
    port = FABRIC.port_numbers["leaf1", "h2"]
    text = f"version: 1\nlinks: [{{link: [leaf1, {port}], one_way: true, drop: 1}}]"
    assert load_faults(read(tmp_path, text), PROBLEM).links == {("leaf1", "h2"): LinkFaults(1.0)}


WRONG_FILES = {
    "nothing": ("", "expected the keys version, seed, links, events, stragglers, background, hostile, found null"),
    "no version": ("links: []", "key 'version' is missing: write `version: 1`"),
    "another version": ("version: 2", "key 'version' 2 is not a version that this kit reads: write `version: 1`"),
    "not YAML": ("version: [", "faults.yml line"),
    "given twice": ("version: 1\nversion: 1", "key 'version' is given twice"),
}
WRONG_PARTS = {
    "unknown key": ("link: []", "link: unknown key, did you mean 'links'?"),
    "a list that is none": ("links: {}", "links: {}: expected a list"),
    "unknown key of a link": ("links: [{link: all, loss: 1}]", "links[0].loss: unknown key; expected one of"),
    "no link": ("links: [{drop: 1}]", "links[0]: key 'link' is missing: expected all, or two neighbours"),
    "a share too large": ("links: [{link: all, drop: 2}]", "links[0].drop: 2: expected a share from 0 to 1"),
    "a share in words": ("links: [{link: all, drop: few}]", "links[0].drop: 'few': expected a share"),
    "a share that is true": ("links: [{link: all, drop: true}]", "links[0].drop: True: expected a share"),
    "too much": ("links: [{link: all, drop: 60%, reorder: 60%}]", "links[0]: drop 0.6 and reorder 0.6"),
    "no neighbours": ("links: [{link: [h2, h3]}]", "links[0].link: h2-h3 is not a link of fabric"),
    "no such port": ("links: [{link: [leaf1, 99]}]", "links[0].link: ['leaf1', 99]: expected all, or two"),
    "overtaking to a host": (
        "links: [{link: [leaf1, h2], one_way: true, reorder: 1%}]",
        "links[0].reorder: links to hosts such as 'h2' do not reorder packets",
    ),
    "an event of no kind": ("events: [{at: 1}]", "events[0]: 0 kinds of event: expected exactly one of down"),
    "two events in one": ("events: [{at: 1, kill: h2, pause: h3}]", "events[0]: 2 kinds of event"),
    "no moment": ("events: [{kill: h2}]", "events[0]: key 'at' is missing: expected a time in seconds"),
    "a moment before the start": ("events: [{at: -1, kill: h2}]", "events[0].at: -1: expected a time"),
    "an iteration below 0": ("events: [{at: {iteration: -1}, kill: h2}]", "events[0].at.iteration: -1"),
    "no such job": ("events: [{at: {iteration: 1, job: 2}, kill: h2}]", "events[0].at.job: 2: expected one of 1"),
    "a pause without an end": ("events: [{at: 1, pause: h2}]", "events[0]: key 'for' is missing"),
    "a kill with an end": ("events: [{at: 1, kill: h2, for: 1}]", "events[0].for: 'kill' has no end"),
    "a worker that is none": ("events: [{at: 1, pause: h5, for: 1}]", "events[0].pause: unknown worker 'h5'"),
    "a switch misspelt": ("events: [{at: 1, restart: leaf11}]", "did you mean 'leaf1'?"),
    "a spread below 0": ("stragglers: {spread: -1}", "stragglers.spread: -1: expected a standard deviation"),
    "a mean of 0": ("stragglers: {spread: 0, mean: 0}", "stragglers.mean: 0: expected a share of the planned"),
    "a host that is none": ("background: [{from: h9, to: h1, rate: 1M}]", "background[0].from: unknown host 'h9'"),
    "to itself": ("background: [{from: h2, to: h2, rate: 1M}]", "background[0].to: 'h2' is the source"),
    "an end before the beginning": (
        "background: [{from: h2, to: h1, rate: 1M, at: 3s, until: 2s}]",
        "background[0].until: 2 s: a time after `at`, 3 s, is expected",
    ),
    "an end with the beginning": (
        "background: [{from: h2, to: h1, rate: 1M, at: {iteration: 2}, until: {iteration: 2}}]",
        "background[0].until: iteration 2: a time after `at`, iteration 2",
    ),
    "no rate": ("background: [{from: h2, to: h1, rate: 0}]", "background[0].rate: 0: expected a rate in bit/s"),
    "a frame too large": (
        "background: [{from: h2, to: h1, rate: 1M, frame_bytes: 9000}]",
        "background[0].frame_bytes: 9000: expected a whole number from 64 to 1514",
    ),
    "no job to attack": ("hostile: [{host: h7, job: 2, rate: 1M}]", "hostile[0].job: 2: expected one of 1"),
    "a worker of the job": ("hostile: [{host: h2, job: 1, rate: 1M}]", "hostile[0]: host 'h2' takes part in job 1"),
    "an unknown attack": (
        "hostile: [{host: h7, job: 1, rate: 1M, attacks: [spof]}]",
        "hostile[0]: unknown attack 'spof': did you mean 'spoof'?",
    ),
    "one attack, not in a list": (
        "hostile: [{host: h7, job: 1, rate: 1M, attacks: spoof}]",
        "hostile[0].attacks: 'spoof': expected a list of replay, spoof",
    ),
    "no labels to abuse": (
        "hostile: [{host: h7, job: 1, rate: 1M, attacks: [abuse]}]",
        "hostile[0]: host 'h7' is no worker of another job",
    ),
}


@pytest.mark.parametrize("name", [*WRONG_FILES, *WRONG_PARTS])
def test_a_mistake_is_named(tmp_path: Path, name: str) -> None:
    text, message = WRONG_FILES[name] if name in WRONG_FILES else WRONG_PARTS[name]
    with pytest.raises(InputError) as error:
        load_faults(read(tmp_path, text if name in WRONG_FILES else f"version: 1\n{text}"), PROBLEM)
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "faults.yml"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_faults(tmp_path / "none.yml", PROBLEM)


def test_replay_has_no_faults() -> None:
    check_mode("reliable")
    with pytest.raises(InputError, match="choose --mode reliable"):
        check_mode("replay")
