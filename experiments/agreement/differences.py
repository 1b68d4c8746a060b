"""How far two worlds differ in the figures of one plan, and how far they may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from statistics import median

from inakit.experiments.run.outcome import Outcome, collisions, ratio
from inakit.traffic.measure.monitor import DirectedLink, link_bytes

MEDIAN = 0.005
"""The medians of all differences are to be below this."""


@dataclass(frozen=True)
class Quantity:
    """A figure that is compared: how it is called in files, its value, and the relative difference that it may have."""

    name: str
    value: Callable[[Outcome], float | None]
    limit: float


def aggregation_ratio(outcome: Outcome) -> float | None:
    """Bytes that workers send for each byte that reaches a PS; None when none does."""
    return ratio(outcome.measured.sent_bytes, outcome.measured.ps_ingress_bytes)


QUANTITIES = (
    Quantity("sending_rate_bps", lambda outcome: outcome.measured.sending_rate_bps, 0.02),
    Quantity("communication_time_s", lambda outcome: outcome.measured.communication_time_s, 0.03),
    Quantity("ps_ingress_bytes", lambda outcome: outcome.measured.ps_ingress_bytes, 0.001),
    Quantity("aggregation_ratio", aggregation_ratio, 0.001),
)
LINK_BYTES, LINK_LIMIT = "link_bytes", 0.01
"""The bytes of each directed link, and the relative difference that they may have."""


def difference(first: float | None, second: float | None) -> float:
    """The second figure less the first, as a share of the first; infinite if only one of them is nothing."""
    if first == second or not (first or second):
        return 0.0
    return inf if not first or second is None else second / first - 1


@dataclass(frozen=True)
class Differences:
    """The differences between two runs of a plan, those of the second run relative to the first.

    `figures`: by the name of a quantity. `links`: those in the bytes of each directed link that carried anything.
    `collisions`: how many gradient packets of each run found their slot taken.
    """

    figures: Mapping[str, float]
    links: Mapping[DirectedLink, float]
    collisions: tuple[int, int] = (0, 0)

    @staticmethod
    def of(first: Outcome, second: Outcome) -> Differences:
        """The differences between two runs of a plan."""
        one, other = link_bytes(first.monitor), link_bytes(second.monitor)
        used = {link for link in (*one, *other) if one.get(link) or other.get(link)}
        return Differences(
            {each.name: difference(each.value(first), each.value(second)) for each in QUANTITIES},
            {link: difference(one.get(link), other.get(link)) for link in sorted(used)},
            (collisions(first.monitor), collisions(second.monitor)),
        )

    @property
    def worst_link(self) -> DirectedLink | None:
        """The link whose bytes differ most; None without any."""
        return max(self.links, key=lambda link: abs(self.links[link]), default=None)

    @property
    def worst_link_difference(self) -> float:
        """The difference in the bytes of that link."""
        return 0.0 if self.worst_link is None else self.links[self.worst_link]

    @property
    def median_link_difference(self) -> float:
        """The median of the differences in the bytes of links, without their signs."""
        return median(map(abs, self.links.values())) if self.links else 0.0

    @property
    def beyond(self) -> tuple[str, ...]:
        """What differs by more than it may, in words."""
        figures = {each.name: (self.figures[each.name], each.limit) for each in QUANTITIES}
        if self.worst_link is not None:
            figures[f"{LINK_BYTES} of {' → '.join(self.worst_link)}"] = self.worst_link_difference, LINK_LIMIT
        return tuple(
            f"{name} {found:+.2%} (at most {limit:.1%})"
            for name, (found, limit) in figures.items()
            if abs(found) > limit
        )
