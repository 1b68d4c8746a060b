"""The strict reader: byte order marks, ends of lines, JSON in any file, and keys given twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, read_file

KIND = FileKind("list of jobs", max_bytes=1 << 20)


@pytest.mark.parametrize("name", ["jobs.json", "jobs.yml"])
@pytest.mark.parametrize(
    "text", ['\ufeff{"a": [1]}', '{\r\n\t"a":\t[1]\r\n}\r\n', ' \n{"a": [1]}'], ids=["mark", "tabs", "spaces"]
)
def test_json_is_read_as_editors_write_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert read_file(tmp_path / name, KIND).document == {"a": [1]}


def test_yaml_with_a_mark_and_windows_ends_of_lines_is_read(tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: [2]\r\n")
    assert read_file(tmp_path / "jobs.yml", KIND).document == {"a": 1, "b": [2]}


@pytest.mark.parametrize(
    ("name", "text"),
    [("jobs.json", '{"a": {"b": 1, "b": 1}}'), ("jobs.yml", '{"b": 1, "b": 1}'), ("jobs.yml", '{\t"b": 1, "b": 1}')],
)
def test_a_key_given_twice_is_refused_in_json_as_in_yaml(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="key 'b' is given twice"):
        read_file(tmp_path / name, KIND)


def test_text_in_another_encoding_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_bytes("a: 1".encode("utf-16"))
    with pytest.raises(InputError, match="not text in UTF-8: save it in this encoding"):
        read_file(tmp_path / "jobs.yml", KIND)
