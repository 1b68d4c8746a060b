"""A separate process that observes the processors during a run.

It reads the times of every process of the machine, which takes some milliseconds; in a thread of the run that would
delay the endpoints. It runs on the processors of the switches, and ends when the run closes its input or is gone.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from inakit.topo.errors import RunError
from inakit.topo.live.priority import endpoint_processor, switch_processors
from inakit.traffic.measure.processors import Consumer, Part, Second, Sources, UsageReader, second

PACKAGES = Path(psutil.__file__).parents[1]
"""The only folder of packages in the observer's path, which makes it start faster."""
PERIOD_S = 1.0
SHORTEST_S = 0.5
"""A shorter interval at a run's end is dropped, because the clocks of /proc tick only 100 times a second."""


class Observer:
    """The seconds of a run, observed by another process. A context manager that the endpoints' thread enters."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.period_s = period_s
        self.seconds: list[Second] = []
        """The finished seconds in order. Another thread adds to them."""

    def __enter__(self) -> Self:
        numbers = map(str, (os.getpid(), threading.get_native_id(), endpoint_processor(), self.period_s))
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-m", __name__, *numbers],
            cwd=Path(__file__).parents[3], env=os.environ | {"PYTHONPATH": str(PACKAGES)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        os.sched_setaffinity(self.process.pid, switch_processors())
        self.process.stdout.readline()
        self._reader = threading.Thread(target=self._read, name="observer", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._reader.join()
        self.process.wait()
        if error is None and self.process.returncode:
            raise RunError(
                f"the process that observes the processors ended with {self.process.returncode}: "
                "the processors' use is unknown; run again"
            )

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seconds.append(from_json(line))


def from_json(line: str) -> Second:
    """Parse a line that `observe` wrote."""
    found: dict[str, Any] = json.loads(line)
    others = tuple(Consumer(**consumer) for consumer in found.pop("others"))
    return Second(**found | {"others": others, "parts": tuple(Part(**part) for part in found.get("parts", ()))})


def observe(sources: Sources, period_s: float) -> None:
    """Write each second as a line of JSON until the input ends; an empty line signals readiness."""
    earlier = sources.read()
    print(flush=True)
    over = False
    while not over:
        over = bool(select.select([sys.stdin], [], [], period_s)[0])
        later = sources.read()
        if later.at_s - earlier.at_s >= min(SHORTEST_S, period_s):
            print(json.dumps(asdict(second(earlier, later, sources.owner))), flush=True)
            earlier = later


if __name__ == "__main__":
    owner, thread, processor = map(int, sys.argv[1:4])
    observe(Sources(owner, thread, processor, UsageReader(owner)), float(sys.argv[4]))
