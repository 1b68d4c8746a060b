"""Jobs, plans and table entries in files: YAML or JSON in, JSON out, and what `simple_switch_CLI` reads.

    version: 1
    jobs:
      - workers: [h2, h3, h4]
        servers: [h1]
        gradient_bytes: 548000
        iterations: 3            # also: number, weight, arrival_s, compute_s, model

The keys are the fields of `Job`, `Plan` and `Entries`; each file says the version of its format. A mistake
gets one message with file and place, and whoever reads a file gets a whole value or none.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import yaml
from pydantic import TypeAdapter, ValidationError

from planner.core.plan import AggregationTree, Aggregator, Branch, Plan, Shard
from planner.core.problem import Job
from planner.core.solving import SolverOutcome
from switch.entries import Entries, MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from topo.errors import InputError, writing
from topo.files.fabrics import PlainLoader

MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class JobsFile:
    version: Literal[1]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class PlanFile:
    version: Literal[1]
    plan: Plan


@dataclass(frozen=True)
class EntriesFile:
    version: Literal[1]
    entries: Entries


JOB_TYPES = (JobsFile, Job)
PLAN_TYPES = (PlanFile, Plan, SolverOutcome, Shard, AggregationTree, Aggregator, Branch)
ENTRY_TYPES = (EntriesFile, Entries, SwitchEntries, TableEntry, MulticastGroup, RegisterPreset)

FileT = TypeVar("FileT")


def load_jobs(path: Path) -> tuple[Job, ...]:
    """The jobs of a YAML or JSON file; a job without a number gets its position, from 1. Raises `InputError`."""
    document = parse(path)
    listed = document.get("jobs") if isinstance(document, dict) else None
    for position, job in enumerate(listed if isinstance(listed, list) else (), start=1):
        if isinstance(job, dict):
            job.setdefault("number", position)
    jobs = validate(path, document, JobsFile, JOB_TYPES).jobs
    if not jobs:
        raise InputError(f"{path}: no job: `jobs` lists at least one; `inakit jobs` writes a file to begin with")
    return jobs


def save_jobs(jobs: tuple[Job, ...], path: Path) -> None:
    """Write JSON, which is YAML too, that `load_jobs` reads back as equal jobs."""
    with writing(path):
        path.write_text(to_json(JobsFile(1, jobs)))


def load_plan(path: Path) -> Plan:
    """The plan of a file, not yet checked against any problem. Raises `InputError`."""
    return validate(path, parse(path), PlanFile, PLAN_TYPES).plan


def save_plan(plan: Plan, path: Path) -> None:
    """Write JSON that `load_plan` reads back as an equal plan."""
    with writing(path):
        path.write_text(to_json(PlanFile(1, plan)))


def load_entries(path: Path) -> Entries:
    """The entries of an `entries.json`. Raises `InputError`."""
    return validate(path, parse(path), EntriesFile, ENTRY_TYPES).entries


def save_entries(entries: Entries, folder: Path) -> None:
    """Write `entries.json`, and for each switch `<switch>.txt`, which `simple_switch_CLI` reads."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "entries.json").write_text(to_json(EntriesFile(1, entries)))
        for switch in entries.switches:
            (folder / f"{quote(switch.switch, safe=' ')}.txt").write_text(switch.cli())


def to_json(file: object) -> str:
    adapter: TypeAdapter[Any] = TypeAdapter(type(file))
    return adapter.dump_json(file, indent=1).decode() + "\n"


def parse(path: Path) -> Any:
    """The file's document, in plain lists and dictionaries."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, which no file of jobs or plans is")
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.load(text, PlainLoader)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{path}{line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not {path.suffix.removeprefix('.').upper() or 'YAML'}: {error}") from error


def validate(path: Path, document: Any, file: type[FileT], types: tuple[type[Any], ...]) -> FileT:
    """The document as `file`: no key unknown, no type converted."""
    adapter = TypeAdapter(file)
    try:
        return adapter.validate_json(json.dumps(document, default=str), strict=True, extra="forbid")
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error, types)}") from error


def explain(error: ValidationError, types: tuple[type[Any], ...]) -> str:
    """The mistake to mend first: an unknown key, for a typo also makes the right key missing."""
    mistakes = error.errors(include_url=False)
    mistake = next((m for m in mistakes if m["type"] == "unexpected_keyword_argument"), mistakes[0])
    last = mistake["loc"][-1] if mistake["loc"] else ""
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in mistake["loc"]).lstrip(".")
    if mistake["type"] == "unexpected_keyword_argument":
        keys = sorted({field.name for kind in types for field in fields(kind)})
        near = difflib.get_close_matches(str(last), keys, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(keys)}"
        return f"{place}: unknown key '{last}'; {hint}"
    if last == "version":
        given = (
            "is missing" if "missing" in mistake["type"] else f"{mistake['input']!r:.20} is none that this kit reads"
        )
        return f"key 'version' {given}: write `version: 1`"
    start = "; `inakit jobs` writes a file to begin with, every key explained" if types is JOB_TYPES else ""
    if mistake["type"] in ("missing", "missing_argument"):
        return f"{place}: key '{last}' is missing{start}"
    if not place:
        names = ", ".join(field.name for field in fields(types[0]))
        return f"expected the keys {names}, found {mistake['input']!r:.60}{start}"
    return f"{place}: {mistake['msg']}, found {mistake['input']!r:.60}"
