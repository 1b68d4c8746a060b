"""A served switch without interfaces: what runs, the CPU port, swaps, what it logs, and requests of many threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from unittest.mock import patch

import pytest
from served_program import INGRESS, SERVED, answer_of, asking, entry

from inakit.switch.control.digests import DigestBatch
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.server.engines import VARIABLE, choose
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import LogOptions, Options
from inakit.topo.errors import InputError

CPU_PORT = 200
EXACT = INGRESS + "exact_match"


@contextmanager
def served(options: Options = Options(), engine: str = "interpreted") -> Iterator[ServedSwitch]:  # noqa: B008
    """A switch that runs served.p4."""
    with patch.dict("os.environ", {VARIABLE: engine}):
        switch = ServedSwitch(options)
        try:
            switch.load(SERVED.read_text())
            switch.swap()
            yield switch
        finally:
            switch.close()


def test_what_the_kernel_cannot_run_is_interpreted_and_said(tmp_path: Path) -> None:
    with served(Options(log=LogOptions(file=tmp_path / "log")), engine="auto") as switch:
        assert switch.ports.engine is not None
        assert switch.ports.engine.what.startswith("interpreted")
    assert "Program 'served.p4' is interpreted in this process: " in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (Options(priority_queues=8), "--priority-queues"),
        (Options(drop_port=510), "--drop-port 510"),
        (Options(log=LogOptions(console=True, level="debug")), "-L debug"),
    ],
)
def test_options_that_only_an_interpreted_switch_has(options: Options, why: str) -> None:
    with served() as switch:
        assert switch.program is not None
        with patch.dict("os.environ", {VARIABLE: "auto"}):
            choice = choose(switch.program, options)
    assert choice.compiled is None
    assert why in choice.why


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(InputError, match=f"{VARIABLE}=quantum"), served(engine="quantum"):
        pass


def test_packets_from_and_to_the_cpu_port() -> None:
    with served(Options(cpu_port=CPU_PORT)) as switch:
        packets: SimpleQueue[bytes] = SimpleQueue()
        switch.ports.controllers.append(packets.put)
        switch.control.tables.add_entry(entry("exact_match", (7,), CPU_PORT))
        switch.ports.inject(CPU_PORT, asking("exact_match", 7, 44))
        assert answer_of(CPU_PORT, packets.get(timeout=5)).value == 44


def test_digests_reach_who_subscribed_also_after_a_swap() -> None:
    with served(Options(swap=True)) as switch:
        batches: SimpleQueue[DigestBatch] = SimpleQueue()
        switch.digest_subscribers.append(batches.put)
        for port in (1, 2):
            switch.load(SERVED.read_text())
            switch.swap()
            switch.control.digests.set_size(1, 1)
            switch.control.tables.add_entry(entry("exact_match", (7,), 0))
            switch.control.tables.modify(EXACT, 0, INGRESS + "learn", ())
            switch.ports.inject(port, asking("exact_match", 7))
            assert batches.get(timeout=5).samples == ((port, 7),)


def test_swaps_are_refused_in_their_order() -> None:
    with served() as switch:
        with pytest.raises(Refused) as refused:
            switch.load(SERVED.read_text())
        assert refused.value.kind is RefusalKind.CONFIG_SWAP_DISABLED
    with served(Options(swap=True)) as switch:
        with pytest.raises(Refused) as refused:
            switch.swap()
        assert refused.value.kind is RefusalKind.NO_ONGOING_SWAP
        with pytest.raises(InputError):
            switch.load("{}")
        old = switch.control
        switch.load(SERVED.read_text())
        switch.swap()
        with pytest.raises(Refused, match="another program runs now"):
            old.tables.add_entry(entry("exact_match", (7,), 1))


def test_before_the_first_program_every_request_is_refused() -> None:
    switch = ServedSwitch(Options())
    with pytest.raises(Refused, match="no program is loaded yet"):
        _ = switch.control
    switch.close()


def test_each_step_of_a_packet_is_logged_where_it_is_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with served(Options(cpu_port=CPU_PORT, log=LogOptions(file=log, level="debug", packet_bytes=4))) as switch:
        packets: SimpleQueue[bytes] = SimpleQueue()
        switch.ports.controllers.append(packets.put)
        switch.control.tables.add_entry(entry("exact_match", (7,), CPU_PORT))
        switch.ports.inject(1, asking("exact_match", 7))
        packets.get(timeout=5)
    text = (tmp_path / "log.txt").read_text()
    lines = [line.split("] ", 4)[-1] for line in text.splitlines()]
    assert "Received packet of length 29 on port 1: 02 00 00 00" in lines
    assert f"[0.0] [cxt 0] Table '{EXACT}': hit" in lines
    assert f"[0.0] [cxt 0] Action {INGRESS}send(port=0xc8)" in lines


def test_a_program_that_fails_on_a_packet_is_there_for_the_next() -> None:
    with served(Options(cpu_port=CPU_PORT)) as switch:
        packets: SimpleQueue[bytes] = SimpleQueue()
        switch.ports.controllers.append(packets.put)
        switch.control.tables.add_entry(entry("exact_match", (7,), CPU_PORT))
        switch.ports.inject(1, None)  # type: ignore[arg-type] # what no program can parse
        switch.ports.inject(1, asking("exact_match", 7, 3))
        assert answer_of(CPU_PORT, packets.get(timeout=5)).value == 3


def test_many_threads_lose_no_entry_while_packets_pass() -> None:
    def write(first: int) -> None:
        for key in range(first, first + 50):
            switch.control.tables.add_entry(entry("exact_match", (key,), 2))
            switch.ports.inject(1, asking("exact_match", key))

    with served() as switch, ThreadPoolExecutor(20) as writers:
        list(writers.map(write, range(0, 1000, 50)))
        assert switch.control.tables.count(EXACT) == 1000
        assert sorted(each.handle for each in switch.control.tables.entries(EXACT)) == list(range(1000))
