"""What a chip allows, and how a fabric's ports fill its pipelines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Chip, Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_chip, with_chip_as_wired, with_pipelines, with_scale

CHIP = Chip(
    *("mine", 32, 100, 8, 2, 1000, 100),
    recirculation_bps=100e9,
    ports_per_pipeline=((100e9, 4), (25e9, 16)),
)


def on_a_leaf_spine(chip: Chip, hosts: int = 3, capacity_bps: float = 100e9) -> Fabric:
    return with_chip(leaf_spine(1, 1, hosts, capacity_bps=capacity_bps), chip)


@pytest.mark.parametrize(
    ("values", "passes", "summing_bps"), [(64, 1, inf), (63, 2, 100e9), (32, 2, 100e9), (16, 4, 100e9 / 3)]
)
def test_a_packet_is_recirculated_for_every_pass_after_the_first(values: int, passes: int, summing_bps: float) -> None:
    chip = replace(CHIP, values_per_pass=values)
    assert (chip.passes, chip.summing_bps) == (passes, summing_bps)


def test_several_passes_need_a_recirculation_rate() -> None:
    with pytest.raises(FabricError, match="32 values per pass make 2 passes of a packet's 64 values: give its"):
        replace(CHIP, recirculation_bps=None)


@pytest.mark.parametrize(
    ("rates_bps", "pipelines"),
    [
        ([100e9] * 5, ((1, 2, 3, 4), (5,))),
        ([25e9] * 17, (tuple(range(1, 17)), (17,))),
        ([100e9, 100e9, 100e9, 20e6, 20e6, 1e9, 1e9, 1e9], ((1, 2, 3, 4, 5, 6, 7), (8,))),
        ([], ((),)),
    ],
)
def test_ports_fill_pipelines_one_after_the_other(
    rates_bps: list[float], pipelines: tuple[tuple[int, ...], ...]
) -> None:
    assert CHIP.fill(dict(enumerate(rates_bps, start=1))) == pipelines


def test_a_switch_has_the_fewer_slots_of_its_own_and_its_chips() -> None:
    fabric = on_a_leaf_spine(CHIP)
    assert fabric.switches[0].slots_per_pipeline == 100
    assert with_aggregators(fabric, slots=7).switches[0].slots_per_pipeline == 7
    assert with_chip_as_wired(fabric, None).switches[0].slots_per_pipeline == 512


def test_a_scaled_fabric_has_scaled_chips() -> None:
    scaled = with_scale(on_a_leaf_spine(CHIP), 1e-3)
    assert scaled.switches[0].chip == replace(
        CHIP, recirculation_bps=100e6, ports_per_pipeline=((100e6, 4), (25e6, 16))
    )


def two_chips_of_one_name() -> Fabric:
    fabric = on_a_leaf_spine(CHIP)
    other = replace(fabric.switches[0], chip=replace(CHIP, children_per_slot=4))
    return replace(fabric, switches=(other, *fabric.switches[1:]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: on_a_leaf_spine(CHIP, hosts=8),
            "switch 'leaf1', chip 'mine': its 9 ports are in 3 pipelines; the chip has 2: join fewer or slower links "
            "to the switch, or choose another chip",
        ),
        (
            lambda: with_pipelines(on_a_leaf_spine(CHIP, hosts=5), 1),
            "switch 'leaf1', chip 'mine': the 6 ports of pipeline 0 are 1.5 times those that the chip has; "
            "spread them over more pipelines, or join fewer links to the switch",
        ),
        (
            lambda: on_a_leaf_spine(CHIP, capacity_bps=400e9),
            "switch 'leaf1', chip 'mine': port 1 has 400 Gbit/s; the chip's fastest have 100: choose slower links, or "
            "another chip",
        ),
        (two_chips_of_one_name, "two different chips are called 'mine': every chip needs its own name"),
    ],
)
def test_a_switch_fits_its_chip(build: Callable[[], object], message: str) -> None:
    with pytest.raises(FabricError) as refused:
        build()
    assert str(refused.value) == message


def test_a_chip_without_ports_takes_any() -> None:
    fabric = with_chip(fat_tree(4, capacity_bps=1e15), replace(CHIP, ports_per_pipeline=()))
    assert {switch.pipelines for switch in fabric.switches} == {((1, 2, 3, 4),)}
