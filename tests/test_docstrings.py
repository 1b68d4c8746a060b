"""The count of docstrings: what is public, and that a folder with too few makes the command fail."""

from __future__ import annotations

from pathlib import Path

import docstrings
import pytest

MODULE = '''
def _private(): pass

def plain():
    """Documented."""
    def inner(): pass

class Shape:
    """Documented."""
    def __init__(self): pass
    def area(self): pass

class _Hidden:
    def method(self): pass
'''


def test_what_is_public_is_counted(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(MODULE)
    found = docstrings.documented(tmp_path)
    assert found.count == 3
    assert [line.split()[-1] for line in found.missing] == ["area"]
    assert found.share == pytest.approx(2 / 3)


def test_a_folder_with_too_few_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in docstrings.FOLDERS:
        (tmp_path / name).mkdir()
    (tmp_path / "topo" / "shapes.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert docstrings.main([]) == 1
    assert "less than 95% in topo" in capsys.readouterr().out
    (tmp_path / "topo" / "shapes.py").write_text(MODULE.replace("def area(self): pass", 'def area(self): """So."""'))
    assert docstrings.main([]) == 0
