"""Reads the network files of courses: `topology.json` of p4lang's tutorials, `p4app.json` of p4-utils."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inakit.switch.networks import p4app, tutorials
from inakit.switch.networks.network_plan import NetworkPlan, with_interfaces
from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, read_file

NETWORK = FileKind("network file", max_bytes=16 << 20)
OTHERS = {
    "nodes": "p4-utils writes this file for a running network: give the p4app.json that the network is started from",
    "targets": "this is a file of p4lang's p4app of 2016 and 2017, which is not read: write a topology.json",
}
"""Files of these names that do not describe a network for this reader, by a key that only they have."""


def read_network(path: Path, program: Path | None = None) -> NetworkPlan:
    """The network in a file; if `program` is given, all switches run it."""
    file = read_file(path, NETWORK)
    if not isinstance(file.document, dict):
        raise file.error((), "expected an object with `hosts`, `switches` and `links`, or with `topology`")
    for key, way_out in OTHERS.items():
        if key in file.document and "hosts" not in file.document:
            raise file.error((), way_out)
    plan = p4app.plan_of(file) if "topology" in file.document else tutorials.plan_of(file)
    check_names(path, plan)
    plan = with_interfaces(plan)
    if program is None:
        return plan
    return replace(plan, switches=tuple(replace(each, program=program) for each in plan.switches))


def check_names(path: Path, plan: NetworkPlan) -> None:
    """Raise `InputError` for links of unknown nodes, and for ports that are used twice."""
    known = {*(host.name for host in plan.hosts), *(switch.name for switch in plan.switches), *plan.bystanders}
    used: set[tuple[str, int]] = set()
    for end in (end for link in plan.links for end in (link.one, link.other)):
        if end.node not in known:
            raise InputError(f"{path}: a link ends at '{end.node}': there are {', '.join(sorted(known))}")
        if (end.node, end.port) in used:
            raise InputError(f"{path}: two links end at port {end.port} of '{end.node}'")
        used.add((end.node, end.port))
