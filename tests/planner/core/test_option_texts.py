"""Options of a planner's own, as text behind its name."""

from __future__ import annotations

import pytest
from planner_cases import first_is_server

from inakit.planner.registry import find_method
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import fat_tree

PROBLEM = first_is_server(fat_tree(4))


def aggregators(planner: str) -> int:
    (planned,) = find_method(planner).plan(PROBLEM).trees
    return len(planned.tree.aggregators)


def test_soars_k_follows_its_name() -> None:
    assert [aggregators(f"soar:switches={k}") for k in (0, 1, 3)] == [0, 1, 3]


def test_several_options_follow_one_another() -> None:
    assert aggregators("soar:workloads=1:switches=2") == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("soar:k=3", "unknown option of planner 'soar' 'k': choose from switches, workloads"),
        ("soar:switches=many", "option switches=many: a whole number is expected, as switches=4"),
        ("soar:switches", "option switches: a whole number is expected"),
        ("soar:switches=-1", "switches -1: at least 0"),
        ("aro:trees=2", "planner 'aro' has no options of its own: leave out ':trees=2'"),
        ("sore:switches=2", "did you mean 'soar'"),
    ],
)
def test_what_a_planner_does_not_have_is_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_method(name)
