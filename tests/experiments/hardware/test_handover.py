"""What `inakit plan --output` hands over, and `inakit hardware diff` with dumps of its switches."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inakit.experiments.cli.main import main
from inakit.experiments.hardware.fit import load_plan_folder
from inakit.experiments.hardware.handover import EndHost, Peer, end_hosts, load_end_host
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.fabric.variations import with_pipelines
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.options import Bounds
from inakit.traffic.endpoints.records import NEVER
from inakit.traffic.endpoints.streams import (
    StreamLayout,
    TreePart,
    gradient_heads,
    lay_out,
    stream_arrays,
    tree_arrays,
)
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import FRAGMENT

MISPLACED = "bfrt/ differs from the plan: port"


def inakit(*words: str | Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The exit code and the output of a command."""
    monkeypatch.setattr(sys, "argv", ["inakit", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out + printed.err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Runs a command, and returns its exit code and its output."""
    return lambda *words: inakit(*words, capsys=capsys, monkeypatch=monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plan, as `inakit plan --output` writes it."""
    from inakit.experiments.hardware.handover import write_handover  # noqa: PLC0415
    from inakit.experiments.run.planning import write_plan  # noqa: PLC0415
    from inakit.planner.prepared import Prepared  # noqa: PLC0415

    made = tmp_path_factory.mktemp("plan")
    problem, plan = planned()
    write_plan(made, Prepared(problem, plan))
    assert [line for line in write_handover(made, problem, plan) if not line.startswith(MISPLACED)] == []
    return made


def planned(planner: str = "aro") -> tuple[Problem, Plan]:
    problem = build_problem(FabricChoice("aro-figure1"), JobChoice(gradient_bytes=8192, iterations=1))
    return problem, METHODS[planner].plan(problem)


def test_a_plan_is_handed_over_for_every_switch_and_host(folder: Path) -> None:
    names = {path.name for path in (folder / "bfrt").iterdir()}
    switches = ("l0", "l1", "l2", "l3", "s1")
    assert names == {"dump.py"} | {f"{s}{end}" for s in switches for end in (".json", ".add.py", ".remove.py")}
    names = {path.name for path in (folder / "p4runtime").iterdir()}
    assert names == {"p4info.txt"} | {f"{s}{end}" for s in switches for end in (".add.txt", ".remove.txt")}
    assert {path.stem for path in (folder / "hosts").iterdir()} == {"ps", "w0", "w1", "w2", "w3", "w4"}


def test_files_of_hosts_are_read_back(folder: Path) -> None:
    problem, plan = load_plan_folder(folder)
    assert [load_end_host(folder / "hosts" / f"{each.host.name}.json") for each in end_hosts(problem, plan)] == (
        end_hosts(problem, plan)
    )


def test_a_wrong_entry_on_one_switch_is_found_and_named(folder: Path, tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    for path in (folder / "bfrt").glob("??.json"):
        (tmp_path / path.name).write_text(path.read_text())
    assert run("hardware", "diff", folder, tmp_path)[0] == 0
    listed = json.loads((tmp_path / "l1.json").read_text())
    wrong = next(each for each in listed if each["table_name"].endswith("forward"))
    wrong["data"]["port"] += 1
    (tmp_path / "l1.json").write_text(json.dumps(listed))
    code, told = run("hardware", "diff", folder, tmp_path)
    port, label = wrong["data"]["port"], wrong["key"]["hdr.ina.label"]
    assert code == 1
    assert "l1: 1 difference\n" in told
    assert (
        f"wrong: table InaIngress.forward (job=1, tree=1, label={label}): "
        f"holds send(port={port}), planned is send(port={port - 1})" in told
    )
    assert told.count("as planned") == 4
    code, told = run("hardware", "diff", folder, tmp_path, "--format", "json")
    (differs,) = [row for row in json.loads(told)["tables"][0]["rows"] if row["kind"] != "as planned"]
    assert (code, differs["switch"], differs["kind"]) == (1, "l1", "wrong")
    assert differs["difference"].startswith(f"table InaIngress.forward (job=1, tree=1, label={label}): holds")


def test_what_is_not_there_is_told(folder: Path, tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    dump = folder / "bfrt" / "l1.json"
    for words, message in (
        ((tmp_path, f"l1={dump}"), "no plan.json in it"),
        ((folder, f"l9={dump}"), "unknown switch of the plan 'l9'"),
        ((folder, "l1"), "expected SWITCH=DUMP"),
        ((folder, "l1=nothing"), "'nothing' is no file"),
        ((folder, f"l1={dump}", f"l1={dump}"), "given twice"),
        ((folder, tmp_path), "no dump of l0, l1, l2, l3, s1"),
        ((folder, "l1=127.0.0.1:1"), "UNAVAILABLE"),
    ):
        code, told = run("hardware", "diff", *words)
        assert code == 2, told
        assert message in told.replace("\n", " ")


def test_entries_for_chips_have_no_pipelines_and_ports_elsewhere_are_told(folder: Path, tmp_path: Path) -> None:
    from inakit.experiments.hardware.handover import write_handover  # noqa: PLC0415

    assert "InaIngress.pipeline" not in (folder / "bfrt" / "s1.json").read_text()
    assert "InaIngress.pipeline" in (folder / "p4runtime" / "s1.add.txt").read_text()
    problem = build_problem(FabricChoice("leafspine", leaves=2, spines=1, hosts_per_leaf=2), JobChoice(workers=2))
    plan = METHODS["atp"].plan(problem)
    assert write_handover(tmp_path, problem, plan) == []
    two = replace(problem, fabric=with_pipelines(problem.fabric, 2))
    (told,) = write_handover(tmp_path, two, METHODS["atp"].plan(two))
    assert told.startswith(MISPLACED)


def test_a_plan_that_no_chip_runs_has_no_entries_for_one_and_that_is_told(tmp_path: Path) -> None:
    from inakit.experiments.hardware.handover import write_handover  # noqa: PLC0415

    problem, plan = planned("atp")
    told = write_handover(tmp_path, problem, with_policy(problem, plan, "esa"))
    assert told[0].startswith("no bfrt/: job 1, tree 1: program ina_hw has no slot policy 'esa'")
    assert not (tmp_path / "bfrt").exists()


def test_a_collective_has_no_files_of_hosts_and_that_is_told(tmp_path: Path) -> None:
    from inakit.experiments.hardware.handover import write_handover  # noqa: PLC0415

    told = write_handover(tmp_path, *planned("ring"))
    assert [line for line in told if not line.startswith(MISPLACED)] == [
        "job 1: no files of its hosts, because it is a collective; plan.json has the steps of its ranks"
    ]


def host_port(peer: Peer) -> HostPort:
    return HostPort(peer.name, 0, "eth0", peer.mac, peer.ipv4)


def layout_of(found: EndHost) -> StreamLayout:
    """What a worker's endpoint works on, made of its host's file alone."""
    own = found.host.name
    peers = {own: found.host} | {tree.server.name: tree.server for tree in found.sends}
    parts = []
    for sent in found.sends:
        held = (Aggregator(65535, "unknown", 0, (sent.label,), 0, sent.slots),) if sent.slots else ()
        branch = Branch(sent.label, 0, (own, sent.server.name))
        tree = AggregationTree(
            sent.tree, sent.server.name, {sent.label: own}, held, (branch,), sent.policy, sent.priority
        )
        job = next(each for each in found.jobs if each.number == sent.job)
        task = Job(job.number, (own,), tuple(name for name in peers if name != own), job.gradient_bytes)
        parts.append(TreePart(task, 0, tree, sent.first_fragment, sent.fragments, sent.rate_bps))
    index = {name: number for number, name in enumerate(peers)}
    ports = tuple(range(1, len(peers) + 1))
    links = tuple(Link("s", name, port, 0, 1e9, 1e9) for port, name in zip(ports, peers, strict=True))
    fabric = Fabric("own", tuple(map(Host, peers)), (Switch("s", 1, (ports,)),), links)
    streams = stream_arrays(FRAGMENT, parts, index, Bounds())
    problem = Problem(fabric, (parts[0].job,), FRAGMENT)
    return StreamLayout(
        problem, tuple(map(host_port, peers.values())), tuple(parts), tree_arrays(parts, index), streams
    )


@pytest.mark.parametrize("planner", ["aro", "forest", "atp"])
def test_a_workers_endpoint_is_built_of_its_file(planner: str) -> None:
    problem, plan = planned(planner)
    files = end_hosts(problem, plan)
    whole = lay_out(problem, plan, [host_port(each.host) for each in files])
    for each in (each for each in files if each.sends):
        layout = layout_of(each)
        own = np.flatnonzero(whole.streams.host == [port.name for port in whole.hosts].index(each.host.name))
        assert gradient_heads(layout).tobytes() == gradient_heads(whole)[own].tobytes()
        for name in ("label", "count", "rate_fps", "in_flight"):
            assert getattr(layout.streams, name).tolist() == getattr(whole.streams, name)[own].tolist()
        seq = np.arange(len(own)) + 700
        slots = whole.trees.slot(whole.streams.tree[own], seq)
        assert layout.trees.slot(layout.streams.tree, seq).tolist() == slots.tolist()
        with Endpoints(layout) as endpoints:
            endpoints.begin(0, 0, 0)
            assert endpoints.all["due"][0] < NEVER


def test_a_broken_file_of_a_host_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "w0.json"
    whole = json.loads((folder / "hosts" / "w0.json").read_text())
    for change, message in (({"version": 2}, "write `version: 1`"), ({"sends": 3}, "sends"), ({"x": 1}, "unknown key")):
        path.write_text(json.dumps(whole | change))
        with pytest.raises(InputError, match=message):
            load_end_host(path)


def test_a_servers_file_names_who_arrives() -> None:
    problem, plan = planned()
    served = next(each for each in end_hosts(problem, plan) if each.serves).serves[0]
    assert sum(served.arriving.values()) == len(served.workers) == 5
    assert served.workers[1].name == plan.trees[0].tree.workers[1]
