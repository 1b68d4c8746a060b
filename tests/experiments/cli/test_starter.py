"""`inakit jobs` writes a file of jobs that loads, and is what commands run without one."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from command import inakit

from inakit.experiments.run.scenario import COMMENTS, FabricChoice, JobChoice, build_problem, jobs_text
from inakit.planner.core.files import load_jobs
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import InputError
from inakit.topo.files.reader import write_new


def test_the_file_is_the_single_default_job(tmp_path: Path) -> None:
    written = inakit("jobs", "--topo", "leafspine", "--workers", "3", "--output", "jobs.yml", at=tmp_path)
    assert (written.code, written.output) == (0, "wrote jobs.yml\n")
    default = build_problem(FabricChoice("leafspine"), JobChoice(workers=3))
    assert load_jobs(tmp_path / "jobs.yml") == default.jobs
    assert (
        inakit("jobs", "--topo", "leafspine", "--workers", "3", at=tmp_path).output
        == (tmp_path / "jobs.yml").read_text()
    )


def test_every_key_has_its_comment() -> None:
    assert list(COMMENTS) == [field.name for field in fields(Job)]


def test_all_values_come_back(tmp_path: Path) -> None:
    """Numbers such as 1e-7, which YAML may take for a text, come back, too."""
    problem = build_problem(FabricChoice("fattree"), JobChoice(workers=2, servers=2))
    one = replace(problem.jobs[0], weight=2.5, arrival_s=1e-7, iterations=9, compute_s=0.25, model="vgg16")
    several = Problem(problem.fabric, (one, replace(one, number=40000, gradient_bytes=4)), problem.fragment)
    (tmp_path / "jobs.yml").write_text(jobs_text(several, "fattree"))
    assert load_jobs(tmp_path / "jobs.yml") == several.jobs


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text("mine")
    with pytest.raises(InputError, match="already exists and may be your work: choose another --output"):
        write_new({tmp_path / "jobs.yml": "theirs"}, other="--output")
    assert (tmp_path / "jobs.yml").read_text() == "mine"
    with pytest.raises(InputError, match="does not exist; create it"):
        write_new({tmp_path / "no" / "jobs.yml": "theirs"}, other="--output")


START = "`inakit jobs` writes a file to begin with"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("jobs: []", "key 'version' is missing: write `version: 1`"),
        ("version: 2\njobs: []", "key 'version' 2 is not a version that this kit reads: write `version: 1`"),
        ("version: '1'\njobs: []", "key 'version' '1' is not a version that this kit reads: write `version: 1`"),
        ("version: 1\njobs: []", f"no job: the list `jobs` is empty; {START}"),
        ("", f"expected the keys version, jobs, found null; {START}, every key explained"),
        ("- workers: [h1]", f"expected the keys version, jobs, found [{{'workers': ['h1']}}]; {START}"),
        ("version: 1", f"key 'jobs' is missing; {START}"),
        (
            "version: 1\njobs: [{workers: [h2], servers: [h1]}]",
            f"jobs[0]: key 'gradient_bytes' is missing; {START}",
        ),
    ],
)
def test_a_mistake_in_a_file_of_jobs_says_what_to_write(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text(text)
    with pytest.raises(InputError) as error:
        load_jobs(tmp_path / "jobs.yml")
    assert str(error.value).startswith(f"{tmp_path}/jobs.yml: {says}")
