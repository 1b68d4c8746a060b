"""Names are taken by any end, from a dot on, that is only one's."""

from __future__ import annotations

import pytest

from inakit.switch.control.simple_switch_cli import whole_name
from inakit.topo.errors import InputError

KNOWN = ["In.acl.table", "Out.acl.table", "In.route", "route", "In.reroute"]


@pytest.mark.parametrize(
    ("short", "whole"),
    {"In.acl.table": "In.acl.table", "Out.acl.table": "Out.acl.table", "reroute": "In.reroute"}.items(),
)
def test_an_end_that_is_only_ones_is_enough(short: str, whole: str) -> None:
    assert whole_name("table", short, KNOWN) == whole


def test_a_whole_name_is_never_ambiguous() -> None:
    assert whole_name("table", "route", KNOWN) == "route"


def test_an_ambiguous_end_names_the_candidates() -> None:
    with pytest.raises(InputError, match=r"table 'acl.table' is ambiguous: it ends In.acl.table and Out.acl.table"):
        whole_name("table", "acl.table", KNOWN)


def test_part_of_a_word_is_no_end() -> None:
    with pytest.raises(InputError, match="unknown table 'oute'"):
        whole_name("table", "oute", KNOWN)
