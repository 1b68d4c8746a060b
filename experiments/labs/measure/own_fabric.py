"""The fabric that a student measures: drawn from the student's name, so that everybody has another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_ina
from inakit.topo.files.fabrics import save_fabric

FILE = "fabric.yml"
WORKERS = 8
MOST_NAME = 60
LEAVES, HOSTS_PER_LEAF = 4, 4
SUMMING = 2
"""So many leaves sum, and no spine: the server's link carries several flows, which makes long messages slow."""
GBPS, MICROSECOND_S = 1e9, 1e-6


def own_fabric(student: str) -> Fabric:
    """The leaf-spine of a student: drawn rates, delays, and leaves that sum. Raises `InputError` for an empty name."""
    name = student.strip()
    if not name or len(name) > MOST_NAME:
        raise InputError(f"student '{name[:MOST_NAME]}': a name of 1 to {MOST_NAME} letters is expected")
    random = Random(f"7-measure/{name}")
    plain = leaf_spine(LEAVES, random.choice((2, 3)), HOSTS_PER_LEAF)
    host_bps = random.choice((10, 25, 40)) * GBPS
    links = []
    for link in plain.links:
        bps = host_bps if link.a in plain.host_names else host_bps * random.choice((1, 1, 1.6))
        delay_s = random.choice((0.4, 0.7, 1.0, 1.5)) * MICROSECOND_S
        links.append(replace(link, capacity_ab_bps=bps, capacity_ba_bps=bps, delay_s=delay_s))
    leaves = random.sample([switch.name for switch in plain.switches if switch.tier == 1], SUMMING)
    return with_ina(replace(plain, name="own", links=tuple(links)), leaves)


def write_own_fabric(student: str, folder: Path) -> Path:
    """Write the fabric of a student to `fabric.yml` in a folder. Raises `InputError` and `OutputError`."""
    save_fabric(own_fabric(student), folder / FILE)
    return folder / FILE
