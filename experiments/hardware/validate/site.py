"""A site as data: a network with its jobs, the failures that it has to withstand, and what has to be left then."""

from __future__ import annotations

from dataclasses import dataclass, field

from inakit.planner.core.problem import Problem
from inakit.planner.install.data_plane_program import INA

NONE = "none"


@dataclass(frozen=True)
class Withstand:
    """The failures to withstand, one at a time. `links`: pairs of neighbours; `switches`: names; None of either: all.

    `hosts_may_be_cut_off`: a job that loses a host, because the host's only way fails, may stop.
    """

    links: tuple[tuple[str, str], ...] | None = None
    switches: tuple[str, ...] | None = None
    hosts_may_be_cut_off: bool = False


@dataclass(frozen=True)
class Margins:
    """What plans must leave.

    - `keeps`: the share of its sending rate that every job keeps under each failure
    - `least_rate_bps`: the sending rate that every job has in any case; None asks for nothing
    - `free`: the share of every link's capacity that gradients and results leave free while nothing fails
    - `within`: how far rates in virtual time may be from the planned ones, as a share of these
    """

    keeps: float = 0.5
    least_rate_bps: float | None = None
    free: float = 0.0
    within: float = 0.05


@dataclass(frozen=True)
class Simulate:
    """What runs in virtual time: the plans without failures, and those of the `worst` failures.

    Of each job's gradient `fragments` are sent at most, once: rates do not depend on how long it takes.
    """

    worst: int = 3
    fragments: int = 256


@dataclass(frozen=True)
class Site:
    """All that `inakit validate` is told.

    `emulate`: the factor of all rates in the emulation; None: no emulation. `program`: what the switches run.
    """

    name: str
    problem: Problem
    planners: tuple[str, ...]
    withstand: Withstand = field(default_factory=Withstand)
    margins: Margins = field(default_factory=Margins)
    simulate: Simulate = field(default_factory=Simulate)
    emulate: float | None = None
    program: str = INA.name
    mode: str = "reliable"
    seed: int = 0
