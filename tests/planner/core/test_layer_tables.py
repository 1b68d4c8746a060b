"""The tables of layers: as large as published, refused where they make no sense, and cut into sub-models."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inakit.planner.core.models import TABLES, find_model
from inakit.planner.methods.goat.goat import grouped, partition
from inakit.topo.errors import InputError

PUBLISHED = {
    "alexnet": (61_100_840, 16),
    "bert-base": (109_482_240, 199),
    "densenet121": (7_978_856, 364),
    "densenet169": (14_149_480, 508),
    "densenet201": (20_013_928, 604),
    "lstm": (426_465_919, 9),
    "resnet18": (11_689_512, 62),
    "resnet34": (21_797_672, 110),
    "resnet50": (25_557_032, 161),
    "vgg16": (138_357_544, 32),
    "vgg19": (143_667_240, 38),
}
"""Parameters and tensors as torchvision publishes them, and for BERT as its model does."""
MIB = {"resnet18": 44, "resnet50": 97, "vgg19": 548, "lstm": 1627}
"""The sizes in MiB that the papers print."""


def test_totals_are_the_published_ones() -> None:
    assert {name: (find_model(name).parameters, len(find_model(name).layers)) for name in TABLES} == PUBLISHED


@pytest.mark.parametrize(("name", "mib"), MIB.items())
def test_sizes_are_the_papers(name: str, mib: int) -> None:
    assert abs(find_model(name).gradient_bytes / 2**20 - mib) < 1


def test_bert_is_cut_as_goat_counts() -> None:
    """GOAT says: "The average size of sub-model gradients is 2MB" (Theorem 6)."""
    bert = find_model("bert-base")
    assert round(bert.gradient_bytes / 1e6 / len(bert.layers)) == 2


@pytest.mark.parametrize("path", TABLES.values(), ids=lambda path: path.stem)
def test_every_table_has_its_source(path: Path) -> None:
    assert path.read_text().startswith("# ")


MISTAKES = {
    "above the layers": "",
    "it has no layer": "name,parameters\n",
    "layer 'a' occurs twice": "name,parameters\na,1\na,2\n",
    "line 3: 'a,-1'": "# made up\nname,parameters\na,-1\n",
    "line 2: 'a,0'": "name,parameters\na,0\n",
    "line 2: 'a,1,2'": "name,parameters\na,1,2\n",
    "line 2: ',5'": "name,parameters\n,5\n",
}


@pytest.mark.parametrize(("message", "text"), MISTAKES.items())
def test_tables_that_make_no_sense(message: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        find_model(str(path))


def test_models_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown model 'resnet51': did you mean 'resnet50'"):
        find_model("resnet51")
    with pytest.raises(InputError, match=r"none\.csv: No such file"):
        find_model(str(tmp_path / "none.csv"))


def test_names_of_layers_may_be_quoted_and_have_commas(tmp_path: Path) -> None:
    path = tmp_path / "quoted.csv"
    path.write_bytes(b'\xef\xbb\xbf# of a spreadsheet\r\n"name", "parameters"\r\n"conv, 3x3",30\r\n"fc ""2""",10\r\n')
    assert [layer.name for layer in find_model(str(path)).layers] == ["conv, 3x3", 'fc "2"']
    path.with_name("open.csv").write_text('name,parameters\n"first,30\n')
    with pytest.raises(InputError, match=r"open\.csv line 2: not valid CSV"):
        find_model(str(path.with_name("open.csv")))


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("name,parameters\nfirst,30\nsecond,10\nthird,60\n")
    assert partition(str(path), 100, 2) == [40, 60]
    assert partition(str(path), 100, 3) == [40, 60]
    assert partition(str(path), 1, 3) == [1]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9), st.integers(1, 9))
def test_the_largest_sub_model_is_as_small_as_can_be(sizes: list[int], most: int) -> None:
    """The partition is compared with every way of cutting."""
    found = grouped(sizes, most)
    assert sum(found) == sum(sizes)
    assert len(found) <= most

    def best(rest: list[int], groups: int) -> int:
        if groups == 1 or len(rest) == 1:
            return sum(rest)
        return min(max(sum(rest[:end]), best(rest[end:], groups - 1)) for end in range(1, len(rest)))

    assert max(found) == min(best(sizes, groups) for groups in range(1, min(most, len(sizes)) + 1))


@pytest.mark.parametrize("name", ["", *TABLES])
@pytest.mark.parametrize("fragments", [1, 7, 400])
def test_every_fragment_is_in_one_sub_model(name: str, fragments: int) -> None:
    parts = partition(name, fragments, 16)
    assert sum(parts) == fragments
    assert min(parts) >= 1
    assert len(parts) <= 16
