"""The visible tests: run them in this folder with `inakit p4c tree.p4 && pytest tests`."""

import json
import struct
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
sys.path.insert(0, str(FOLDER))

from entries import entries  # noqa: E402
from entry import Entry, Group  # noqa: E402

PLAN = json.loads((FOLDER / "plan.json").read_text())
GRADIENT, RESULT = 1, 2


def aggregation(kind, label, job, slot, values):
    """A packet of an aggregation."""
    ethernet = bytes.fromhex("02000000000202000000000188b5")
    return ethernet + struct.pack("!BBBBHI8I", kind, label, job, 0, slot, 3, *values)


@pytest.fixture
def switch(p4_switch):
    """A switch that runs your program: labels 1 and 2 of job 9 (ports 3 and 5) are summed under label 7 (port 8)."""
    switch = p4_switch(FOLDER / "tree.json")
    for port in (3, 5, 8):
        switch.table("pipeline_of").add({"standard.ingress_port": str(port)}, "in_pipeline", pipeline=1)
    for label, port in ((1, 3), (2, 5)):
        key = {"standard.ingress_port": str(port), "hdr.agg.kind": "1", "hdr.agg.job": "9", "hdr.agg.label": str(label)}
        switch.table("admitted").add(key, "admit")
        key = {"meta.pipeline": "1", "hdr.agg.job": "9", "hdr.agg.label": str(label)}
        own = {"full": 0b11, "as_label": 7, "first": 10, "slots": 4}
        switch.table("child_of").add(key, "aggregate", bit_of=label, **own)
    switch.table("up").add({"hdr.agg.job": "9", "hdr.agg.label": "7"}, "send", port=8)
    return switch


def test_a_sum_leaves_under_the_label_of_its_aggregator(switch):
    switch.send(3, aggregation(GRADIENT, 1, 9, 0, [1] * 8))
    switch.expect_nothing_else()
    switch.send(5, aggregation(GRADIENT, 2, 9, 0, [10] * 8))
    switch.expect(8, aggregation(GRADIENT, 7, 9, 0, [11] * 8))
    switch.expect_nothing_else()


def test_what_is_not_admitted_is_dropped(switch):
    switch.send(3, aggregation(GRADIENT, 2, 9, 0, [1] * 8))
    switch.send(5, aggregation(GRADIENT, 2, 9, 0, [1] * 8))
    switch.expect_nothing_else()


def test_entries_of_leaf1():
    found = entries(PLAN, "leaf1")
    assert Entry("pipeline_of", (37,), "in_pipeline", (1,)) in found
    assert Entry("up", (157, 7), "send", (1,)) in found  # the sum of labels 2 and 6, towards spine1
    assert Entry("admitted", (19, GRADIENT, 157, 2), "admit") in found  # from h2
    assert Entry("admitted", (1, RESULT, 157, 0), "admit") in found  # from spine1
    groups = {each.number: sorted(each.ports) for each in found if isinstance(each, Group)}
    (number,) = next(each.params for each in found if each[:2] == ("down", (157,)))
    assert groups[number] == [19, 37]
    children = {each.key: each.params for each in found if each[0] == "child_of"}
    assert sorted(children) == [(1, 157, 2), (1, 157, 6)]
    assert {params[1:] for params in children.values()} == {(0b11, 7, 1, 3)}
    assert sorted(params[0] for params in children.values()) == [0b01, 0b10]
