"""The throughput of a program over the size of its pool, as lines of text with bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.pool.star import Star, throughput
from inakit.experiments.labs.runners.sandboxed_switch import SandboxedSwitch, switch_limits
from inakit.topo.errors import InputError

BAR = 40
"""The characters of a bar that stands for the rate of a link."""


def curve_lines(path: Path, star: Star, slots: Sequence[int]) -> Iterator[str]:
    """Measure the program in a file with each of these sizes of the pool; a line for each."""
    texts = read_submission(path).texts
    if path.name not in texts or path.suffix != ".json":
        raise InputError(f"{path}: expected a compiled program, such as pool.json (`inakit p4c pool.p4` writes it)")
    switch = SandboxedSwitch(texts[path.name], path.stem, switch_limits())
    try:
        yield f"{star}\n{'slots':>5} {'Mbit/s':>10}"
        for each in slots:
            rate_bps = throughput(switch, star, each)
            yield f"{each:5} {rate_bps / 1e6:10.3f} {'#' * round(BAR * rate_bps / star.rate_bps)}"
    finally:
        switch.close()
