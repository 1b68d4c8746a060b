"""The visible tests: run them in this folder with `pytest tests`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner import plan

HOSTS = {"leaf1": ["h1", "h2"], "leaf2": ["h3", "h4"]}


def both(a, b, rate, pipeline_a=None, pipeline_b=None):
    """A cable: its two directions."""
    return [
        {"from": a, "to": b, "rate_bps": rate, "pipeline": pipeline_b},
        {"from": b, "to": a, "rate_bps": rate, "pipeline": pipeline_a},
    ]


def fabric(ina, slow=20e6):
    """Two leaves with two hosts each, two spines, of which the second has slow links."""
    switch = {"ina": ina, "pipelines": 1, "slots": 8}
    tiers = {"leaf1": 1, "leaf2": 1, "spine1": 2, "spine2": 2}
    links = [link for leaf, hosts in HOSTS.items() for host in hosts for link in both(host, leaf, 20e6, None, 0)]
    for leaf in HOSTS:
        links += both(leaf, "spine1", 20e6, 0, 0) + both(leaf, "spine2", slow, 0, 0)
    return {
        "hosts": [host for hosts in HOSTS.values() for host in hosts],
        "switches": {name: {"tier": tier, **switch} for name, tier in tiers.items()},
        "links": links,
    }


JOB = {"job": 1, "workers": ["h1", "h2", "h3"], "server": "h4"}


def only_tree(network):
    """The tree of a job on a network."""
    (tree,) = plan(network, [JOB])
    return tree


def flows(tree):
    """The number of flows on each link."""
    found = {}
    for path in tree["paths"]:
        for link in zip(path["path"], path["path"][1:], strict=False):
            found[link] = found.get(link, 0) + 1
    return found


def test_every_worker_has_a_path_to_the_server():
    tree = only_tree(fabric(ina=False))
    assert sorted(path["from"] for path in tree["paths"]) == ["h1", "h2", "h3"]
    assert all(path["path"][0] == path["from"] and path["path"][-1] == "h4" for path in tree["paths"])


def test_the_servers_link_decides_without_sums():
    tree = only_tree(fabric(ina=False))
    assert flows(tree)["leaf2", "h4"] == 3
    assert 0.98 * 20e6 / 3 <= tree["rate_bps"] <= 20e6 / 3 * (1 + 1e-9)


def test_with_sums_every_link_carries_one_flow():
    tree = only_tree(fabric(ina=True))
    assert set(flows(tree).values()) == {1}
    assert 0.98 * 20e6 <= tree["rate_bps"] <= 20e6 * (1 + 1e-9)


def test_slow_links_are_avoided():
    assert only_tree(fabric(ina=True, slow=2e6))["rate_bps"] > 19e6
