"""Labs whose submission is a P4 program: how it is opened, run and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from inakit.experiments.labs.course.bench import Bench, GradedSwitch
from inakit.experiments.labs.course.packets import described
from inakit.experiments.labs.course.targets import open_switch
from inakit.experiments.labs.grading.finding import Exchange, Finding, Packets, WrongError
from inakit.experiments.labs.grading.item import Item
from inakit.experiments.labs.grading.program import REFUSED, compiled_program, refusal
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.grading.trace_excerpt import excerpt
from inakit.experiments.labs.runners.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.topo.errors import InakitError, InputError

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
        left = in_order(wrong.exchanges[-1].got, wrong.expected)
        got = wrong.got or tuple(f"port {port}: {described(packet)}" for port, packet in left)
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


class ProgramPart:
    """The program of a submission that has other parts, too: what is wrong with it is told where it is needed.

    `text` is its JSON, and `note` says where that is from. `opened` is None for a program that does not load.
    """

    def __init__(self, submission: Submission, name: str, target: str, stack: ExitStack) -> None:
        self.text, self.note, self.refused = "", "", ""
        self.opened: OpenedProgram | None = None
        try:
            self.text, self.note = compiled_program(submission, name)
            switch = stack.enter_context(open_switch(target, self.text, name))
            self.opened = OpenedProgram(switch, self.said)
        except REFUSED as error:
            self.refused = refusal(error)

    @property
    def said(self) -> tuple[str, ...]:
        """The note, if there is one."""
        return (self.note,) if self.note else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return () if self.opened is None else self.opened.notes

    @property
    def needed(self) -> OpenedProgram:
        """The program in its switch; `InputError` if there is none."""
        if self.opened is None:
            raise InputError(self.refused)
        return self.opened

    @property
    def sandboxed(self) -> SandboxedSwitch:
        """The switch of a program that was opened in the sandbox; `InputError` if there is none."""
        switch = self.needed.switch
        assert isinstance(switch, SandboxedSwitch)
        return switch


def in_order(got: Sequence[tuple[int, bytes]], expected: Sequence[tuple[int, bytes] | str]) -> Packets:
    """Packets by the ports in the order in which they are expected, the others last."""
    ports = [each[0] for each in expected if not isinstance(each, str)]
    return sorted(got, key=lambda packet: ports.index(packet[0]) if packet[0] in ports else len(ports))


def sent(exchanges: tuple[Exchange, ...]) -> tuple[str, ...]:
    """The packets that were sent, each on a line; of many the last ones."""
    lines = [f"port {each.port}: {described(each.packet)}" for each in exchanges]
    left_out = len(lines) - MOST_SENT
    return ((f"({left_out} packets before)",) if left_out > 0 else ()) + tuple(lines[-MOST_SENT:])


def lacking(switch: GradedSwitch) -> tuple[str, ...]:
    """What of the sandbox is not enforced on this machine."""
    if not isinstance(switch, SandboxedSwitch):
        return ("not in a sandbox: grade only programs that you trust in this way",)
    return not_enforced(switch.process.enforced)


def not_enforced(enforced: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each limit that nothing holds on this machine; `enforced` says of each what holds it."""
    return tuple(f"not enforced on this machine: {what}" for what, by in enforced.items() if not by)
