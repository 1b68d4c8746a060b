"""The queues in front of egress: rates, depths and priorities, and what packets say of them."""

from __future__ import annotations

from served_program import INGRESS, SERVED, Answer, answer_of, asking, entry

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.interpret.egress_queues import EgressQueues
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.interpret.switch_state import Target
from inakit.switch.program.bmv2_json import read_program


class Timed:
    """A switch whose time passes only by `wait`."""

    def __init__(self, priorities: int = 1) -> None:
        self.time_us = 0
        made = InterpretedSwitch(read_program(SERVED), clock=lambda: self.time_us, target=Target(priorities=priorities))
        self.switch, self.queues = made.switch, made.state.queues
        self.control = ControlPlane(made.state)

    def send(self, key: int) -> list[Answer]:
        """What leaves at once when a packet asks for `key`."""
        self.switch.take_in(1, asking("exact_match", key))
        return self.answers()

    def wait(self, duration_us: int) -> list[Answer]:
        """What leaves in this time."""
        self.time_us += duration_us
        return self.answers()

    def answers(self) -> list[Answer]:
        """What leaves now."""
        return [answer_of(*sent) for sent in self.switch.advance(100)]


def test_a_queue_without_a_rate_is_always_empty() -> None:
    timed = Timed()
    timed.control.tables.add_entry(entry("exact_match", (7,), 2))
    assert timed.send(7) == [Answer(2, 0, queued=0, left=0, waited_us=0)]


def test_packets_leave_at_the_rate_of_their_queue_and_say_how_long_it_was() -> None:
    timed = Timed()
    timed.control.tables.add_entry(entry("exact_match", (7,), 2))
    timed.queues.set_rate(1000)
    timed.time_us = 10_000
    assert timed.send(7) == [Answer(2, 0, queued=0, left=0, waited_us=0)]
    assert [timed.send(7) for _ in range(3)] == [[], [], []]
    assert timed.wait(999) == []
    assert timed.wait(1) == [Answer(2, 0, queued=0, left=2, waited_us=1000)]
    assert timed.wait(2000) == [Answer(2, 0, 1, 1, 3000), Answer(2, 0, 2, 0, 3000)]


def test_a_full_queue_loses_packets() -> None:
    timed = Timed()
    timed.control.tables.add_entry(entry("exact_match", (7,), 2))
    timed.queues.set_rate(1000)
    timed.queues.set_depth(2, port=2)
    timed.time_us = 10_000
    for _ in range(10):
        timed.send(7)
    assert len(timed.wait(100_000)) == 2


def test_the_highest_priority_leaves_first() -> None:
    timed = Timed(priorities=3)
    for key, priority in ((1, 0), (2, 2), (3, 5)):
        timed.control.tables.add_entry(entry("exact_match", (key,), 0))
        timed.control.tables.modify(INGRESS + "exact_match", key - 1, INGRESS + "hasten", (priority, key))
    timed.queues.set_rate(1000)
    for key in (1, 1, 2, 2, 3):
        timed.send(key)
    assert [answer.port for answer in timed.wait(100_000)] == [2, 2, 1, 1]  # there is no priority 5


def test_a_rate_of_one_priority_leaves_the_others_alone() -> None:
    queues: EgressQueues[str] = EgressQueues(lambda: 0, priorities=2)
    queues.set_rate(10, port=4, priority=1)
    queues.push(4, 1, "slow")
    queues.push(4, 0, "fast")
    assert (queues.pop(), queues.pop(), queues.due_us()) == ((4, 0, "fast"), None, 100_000.0)


def test_packets_wait_for_a_port_that_is_held_and_others_pass() -> None:
    queues: EgressQueues[str] = EgressQueues(lambda: 0, priorities=2)
    queues.set_depth(2)
    queues.hold(4)
    assert [queues.push(4, 0, name) for name in ("first", "second", "third")] == [True, True, False]
    assert queues.push(4, 1, "urgent")
    assert queues.push(5, 0, "other")
    assert (queues.pop(), queues.pop(), queues.due_us()) == ((5, 0, "other"), None, None)
    assert (queues.size(4, 0), queues.size(4, 1)) == (2, 1)
    queues.release(4)
    assert queues.due_us() == 0
    assert [queues.pop() for _ in range(4)] == [(4, 1, "urgent"), (4, 0, "first"), (4, 0, "second"), None]
    assert queues.size(4, 0) == 0


def test_packets_of_a_queue_with_a_rate_wait_for_their_port_too() -> None:
    time_us = 0
    queues: EgressQueues[str] = EgressQueues(lambda: time_us)
    queues.set_rate(1000)
    queues.hold(4)
    queues.push(4, 0, "late")
    time_us = 5000
    assert (queues.pop(), queues.size(4, 0)) == (None, 1)
    queues.release(4)
    assert queues.pop() == (4, 0, "late")
