"""Runs in virtual time whose reports the tests look at: small, and each made once."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from inakit.experiments.emulate.emulate import Emulation, make_plans, new_record, run, runs_of
from inakit.experiments.report.write import write_report
from inakit.experiments.run.faults_file import load_faults
from inakit.experiments.run.run_folder import RunFolder
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.problem import Problem
from inakit.traffic.measure.processors import REST, SIMPLE_SWITCH, WORKERS_AND_PS, Part, Second, part_series

QUIET = Console(quiet=True)
MARKUP = "</script><img src=x onerror=alert(1)>"
FAULTS = """
version: 1
links: [{link: all, drop: 1%}]
events:
  - {at: 2ms, down: [leaf1, spine1], for: 3ms}
  - {at: 5ms, pause: WORKER, for: 2ms}
stragglers: {mean: 0.8, spread: 0.1, seed: 1}
"""


def fat_tree(k: int = 4, workers: int | None = None, gradient_bytes: int = 32_768) -> Problem:
    """A fat-tree with one job of two iterations."""
    return build_problem(FabricChoice("fattree", k=k), JobChoice(None, workers, 1, gradient_bytes, 2))


def leaf_spine(gradient_bytes: int) -> Problem:
    """A leaf-spine with six workers, one job of two iterations."""
    choice = FabricChoice("leafspine", leaves=2, spines=2, hosts_per_leaf=4)
    return build_problem(choice, JobChoice(None, 6, 1, gradient_bytes, 2))


def valid(results: Path) -> Path:
    """Three planners on a fat-tree: the folder of a VALID run."""
    run(Emulation(fat_tree(), ("aro", "atp", "lbmm"), "virtual", results=results), QUIET)
    return (results / "latest").resolve()


def with_processors(run: Path, results: Path) -> Path:
    """A copy of a run's folder as one in real time leaves it, with what the parts of the kit used in two seconds."""
    folder = Path(shutil.copytree(run, results / "with-processors"))
    record = json.loads((folder / "run.json").read_text())
    used = [
        told(-0.1, 1.0, (Part(WORKERS_AND_PS, 0.5, 100 << 20), Part(REST, 1.5, 4 << 30))),
        told(
            1.0,
            2.0,
            (Part(WORKERS_AND_PS, 1.0, 200 << 20), Part(SIMPLE_SWITCH, 0.25, 50 << 20), Part(REST, 0.0, 4 << 30)),
        ),
    ]
    record["planners"]["aro"]["processors"] = part_series(used, 0.0)
    (folder / "run.json").write_text(json.dumps(record))
    write_report(folder)
    return folder


def told(start_s: float, end_s: float, parts: tuple[Part, ...]) -> Second:
    """A second of a run on a machine with two processors."""
    return Second(start_s, end_s, processors=2, free=1.0, spare=1.0, parts=parts)


def overloaded(results: Path) -> Path:
    """A plan for links without delay on links that have one, where slots are too few: a run that is not VALID."""
    problem = leaf_spine(gradient_bytes=16_384)
    switches = tuple(replace(switch, aggregator_slots=8) for switch in problem.fabric.switches)
    links = tuple(replace(link, delay_s=0.0005) for link in problem.fabric.links)
    slow = replace(problem, fabric=replace(problem.fabric, switches=switches, links=links))
    run(Emulation(slow, ("aro",), "virtual", results=results), QUIET)
    return (results / "latest").resolve()


def faulty(results: Path) -> Path:
    """A run with losses, a link that fails, a worker that pauses, and stragglers."""
    problem = leaf_spine(gradient_bytes=32_768)
    results.mkdir(parents=True, exist_ok=True)
    file = results / "faults.yml"
    file.write_text(FAULTS.replace("WORKER", problem.jobs[0].workers[0]))
    faults = load_faults(file, problem)
    run(Emulation(problem, ("aro",), "virtual", results=results, faults=faults), QUIET)
    return (results / "latest").resolve()


def two_jobs(results: Path) -> Path:
    """Two jobs, started by a command that has markup in it."""
    problem = fat_tree(workers=6)
    (job,) = problem.jobs
    jobs = (
        replace(job, workers=job.workers[:3], model="vgg16"),
        replace(job, number=2, workers=job.workers[3:]),
    )
    run(Emulation(replace(problem, jobs=jobs), ("aro", "forest"), "virtual", results=results), QUIET)
    file = results / "latest" / "run.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"command": ["inakit", "emulate", "--topo", MARKUP]}))
    return write_report(file.parent.resolve()).parent


def scheduled(results: Path) -> Path:
    """A schedule of P4INC-AOI, whose circuits change."""
    from inakit.experiments.papers.common.emulated_figure import run_emulated  # noqa: PLC0415
    from inakit.experiments.papers.common.figure_registry import Request  # noqa: PLC0415
    from inakit.experiments.papers.p4inc_aoi.testbed import Testbed  # noqa: PLC0415

    testbed = Testbed.of(3, seed=5)
    run_emulated("aoi", [testbed.emulated_run("INC-TW")], Request(results, switch="virtual"), QUIET).tell(QUIET)
    return (results / "latest").resolve()


def planned_only(results: Path, k: int) -> Path:
    """A run that was ended right after its plans were made, on a fat-tree of any size."""
    emulation = Emulation(fat_tree(k), ("atp",), "virtual", results=results)
    plans = make_plans(emulation, QUIET)
    folder = RunFolder(results, emulation.problem.fabric.name)
    folder.write_record(new_record(emulation, plans, find_world("virtual")))
    runs_of(emulation, plans, folder)
    return folder.path
