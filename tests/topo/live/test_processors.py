"""Endpoints and switches side by side."""

from __future__ import annotations

import os

import pytest

from inakit.topo.live.priority import on_endpoint_processor, switch_processors


def test_endpoints_have_the_first_processor_and_give_it_back() -> None:
    allowed = os.sched_getaffinity(0)
    with on_endpoint_processor():
        assert os.sched_getaffinity(0) == {min(allowed)}
    assert os.sched_getaffinity(0) == allowed


def test_the_processors_are_given_back_after_an_error() -> None:
    allowed = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError, match="stop"), on_endpoint_processor():
        raise RuntimeError("stop")
    assert os.sched_getaffinity(0) == allowed


def test_switches_share_the_others() -> None:
    allowed = os.sched_getaffinity(0)
    assert set(switch_processors()) == (allowed - {min(allowed)} or allowed)


def test_a_single_processor_serves_all() -> None:
    with on_endpoint_processor():
        assert switch_processors() == sorted(os.sched_getaffinity(0))
