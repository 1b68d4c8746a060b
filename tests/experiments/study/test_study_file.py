"""Study files: what they combine, and what they are told of mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inakit.experiments.study.setting import Block, combined, starter_text
from inakit.experiments.study.study import trial_of
from inakit.experiments.study.study_file import load_study, study_from
from inakit.topo.errors import InputError


def study_file(folder: Path, text: str) -> Path:
    path = folder / "rates.yml"
    path.write_text("version: 1\n" + text)
    return path


def test_the_lists_of_an_item_are_combined_and_items_meet_each_other(tmp_path: Path) -> None:
    text = (
        "stays: {world: virtual}\n"
        "varies:\n"
        "  - {fabric: [fattree, leafspine], workers: [4, 8], combine: side by side}\n"
        "  - {planner: [aro, atp], seed: 0..2}\n"
    )
    settings = load_study(study_file(tmp_path, text)).settings
    assert len(settings) == 2 * 2 * 3
    assert {(s.fabric, s.workers) for s in settings} == {("fattree", 4), ("leafspine", 8)}
    assert {s.seed for s in settings} == {0, 1, 2}
    assert {s.world for s in settings} == {"virtual"}


def test_a_sample_has_so_many_different_combinations_and_is_the_same_again() -> None:
    block = Block({"workers": range(100), "seed": range(100)}, "a sample of 40", draw=7)
    drawn = [tuple(each.items()) for each in block.combinations()]
    assert len(set(drawn)) == 40
    assert drawn == [tuple(each.items()) for each in block.combinations()]
    assert drawn != [tuple(each.items()) for each in Block(block.values, block.combine, draw=8).combinations()]
    assert len(Block({"seed": range(3)}, "sample of 40").combinations()) == 3


def test_a_combination_that_is_given_twice_is_there_once() -> None:
    assert combined([Block({"seed": [1, 2, 1]})]) == [{"seed": 1}, {"seed": 2}]


@pytest.mark.parametrize("version", [True, 1.0, "1", 2])
def test_only_the_number_of_a_version_is_one(version: object) -> None:
    with pytest.raises(InputError, match="is not a version that this kit reads: write `version: 1`"):
        study_from({"version": version, "varies": [{"seed": [1]}]})


def test_a_range_has_both_ends() -> None:
    study = study_from({"version": 1, "varies": [{"workers": "10..100 by 30"}]})
    assert [setting.workers for setting in study.settings] == [10, 40, 70, 100]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("varies:\n  - {}\n  - seed: 0..2\n    planers: [aro]\n", "line 5: varies.1..planers: unknown key.*'planner'"),
        ("stays: {slot_s: 1}\nvaries:\n  - seed: [1]\n", "line 2: stays.slot_s: slot_s is for schedules: give"),
        ("stays: {center: CENTER}\nvaries:\n  - seed: [1]\n", "no scheduler: list some under `planner`: "),
        (
            "stays: {center: CENTER, ina: 0.3}\nvaries:\n  - planner: [INC-TW]\n",
            "line 2: stays.ina: schedules of a `center` have no ina: choose from center, trace",
        ),
        (
            "stays: {center: CENTER}\nvaries:\n  - planner: [INC-TX]\n",
            "line 4: varies.0..planner.0.: unknown scheduler 'INC-TX': did you mean 'INC-TW'",
        ),
        ("stays: {center: center.yml}\nvaries:\n  - planner: [INC-TW]\n", "line 2: stays.center: there is no file"),
        ("varies:\n  - planner: [aro, atpp]\n", "line 3: .*unknown planner 'atpp': did you mean 'atp'"),
        ("varies:\n  - seed: []\n", "line 3: varies.0..seed: .*expected a list, or a range"),
        ("varies:\n  - seed: [one]\n", "line 3: varies.0..seed: 'one': expected a list"),
        ("varies:\n  - seed: [1]\n  - seed: [2]\n", "line 4: varies.1..seed: also varies in an item above"),
        ("varies:\n  - {}\n", "line 3: varies.0.: nothing varies here"),
        ("stays: {world: virtaul}\nvaries:\n  - seed: [1]\n", "line 2: stays.world: .*did you mean 'virtual'"),
        ("stays: {fabric: fatree}\nvaries:\n  - seed: [1]\n", "stays.fabric: .*did you mean 'fattree'"),
        ("stays: {faults: no.yml}\nvaries:\n  - seed: [1]\n", "stays.faults: there is no file 'no.yml'"),
        ("varies:\n  - {seed: [1, 2], workers: [3], combine: side by side}\n", "seed 2"),
        ("varies:\n  - {seed: [1, 2], combine: some}\n", "expected all, side by side, or a sample"),
        ("varies:\n  - seed: [1]\nshows: [sending_rate]\n", "line 4: .*did you mean 'sending_rate_bps'"),
        ("varies:\n  - seed: [1]\ngroups: [wokers]\n", "line 4: .*did you mean 'workers'"),
        ("varies:\n  - seed: [1]\nfigures:\n  - {x: workers, y: seed}\n", "line 5: figures.0..y: unknown figure"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_study(study_file(tmp_path, text))


def test_the_starter_is_a_study_that_explains_every_key(tmp_path: Path) -> None:
    (tmp_path / "study.yml").write_text(starter_text())
    study = load_study(tmp_path / "study.yml")
    assert len(study.settings) == 2 * 3 * 3 * 5
    assert study.groups == ("fabric", "workers", "planner")
    for key in type(study.stays).model_fields:
        assert f"\n#   {key} " in starter_text()


def key(**setting: Any) -> str:
    study = study_from({"version": 1, "stays": setting, "varies": [{"seed": [1]}]})
    return trial_of(study.settings[0]).key


def test_the_key_of_a_run_follows_its_setting_and_the_files_it_names(tmp_path: Path) -> None:
    faults = tmp_path / "faults.yml"
    faults.write_text("version: 1\n")
    before = key(faults=str(faults))
    assert key(faults=str(faults)) == before
    assert len({before, key(), key(planner="atp"), key(world="virtual")}) == 4
    faults.write_text("version: 1\nseed: 2\n")
    assert key(faults=str(faults)) != before
