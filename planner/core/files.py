"""Jobs, plans and table entries in files: YAML or JSON in, JSON out, and commands for `simple_switch_CLI`.

    version: 1
    jobs:
      - workers: [h2, h3, h4]
        servers: [h1]
        gradient_bytes: 548000
        iterations: 3            # also: number, weight, arrival_s, compute_s, model

The keys are the fields of `Job`, `Plan` and `Entries`; each file states the version of its format. A mistake gives one
message with file and place, and a reader gets either a whole value or an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import TypeAdapter

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job
from inakit.switch.entries import Entries
from inakit.topo.errors import InputError, writing
from inakit.topo.files.reader import FileKind, ParsedFile, read_file, validate

FILE = FileKind("file of jobs or plans", max_bytes=64 << 20)
START = "; `inakit jobs` writes a file to begin with"


@dataclass(frozen=True)
class JobsFile:
    """The document of a file of jobs."""

    version: Literal[1]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class PlanFile:
    """The document of a file with one plan."""

    version: Literal[3]
    plan: Plan


@dataclass(frozen=True)
class EntriesFile:
    """The document of a file with the table entries of a plan."""

    version: Literal[1]
    entries: Entries


def load_jobs(path: Path) -> tuple[Job, ...]:
    """The jobs of a YAML or JSON file; a job without a number gets its position, from 1. Raises `InputError`."""
    file = with_job_numbers(read_file(path, FILE))
    jobs = validate(file, JobsFile, remedy=f"{START}, every key explained").jobs
    if not jobs:
        raise InputError(f"{path}: no job: the list `jobs` is empty{START}")
    return jobs


def with_job_numbers(file: ParsedFile) -> ParsedFile:
    """The file, where each job in the list `jobs` without a number gets its position, from 1."""
    listed = file.document.get("jobs") if isinstance(file.document, dict) else None
    for position, job in enumerate(listed if isinstance(listed, list) else (), start=1):
        if isinstance(job, dict):
            job.setdefault("number", position)
    return file


def save_jobs(jobs: tuple[Job, ...], path: Path) -> None:
    """Write JSON, which is also YAML, that `load_jobs` reads back as equal jobs."""
    with writing(path):
        path.write_text(to_json(JobsFile(1, jobs)))


def load_plan(path: Path) -> Plan:
    """The plan of a file, not yet checked against any problem. Raises `InputError`."""
    file = read_file(path, FILE)
    if isinstance(file.document, dict) and file.document.get("version") in (1, 2):
        try:
            with_flat_trees(file.document)
        except (KeyError, TypeError, AttributeError) as error:
            version = file.document["version"]
            raise file.error(
                (), f"not a complete plan of version {version}: make the plan again with `inakit plan`"
            ) from error
    return validate(file, PlanFile).plan


def with_flat_trees(document: dict[str, Any]) -> None:
    """Convert the document of a plan of version 1 or 2, whose trees are grouped in shards with equal parts."""
    plan = document["plan"]
    plan["trees"] = [
        {
            "job": shard["job"],
            "share": shard["share"] / len(shard["trees"]),
            "rate_bps": shard["rate_bps"] / len(shard["trees"]),
            "tree": tree,
        }
        for shard in sorted(plan.pop("shards"), key=lambda shard: shard["number"])
        for tree in shard["trees"]
    ]
    document["version"] = 3


def save_plan(plan: Plan, path: Path) -> None:
    """Write JSON that `load_plan` reads back as an equal plan."""
    with writing(path):
        path.write_text(to_json(PlanFile(3, plan)))


def save_entries(entries: Entries, folder: Path) -> None:
    """Write `entries.json`, and for each switch `<switch>.txt`, which `simple_switch_CLI` reads."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "entries.json").write_text(to_json(EntriesFile(1, entries)))
        for switch in entries.switches:
            (folder / f"{quote(switch.switch, safe=' ')}.txt").write_text(switch.cli())


def to_json(file: object) -> str:
    """A dataclass as indented JSON that `validate` reads back as an equal value."""
    adapter: TypeAdapter[Any] = TypeAdapter(type(file))
    return adapter.dump_json(file, indent=1).decode() + "\n"
