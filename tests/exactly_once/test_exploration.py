"""Explores the slot protocol: whatever a few faults do in small networks, every worker gets every sum, exactly."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from automata import Automaton
from events import FAULTS, NETWORK_FAULTS
from explore import main
from late_packets import entries_of, with_entry, words_of
from live_network import LiveNetwork
from moves import NetworkSpace, happen
from mutation import Mutation, mutant, swapped, without
from nodes import SwitchNode
from small_networks import SETTINGS, fitted
from story import story
from tiers import long_unless

from inakit.experiments.state_explorer import Seen, StateExplorer
from inakit.planner.install.ina_program import INA_HW
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.traffic.endpoints import endpoints
from inakit.traffic.endpoints.records import library
from inakit.traffic.wire.packet_format import PROGRAM

pytestmark = pytest.mark.compiler

# The most faults with which each setting is explored, in the short form and in the long one.
MOST_FAULTS = {
    "one slot": (1, 3),
    "two slots": (1, 4),
    "slots again": (1, 2),
    "two leaves": (1, 3),
    "one level": (1, 2),
    "overflow": (1, 2),
    "numbers wrap": (1, 3),
    "shared slot": (1, 2),
    "shadow copies": (2, 4),
    "root in the network": (2, 3),
    "hop by hop": (1, 2),
    "copies again": (1, 2),
    "root again": (1, 2),
    "atp": (1, 1),
    "atp again": (1, 1),
    "esa": (1, 2),
}
EVERYTHING = (*NETWORK_FAULTS, "impatience", "wipes")
LIVE_KINDS = (*NETWORK_FAULTS, "impatience")


@pytest.fixture(scope="module")
def program() -> Program:
    return read_program(PROGRAM)


def explored(program: Program, name: str, faults: int, kinds: tuple[str, ...] = NETWORK_FAULTS) -> str:
    """What the exploration found wrong, in words; an empty text if nothing."""
    space = NetworkSpace(program, SETTINGS[name](), kinds)
    found = StateExplorer(space).run(faults)
    return f"{found.what}:\n{story(space, found.events)}" if found else ""


LARGEST = ("one level", "slots again", "two slots", "atp again")
"""Settings with many states, whose kinds other settings have as well."""
WITH_WIPES = ("one slot", "two leaves", "overflow", "shared slot", "hop by hop")
"""Settings that the short form explores with more kinds of faults, and so not without them."""


@pytest.mark.parametrize("name", [long_unless(name not in (*LARGEST, *WITH_WIPES), name) for name in SETTINGS])
def test_every_sum_is_right_and_comes(program: Program, name: str) -> None:
    assert not explored(program, name, MOST_FAULTS[name][0])


@pytest.mark.parametrize("name", WITH_WIPES)
def test_also_with_wipes_and_impatience(program: Program, name: str) -> None:
    assert not explored(program, name, 1, EVERYTHING)


@pytest.mark.parametrize(
    ("name", "faults"),
    [("shadow copies", 1), *(long_unless(False, name, 2) for name in ("shadow copies", "root in the network"))],
)
def test_also_with_restarts_where_a_ps_can_ask(program: Program, name: str, faults: int) -> None:
    assert not explored(program, name, faults, (*EVERYTHING, "restarts"))


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_with_more_faults(program: Program, name: str) -> None:
    assert not explored(program, name, MOST_FAULTS[name][1])


CHIP_SETTINGS = [name for name in SETTINGS if name != "esa"]
"""What the program for chips can do, which sums a fragment in two passes."""


@pytest.mark.parametrize("name", [long_unless(name == "shared slot", name) for name in CHIP_SETTINGS])
def test_every_sum_is_right_and_comes_with_the_program_for_chips(name: str) -> None:
    space = NetworkSpace(read_program(INA_HW.path), fitted(SETTINGS[name](), INA_HW))
    assert StateExplorer(space).run(1) is None


WRONG, STUCK, IN_VAIN = "a wrong sum", "no progress", "a timeout though nothing was lost"
MUTANTS: dict[str, tuple[Mutation, str, str]] = {
    "a child is not noted": (without("add", "meta.slot_bitmap ="), "shared slot", WRONG),
    "any tree matches": (swapped("meta.matches = (", "==", ">=", 0), "shared slot", WRONG),
    "any fragment matches": (swapped("meta.matches = (", "==", ">=", 1), "one slot", WRONG),
    "a partial sum stays": (without("become_partial", "slot_bitmap.write"), "one slot", STUCK),
    "a partial sum is not told": (
        without("become_partial", "hdr.ina.flags = hdr.ina.flags | FLAG_PARTIAL"),
        "one slot",
        WRONG,
    ),
    "what evicts is taken for the other's": (without("evict", "hdr.ina.job ="), "esa", WRONG),
    "who evicts is not noted": (without("evict", "slot_bitmap.write"), "esa", WRONG),
    "an evicted sum is not told to be partial": (without("evict", "hdr.ina.flags ="), "esa", WRONG),
    "a result that passes is any tree's": (swapped("meta.matches = (", "==", ">=", 0), "atp", WRONG),
    "a result that passes is any fragment's": (swapped("meta.matches = (", "==", ">=", 1), "atp again", WRONG),
    "a copy is taken for a newer fragment's": (swapped("meta.matches = (", "==", ">=", 1), "copies again", IN_VAIN),
    "a root's copy is taken for a newer one's": (swapped("meta.matches = (", "==", ">=", 1), "root again", IN_VAIN),
    "an overflow is not told": (without("become_sum", "hdr.ina.flags ="), "overflow", WRONG),
}


ALIKE = ("any tree matches", "a result that passes is any fragment's", "a root's copy is taken for a newer one's")
"""Mutants that change the same comparison as another one does, which shows in another setting."""


@pytest.mark.parametrize("name", [long_unless(name not in ALIKE, name) for name in MUTANTS])
def test_a_mutant_of_the_program_is_noticed(name: str, tmp_path: Path) -> None:
    mutate, setting, what = MUTANTS[name]
    assert explored(mutant(mutate, tmp_path), setting, 1).startswith(what)


MUTE_SERVER = "server.h", "if (sum->done && flags & RETRANSMITTED && !repairs)", "if (0)"


def change_endpoints(monkeypatch: pytest.MonkeyPatch, folder: Path, file: str, text: str, other: str) -> None:
    """Let endpoints be compiled from C with another text in a file."""
    shutil.copytree(Path(endpoints.__file__).parent, folder / "endpoints")
    changed = folder / "endpoints" / file
    assert text in changed.read_text()
    changed.write_text(changed.read_text().replace(text, other))
    monkeypatch.setattr(endpoints, "library", lambda: library(folder / "endpoints"))


def test_a_server_that_does_not_answer_again_is_noticed(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    change_endpoints(monkeypatch, tmp_path, *MUTE_SERVER)
    found = explored(program, "one slot", 1)
    assert found.startswith(STUCK)
    assert "is lost" in found


def test_a_server_that_nobody_tells_what_a_sum_hides_is_noticed(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With ATP a slot may keep the sum of two workers although the PS has already added the gradient of one of them.

    Then the PS must ask the other one, or that one must send directly after some timeouts. Here neither happens.
    """
    monkeypatch.setattr(endpoints, "TIMEOUTS_BY_AGGREGATORS", np.inf)
    change_endpoints(monkeypatch, tmp_path, "server.h", "int clashes = tree->hides &&", "int clashes = 0 &&")
    assert explored(program, "atp", 1).startswith(IN_VAIN)


def test_the_command_prints_a_table_and_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main(["one slot", "--faults", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["one", "slot", "0"]
    change_endpoints(monkeypatch, tmp_path, *MUTE_SERVER)
    assert main(["one slot", "--faults", "1", "--kinds", "loss"]) == 1
    assert "w2 waits" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["two slots", "--kinds", "los"])
    assert "no kind of fault 'los'" in capsys.readouterr().err


def test_what_is_found_takes_no_more_than_it_needs(tmp_path: Path) -> None:
    """The shortest story of a partial sum without its flag: loss, timeout, flush, and the PS takes it as whole."""
    space = NetworkSpace(mutant(MUTANTS["a partial sum is not told"][0], tmp_path), SETTINGS["one slot"]())
    found = StateExplorer(space).run(2)
    assert found
    assert sum(event.act in FAULTS for event in found.events) == 1
    lines = story(space, found.events).splitlines()
    last = lines[len(found.events) - 1]
    assert last.endswith("spine -> ps: gradient 0 of spine retransmitted arrives; spine is sent result 0 of ps"), lines
    assert lines[len(found.events)].strip().startswith("ps holds")
    assert len(found.events) < 12


@pytest.mark.parametrize("name", ["slots again", "overflow", "shared slot"])
@pytest.mark.parametrize("seed", range(3))
def test_tables_do_what_a_live_network_does(program: Program, name: str, seed: int) -> None:
    """In random runs with many faults, nodes that are never put back into a state send what the tables say."""
    space, choice = NetworkSpace(program, SETTINGS[name](), LIVE_KINDS, ordered=False), random.Random(seed)
    live, states = LiveNetwork(program, space), space.first()
    assert live.contents_in(states) == live.contents
    for faults in (True, False):
        for _ in range(300):
            possible = list(space.successors(states, faults=faults and choice.random() < 0.1))
            if not possible:
                break
            event = space.events[choice.choice(possible).events[0]]
            live.happen(event, states)
            happen(space, event, states)
            assert live.contents_in(states) == live.contents, event
    assert not any(node.unfinished(node.snapshot()) for node in live.nodes.values())


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("one slot", NETWORK_FAULTS),
        ("one slot", EVERYTHING),
        pytest.param("two leaves", NETWORK_FAULTS, marks=pytest.mark.long),
        pytest.param("two slots", NETWORK_FAULTS, marks=pytest.mark.long),
        pytest.param("slots again", NETWORK_FAULTS, marks=pytest.mark.long),
    ],
)
def test_all_orders_show_no_more_than_those_that_are_tried(program: Program, name: str, kinds: tuple[str, ...]) -> None:
    """The orders that are tried bring the same packets to the same states of endpoints and slots as all orders.

    A packet from above makes no difference between states of a switch, and is not brought to all of them; the test
    leaves it out. Nor is a packet of one slot brought to all states of other slots: the test compares the state of the
    packet's own slot, and no state of an endpoint that has several.
    """
    tried, all_of_them = (steps_seen(program, name, kinds, ordered=ordered) for ordered in (True, False))
    assert tried == all_of_them


def steps_seen(program: Program, name: str, kinds: tuple[str, ...], *, ordered: bool) -> set[tuple[str, bytes, bytes]]:
    """The node, state and packet of every such step that an exploration with up to one fault takes."""
    space = NetworkSpace(program, SETTINGS[name](), kinds, ordered=ordered)
    space.check = lambda: None  # type: ignore[method-assign]  # the check would add steps of its own
    assert not StateExplorer(space).run(1)
    from_above = {channel for place in space.places if place.from_above for channel in place.channels}
    return {
        (node.name, state_of_slot(node, state, channel), space.channels[channel].packets[packet])
        for node in space.automata.values()
        for channel in node.tables.keys() - from_above
        for state, packet in np.argwhere(node.tables[channel] >= 0)
    }


def state_of_slot(automaton: Automaton, state: int, channel: int) -> bytes:
    """For a switch what the channel's slot holds; for an endpoint its state if there is one slot, else nothing."""
    if isinstance(automaton.node, SwitchNode):
        size = automaton.node.packed.itemsize
        return automaton.states[state][size * automaton.channels[channel].slot :][:size]
    return automaton.states[state] if automaton.slots == 1 else b""


def test_fingerprints_are_seen_once() -> None:
    known: set[int] = set()
    seen = Seen()
    numbers = np.random.default_rng(1)
    for size in (1, 5, 1000, 3, 200, 4000):
        prints = numbers.integers(0, 3000, size).astype(np.uint64)
        new = prints[seen.unseen(prints)].tolist()
        assert sorted(new) == sorted(set(prints.tolist()) - known)
        seen.add(np.array(new, np.uint64))
        known |= set(new)


def test_late_packets_are_a_set_that_keeps_copies() -> None:
    nothing = np.zeros(2, np.uint64)
    both = with_entry(with_entry(nothing, 3, np.array([7, 9], np.uint64)), 1, np.array([5, 5], np.uint64))
    assert entries_of(both)[:3].T.tolist() == [[0x307, 0x105, 0], [0x309, 0x105, 0]]
    assert (words_of(entries_of(both)[::-1]) == both).all()
    full = with_entry(with_entry(both, 1, np.array([5, 5], np.uint64)), 1, np.array([5, 5], np.uint64))
    with pytest.raises(OverflowError, match="more than 4 packets are late"):
        with_entry(full, 1, np.array([1, 1], np.uint64))
