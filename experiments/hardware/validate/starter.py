"""What `inakit validate --starter` writes: a site's file with every key explained, and the files that it names."""

from __future__ import annotations

from pathlib import Path

from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.run.starter_jobs import jobs_text
from inakit.topo.errors import InputError, writing
from inakit.topo.files.fabrics import save_fabric

SITE = """\
# A site. Validate it: inakit validate THIS_FILE. docs/hardware.md describes it.
version: 1
fabric: fabric.yml       # a file (from this file's folder), or a fabric such as leafspine:leaves=4,spines=2
jobs: jobs.yml           # a file of jobs; inakit jobs writes others
chip: tofino1            # of every switch: generic, tofino1, tofino2, or a profile in a .yml file
program: ina_hw          # what switches run in virtual time: ina, or ina_hw, which does what a chip can
planners: [aro, atp]     # the site holds if the plans of one of them meet everything below

# Single failures to withstand, one at a time. After each, jobs that it touches are planned anew.
withstand:
  links: all             # all, none, or pairs of neighbours: [[leaf1, spine1]]
  switches: all          # all, none, or names: [spine1]
  hosts_cut_off: accepted  # a job may stop when the only way of one of its hosts fails; or: fails

# What plans must leave.
margins:
  keeps: 50%             # of its sending rate every job keeps under each failure
  # least_rate: 1G       # the sending rate that every job has in any case
  free: 0%               # of every link's capacity, while nothing fails
  within: 5%             # rates in virtual time are as near to the plan's

# Virtual time, at true rates.
simulate:
  worst: 3               # so many of the worst failures, besides the network without one
  fragments: 256         # of each job's gradient are sent at most

# emulate: 1/5000        # also emulate, with all rates times this; needs root
# seed: 0                # decides what is random
"""


def write_starter(folder: Path) -> list[Path]:
    """Write `site.yml`, `fabric.yml` and `jobs.yml` into a folder. Raises `InputError` if one is there already."""
    files = [folder / name for name in ("site.yml", "fabric.yml", "jobs.yml")]
    for file in files:
        if file.exists():
            raise InputError(f"{file} is there already, and may be your work: choose another folder, or remove it")
    problem = build_problem(
        FabricChoice("leafspine", leaves=4, spines=3, hosts_per_leaf=3, capacity="25G"),
        JobChoice(workers=8, gradient_bytes=1_000_000, iterations=1),
    )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files[0].write_text(SITE)
        save_fabric(problem.fabric, files[1])
        files[2].write_text(jobs_text(problem, "fabric.yml"))
    return files
