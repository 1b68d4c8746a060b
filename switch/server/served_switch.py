"""A switch as a server: the running program with its ports and its control plane, and program swaps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event, RLock, Thread

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.digests import DigestBatch
from inakit.switch.control.recorded_entries import brought, transfer
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.control.tables import Expired
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch, clock_from_now
from inakit.switch.interpret.switch_state import Target
from inakit.switch.program.bmv2_json import parse_program
from inakit.switch.program.program import Program
from inakit.switch.server.engines import Engine, InterpretedEngine, choose
from inakit.switch.server.packet_sockets import PcapFiles
from inakit.switch.server.served_ports import ServedPorts, ServedQueues
from inakit.switch.server.switch_options import Journal, Options
from inakit.topo.errors import InakitError, UnsupportedError

DIGESTS_EVERY_S = 0.01
SWEEP_EVERY_S = 1.0
"""The period of the collections of digests and of the timeout checks, as in BMv2."""


@dataclass(frozen=True)
class Running:
    """A running program: its text, the program, and its control plane."""

    json: str
    program: Program
    control: ControlPlane


class ServedSwitch:
    """A switch with the ports of `options`, until `close`.

    Its control plane is that of the running program. Subscribers that outlive a swap subscribe here, not there.
    """

    def __init__(self, options: Options) -> None:
        self.options, self.journal, self.clock = options, Journal(options.log), clock_from_now()
        self.target = Target(options.drop_port, options.priority_queues)
        self.ports = ServedPorts(self.journal, options.cpu_port)
        self.queues = ServedQueues(options.priority_queues, self.interpret)
        self.pcaps = None if options.pcap is None else PcapFiles(options.pcap)
        self.lock = RLock()
        self.running: Running | None = None
        self.pending: tuple[str, Program] | None = None
        self.prepared: Running | None = None
        self.digest_subscribers: list[Callable[[DigestBatch], None]] = []
        self.expiry_subscribers: list[Callable[[list[Expired]], None]] = []
        self.swap_subscribers: list[Callable[[], None]] = []
        self.ending = Event()
        self.ticker = Thread(target=self.tick, name="digests and timeouts", daemon=True)
        self.ticker.start()

    @property
    def program(self) -> Program | None:
        """The running program; None before the first."""
        return None if self.running is None else self.running.program

    @property
    def json(self) -> str:
        """The text of the running program; empty before the first."""
        return "" if self.running is None else self.running.json

    @property
    def control(self) -> ControlPlane:
        """The control plane of the running program; get it anew for each request."""
        if self.running is None:
            raise Refused(RefusalKind.TABLE_ERROR, "no program is loaded yet")
        return self.running.control

    @property
    def newest(self) -> Running:
        """The program that was loaded last, whose entries can be installed before `swap`; else the running one."""
        with self.lock:
            if self.pending is None and self.running is not None:
                return self.running
            if self.pending is None:
                raise Refused(RefusalKind.TABLE_ERROR, "no program is loaded yet")
            if self.prepared is None:
                text, program = self.pending
                waiting = InterpretedSwitch(program, clock=self.clock, target=self.target)
                self.prepared = Running(text, program, ControlPlane(waiting.state))
            return self.prepared

    def now_us(self) -> int:
        """Microseconds since the switch started."""
        return self.clock()

    @contextmanager
    def alone(self) -> Iterator[Running | None]:
        """Block requests to the running program, and swaps, while the block runs.

        The control plane's lock is always taken first, because requests may need this lock too.
        """
        while True:
            running = self.running
            with running.control.lock if running is not None else nullcontext(), self.lock:
                if self.running is running:
                    yield running
                    return

    def load(self, text: str) -> None:
        """Prepare another program for `swap`."""
        with self.lock:
            if self.running is not None and not self.options.swap:
                raise Refused(RefusalKind.CONFIG_SWAP_DISABLED, "swaps are disabled: start with --enable-swap")
            if self.pending is not None:
                raise Refused(RefusalKind.ONGOING_SWAP, "another program is already loaded: swap first")
            self.pending = (text, parse_program(text.encode(), "the program"))

    def swap(self, fresh: bool = True) -> None:
        """Run the loaded program with the entries installed for it. The ports stay.

        Unless `fresh`, multicast groups and mirror sessions stay too, as in BMv2.
        """
        with self.alone():
            if self.pending is None:
                kind = RefusalKind.NO_ONGOING_SWAP if self.options.swap else RefusalKind.CONFIG_SWAP_DISABLED
                raise Refused(kind, "no other program is loaded: load one first")
            (text, program), prepared = self.pending, self.prepared
            self.pending = self.prepared = None
            self.run(text, program, prepared, None if fresh else self.running)
        for subscriber in list(self.swap_subscribers):
            subscriber()

    def run(self, text: str, program: Program, prepared: Running | None, before: Running | None) -> None:
        """Replace the running program, with the groups and sessions of the program `before`."""
        old = None if prepared is None else prepared.control, None if before is None else before.control
        engine = self.engine_for(program)
        try:
            control = brought(*old, engine.data_plane)
        except UnsupportedError as missing:
            self.journal.info(f"Program '{program.name}' is interpreted in this process: {missing}")
            engine.close()
            engine = self.interpreted(program)
            control = brought(*old, engine.data_plane)
        control.replication.room, control.fall_back = self.options.replication, self.interpret
        control.digests.subscribers.append(self.tell_digests)
        control.tables.expiry_subscribers.append(self.tell_expired)
        self.move_to(engine)
        if self.running is not None:
            self.running.control.retired = True
        self.running = Running(text, program, control)

    def engine_for(self, program: Program) -> Engine:
        """The engine of a program: the kernel if possible."""
        choice = choose(program, self.options)
        why = choice.why
        if choice.compiled is not None:
            from inakit.switch.server.engines import KernelEngine  # noqa: PLC0415, needs libbpf

            turn = self.options.thrift_port or self.options.device_id
            try:
                engine = KernelEngine(choice.compiled, turn, self.options.cpu_port, self.ports.to_cpu, self.pcaps)
                self.journal.info(f"Program '{program.name}' runs in the kernel")
                return engine
            except InakitError as error:
                why = str(error)
        self.journal.info(f"Program '{program.name}' is interpreted in this process: {why}")
        return self.interpreted(program)

    def interpreted(self, program: Program) -> InterpretedEngine:
        to_cpu, cpu_port = self.ports.to_cpu, self.options.cpu_port
        return InterpretedEngine(program, self.journal, self.clock, self.target, cpu_port, to_cpu, self.pcaps)

    def interpret(self, missing: UnsupportedError) -> Engine:
        """Interpret the running program, with all its state; raise `missing` if it is already interpreted."""
        with self.alone() as running:
            if running is None or isinstance(self.ports.engine, InterpretedEngine):
                raise missing
            self.journal.warning(f"Program '{running.program.name}' is interpreted from now on: {missing}")
            engine = self.interpreted(running.program)
            self.ports.detach_all()
            transfer(running.control, engine.data_plane)
            self.move_to(engine)
            return engine

    def move_to(self, engine: Engine) -> None:
        self.queues.move_to(engine)
        self.ports.move_to(engine)

    def tell_digests(self, batch: DigestBatch) -> None:
        for subscriber in list(self.digest_subscribers):
            subscriber(batch)

    def tell_expired(self, expired: list[Expired]) -> None:
        """Notify subscribers of entries whose timeouts are over."""
        for subscriber in list(self.expiry_subscribers):
            subscriber(expired)

    def tick(self) -> None:
        """Collect digests, and check timeouts and interfaces, until `close`."""
        sweep_at = time.monotonic() + SWEEP_EVERY_S
        while not self.ending.wait(DIGESTS_EVERY_S if self.learns else SWEEP_EVERY_S):
            try:
                if self.learns:
                    self.control.digests.report()
                if time.monotonic() >= sweep_at:
                    sweep_at += SWEEP_EVERY_S
                    self.sweep()
            except Exception as error:
                self.journal.error(f"digests or timeouts: {error!r}")

    @property
    def learns(self) -> bool:
        return self.program is not None and bool(self.program.digests)

    def sweep(self) -> None:
        self.ports.look_after()
        if self.running is not None:
            self.running.control.tables.report_expired()

    def close(self) -> None:
        """End the switch, and release all interfaces."""
        self.ending.set()
        self.ticker.join()
        with self.alone() as running:
            self.ports.release()
            if running is not None:
                running.control.retired = True
        if self.pcaps is not None:
            self.pcaps.close()
        self.journal.close()
