"""Addresses are unique, plain and the same everywhere."""

from __future__ import annotations

from inakit.topo.fabric.fabric import addresses
from inakit.topo.fabric.generators import leaf_spine


def test_first_host_reads_well() -> None:
    first = addresses(leaf_spine(1, 1, 1))["h1"]
    assert (first.ipv4_text, first.mac_text) == ("10.0.0.1", "02:00:0a:00:00:01")


def test_thousands_of_hosts_have_their_own() -> None:
    table = addresses(leaf_spine(10, 1, 500)).values()
    assert len({a.ipv4 for a in table}) == len({a.mac for a in table}) == 5000
    assert {a.ipv4 >> 24 for a in table} == {10}
    assert not {a.ipv4 & 255 for a in table} & {0, 255}
