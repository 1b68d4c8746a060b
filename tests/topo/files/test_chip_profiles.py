"""Profiles of chips in files: the kit's, a user's own, and what is wrong with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inakit.planner.core.plan import MOST_BITS
from inakit.planner.install import ina_program
from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import VALUES_PER_PACKET
from inakit.topo.fabric.generators import fat_tree
from inakit.topo.fabric.variations import with_chip, with_scale
from inakit.topo.files.fabric_records import PROFILES, find_chip
from inakit.topo.files.fabrics import load_fabric, save_fabric
from inakit.traffic.wire.packet_format import FRAGMENT

OWN = {
    "name": "mine",
    "values_per_pass": "32",
    "slots_per_pipeline": "4096",
    "children_per_slot": "16",
    "recirculation": "200G",
    "pipelines": "4",
    "ports_per_pipeline": "{100G: 16, 25G: 64}",
    "table_entries": "1024",
    "multicast_groups": "100",
    "register_kib": "64",
}


def own(path: Path, **changes: str) -> Path:
    """A profile in a file, with changed keys; an empty one is left out."""
    lines = [f"{key}: {value}" for key, value in (OWN | changes).items() if value]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_profiles_of_the_kit() -> None:
    assert set(PROFILES) == {"generic", "tofino1", "tofino2"}
    passes = {name: find_chip(name).passes for name in PROFILES}
    assert passes == {"generic": 1, "tofino1": 2, "tofino2": 1}
    assert all(find_chip(name).name == name for name in PROFILES)


def test_generic_is_what_the_program_takes() -> None:
    generic = find_chip("generic")
    assert generic.slots_per_pipeline == ina_program.SLOTS_PER_PIPELINE
    assert generic.pipelines == ina_program.PIPELINES
    assert generic.children_per_slot == MOST_BITS
    assert generic.values_per_pass == VALUES_PER_PACKET == FRAGMENT.values


def test_an_own_profile(tmp_path: Path) -> None:
    chip = find_chip(str(own(tmp_path / "mine.yml")))
    assert (chip.name, chip.passes, chip.recirculation_bps, chip.register_bytes) == ("mine", 2, 200e9, 65536)
    assert chip.ports_per_pipeline == ((100e9, 16), (25e9, 64))


@pytest.mark.parametrize("scale", [1.0, 1e-4])
@pytest.mark.parametrize("name", ["tofino1", "mine.yml"])
def test_fabrics_with_chips_round_trip(name: str, scale: float, tmp_path: Path) -> None:
    own(tmp_path / "mine.yml")
    chip = find_chip(name if name in PROFILES else str(tmp_path / name))
    fabric = with_scale(with_chip(fat_tree(4, capacity_bps=100e9), chip), scale)
    save_fabric(fabric, tmp_path / "fabric.yml")
    assert load_fabric(tmp_path / "fabric.yml") == fabric
    assert ("chips:" in (tmp_path / "fabric.yml").read_text()) == (name == "mine.yml" or scale != 1)


def test_a_fabric_file_names_chips(tmp_path: Path) -> None:
    path = tmp_path / "fabric.yml"
    path.write_text(
        f"""
        name: x
        hosts: [h1]
        switches:
          leaf1: {{chip: tofino1}}
          leaf2: {{chip: mine, pipelines: [[1], [2]]}}
          leaf3: {{chip: {own(tmp_path / "file.yml", name="from-file")}}}
        links:
          - {{a: h1, b: leaf1, capacity: 100G}}
          - {{a: leaf1, b: leaf2, capacity: 100G}}
          - {{a: leaf2, b: leaf3, capacity: 100G}}
        chips:
          mine: {{{", ".join(f"{key}: {value}" for key, value in OWN.items() if key != "name")}}}
        """
    )
    fabric = load_fabric(path)
    chips = {switch.name: switch.chip.name for switch in fabric.switches if switch.chip}
    assert chips == {"leaf1": "tofino1", "leaf2": "mine", "leaf3": "from-file"}
    assert fabric.switch_by_name["leaf1"].pipelines == ((1, 2),)
    assert fabric.switch_by_name["leaf2"].pipelines == ((1,), (2,))


WHOLE = "expected a whole number, at least 1"
PORTS = "expected counts by rate, such as {100G: 16, 25G: 64}: a pipeline has more of the slower ports"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values_per_pass": "-32"}, f" line 2: values_per_pass: -32: {WHOLE}"),
        ({"slots_per_pipeline": "0"}, f" line 3: slots_per_pipeline: 0: {WHOLE}"),
        ({"slots_per_pipeline": "many"}, f" line 3: slots_per_pipeline: 'many': {WHOLE}"),
        ({"children_per_slot": "65"}, " line 4: children_per_slot: 65: expected a whole number from 2 to 64"),
        (
            {"recirculation": "-5G"},
            " line 5: recirculation: '-5G': expected a rate in bit/s greater than 0, such as 20M or 100G",
        ),
        (
            {"recirculation": ""},
            ": chip 'mine': 32 values per pass make 2 passes of a packet's 64 values: give its recirculation rate",
        ),
        ({"pipelines": "9"}, " line 6: pipelines: 9: expected a whole number from 1 to 8"),
        (
            {"ports_per_pipeline": "{100G: 16, 25G: 4}"},
            f" line 7: ports_per_pipeline: {{'100G': 16, '25G': 4}}: {PORTS}",
        ),
        ({"ports_per_pipeline": "{100G: 0}"}, f" line 7: ports_per_pipeline: {{'100G': 0}}: {PORTS}"),
        ({"ports_per_pipeline": "16"}, f" line 7: ports_per_pipeline: 16: {PORTS}"),
        ({"multicast_groups": "70000"}, " line 9: multicast_groups: 70000: expected a whole number from 1 to 65535"),
        ({"name": ""}, " line 1: key 'name' is missing: expected a name in letters"),
        ({"register_kib": "1.5"}, f" line 10: register_kib: 1.5: {WHOLE}"),
    ],
)
def test_mistakes_get_one_line(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    path = own(tmp_path / "mine.yml", **changes)
    with pytest.raises(FabricError) as refused:
        find_chip(str(path))
    assert str(refused.value) == f"{path}{message}"


def test_an_own_profile_has_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"line 1: name: tofino1 is a chip of the kit with other limits"):
        find_chip(str(own(tmp_path / "mine.yml", name="tofino1")))
    (tmp_path / "copy.yml").write_text(PROFILES["tofino1"].read_text())
    assert find_chip(str(tmp_path / "copy.yml")) == find_chip("tofino1")


def test_an_unknown_key_shows_the_right_one(tmp_path: Path) -> None:
    path = own(tmp_path / "mine.yml", recrculation="1G")
    with pytest.raises(FabricError, match="line 11: recrculation: unknown key, did you mean 'recirculation'"):
        find_chip(str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tofno1", "unknown chip 'tofno1': did you mean 'tofino1'.*or a profile of your own in a .yml file"),
        ("none.yml", "none.yml: No such file or directory"),
    ],
)
def test_an_unknown_chip(name: str, message: str) -> None:
    with pytest.raises(FabricError, match=message):
        find_chip(name)


def test_an_unknown_chip_of_a_fabric_file_names_the_switch(tmp_path: Path) -> None:
    path = tmp_path / "fabric.yml"
    path.write_text("name: x\nhosts: []\nswitches: {s1: {chip: tofno1}}\nlinks: []\n")
    with pytest.raises(FabricError, match=r"fabric.yml: switches.s1.chip: unknown chip 'tofno1'"):
        load_fabric(path)


def test_a_chip_keeps_its_figures_at_another_scale() -> None:
    chip = find_chip("tofino1")
    assert replace(chip.at_scale(0.5).at_scale(2), name=chip.name) == chip
