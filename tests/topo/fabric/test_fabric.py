"""A `Fabric` that exists is sound; one that cannot be says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.fabric.generators import leaf_spine

SOUND = leaf_spine(2, 1, 1)


def with_switch(**changes: object) -> Fabric:
    return replace(SOUND, switches=(replace(SOUND.switches[0], **changes), *SOUND.switches[1:]))  # type: ignore[arg-type]


def with_link(**changes: object) -> Fabric:
    return replace(SOUND, links=(replace(SOUND.links[0], **changes), *SOUND.links[1:]))  # type: ignore[arg-type]


def test_derived_views() -> None:
    assert SOUND.neighbors["leaf1"] == ("h1", "spine1")
    assert SOUND.port_numbers["leaf2", "spine1"] == 2
    assert SOUND.tor_of("h2") == "leaf2"
    assert SOUND.tiers == {"h1": 0, "h2": 0, "leaf1": 1, "leaf2": 1, "spine1": 2}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: replace(SOUND, hosts=(*SOUND.hosts, Host("leaf1"))),
            "name 'leaf1' is used twice: every host and switch needs its own",
        ),
        (
            lambda: replace(SOUND, hosts=(Host("h 1"),)),
            "name 'h 1': a letter, then letters, digits, '_' or '-' are expected, 40 at most",
        ),
        (lambda: replace(SOUND, hosts=(*SOUND.hosts, Host("h3"))), "host 'h3' has no link: join it to a switch"),
        (
            lambda: Fabric("x", (Host("a"), Host("b")), (), (Link("a", "b", 0, 0, 1.0, 1.0),)),
            "host 'a' is linked to host 'b': a host hangs from a switch",
        ),
        (lambda: with_switch(tier=0), "switch 'leaf1': tier 0; 1 is the lowest, hosts hang from it"),
        (lambda: with_switch(aggregator_slots=0), "switch 'leaf1': 0 aggregator slots; at least 1 is expected"),
        (
            lambda: with_switch(aggregation_rate_bps=0.0),
            "switch 'leaf1': aggregation rate 0 bit/s; it must be greater than 0",
        ),
        (lambda: with_switch(pipelines=()), "switch 'leaf1' has 0 pipelines: 1 to 8 are possible"),
        (
            lambda: with_switch(pipelines=((1, 2), (2,))),
            "switch 'leaf1': port 2 is in two pipelines; a port belongs to exactly one, remove it from the others",
        ),
        (lambda: with_switch(pipelines=((1,),)), "switch 'leaf1' has no port 2: it has [1]"),
        (lambda: with_link(capacity_ab_bps=0.0), "link h1-leaf1: capacity 0 bit/s; it must be greater than 0"),
        (
            lambda: with_link(capacity_ba_bps=float("nan")),
            "link h1-leaf1: capacity nan bit/s; it must be greater than 0",
        ),
        (lambda: with_link(delay_s=-1.0), "link h1-leaf1: delay -1 s; it must not be negative"),
        (lambda: with_link(b="leaf9"), "link h1-leaf9: no host or switch is called 'leaf9'"),
        (lambda: with_link(a_port=1), "link h1-leaf1: host 'h1' has one port, number 0, not 1"),
        (
            lambda: replace(SOUND, links=(*SOUND.links, Link("leaf1", "leaf2", 2, 2, 1.0, 1.0))),
            "link leaf1-leaf2: port 2 of 'leaf1' already has a link",
        ),
        (
            lambda: replace(SOUND, links=(*SOUND.links, SOUND.links[0])),
            "link h1-leaf1: two nodes are joined by at most one link, and none to itself",
        ),
        (lambda: Switch("s", 1, ((1,), (2,))).pipeline_of(3), "switch 's' has no port 3: it has [1, 2]"),
    ],
)
def test_what_cannot_be(build: Callable[[], object], message: str) -> None:
    with pytest.raises(FabricError) as refused:
        build()
    assert str(refused.value) == message
