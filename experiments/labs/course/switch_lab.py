"""Labs whose submission is a P4 program: how it is opened, run and shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from experiments.labs.course.bench import Bench, GradedSwitch
from experiments.labs.course.packets import described
from experiments.labs.course.targets import open_switch
from experiments.labs.grading.finding import Exchange, Finding, WrongError
from experiments.labs.grading.item import Item
from experiments.labs.grading.program import compiled_program
from experiments.labs.grading.submission import Submission
from experiments.labs.grading.trace_excerpt import excerpt
from experiments.labs.runners.sandboxed_switch import SandboxedSwitch
from experiments.labs.sandbox.process import EndedError
from topo.errors import InakitError

MOST_SENT = 8


@dataclass(frozen=True)
class SwitchLab:
    """A lab of one P4 program, called `program`."""

    name: str
    title: str
    hours: str
    program: str
    items: tuple[Item, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that students hand in."""
        return (f"{self.program}.p4",)

    @contextmanager
    def open(self, submission: Submission, target: str) -> Iterator[OpenedProgram]:
        """Compile a submission and load it into a switch."""
        text, note = compiled_program(submission, self.program)
        with open_switch(target, text, self.program) as switch:
            yield OpenedProgram(switch, (note,) if note else ())


class OpenedProgram:
    """A student's program in a switch."""

    def __init__(self, switch: GradedSwitch, said: tuple[str, ...]) -> None:
        self.switch, self.said = switch, said
        self.last: Bench | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return (*self.said, *lacking(self.switch))

    def bench(self, item: Item, random: Random) -> Bench:
        """The bench of an item."""
        del item
        self.last = Bench(self.switch, random)
        return self.last

    def after(self, item: Item, *, passed: bool) -> None:
        """Nothing: items are independent."""

    def finding(self, wrong: WrongError) -> Finding:
        """The packets that show what is wrong, and the trace of the last of them."""
        if not wrong.exchanges:
            return Finding(wrong.cause)
        got = tuple(f"port {port}: {described(packet)}" for port, packet in wrong.exchanges[-1].got)
        expected = tuple(e if isinstance(e, str) else f"port {e[0]}: {described(e[1])}" for e in wrong.expected)
        return Finding(
            wrong.cause, sent(wrong.exchanges), expected or ("nothing",), got or ("nothing",), self.trace(wrong)
        )

    def trace(self, wrong: WrongError) -> tuple[str, ...]:
        """The trace of the last packet: all packets are sent again, to a switch started anew."""
        if not isinstance(self.switch, SandboxedSwitch) or self.last is None:
            return ()
        try:
            self.switch.fresh()
            self.switch.install(self.last.entries)
            *before, last = wrong.exchanges
            for exchange in before:
                self.switch.inject(exchange.port, exchange.packet)
            return excerpt(self.switch.trace(last.port, last.packet).lines, wrong.field)
        except (InakitError, EndedError):
            return ()


def sent(exchanges: tuple[Exchange, ...]) -> tuple[str, ...]:
    """The packets that were sent, each on a line; of many the last ones."""
    lines = [f"port {each.port}: {described(each.packet)}" for each in exchanges]
    left_out = len(lines) - MOST_SENT
    return ((f"({left_out} packets before)",) if left_out > 0 else ()) + tuple(lines[-MOST_SENT:])


def lacking(switch: GradedSwitch) -> tuple[str, ...]:
    """What of the sandbox is not enforced on this machine."""
    if not isinstance(switch, SandboxedSwitch):
        return ("not in a sandbox: grade only programs that you trust in this way",)
    return tuple(f"not enforced on this machine: {what}" for what, by in switch.process.enforced.items() if not by)
