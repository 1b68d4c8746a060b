"""What is read of what students hand in: the lab's files, wherever they are packed, and nothing else."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.registry import COURSE, task_folder
from inakit.topo.errors import InputError

PLANNER = "def plan(fabric, jobs):\n    return []\n"


def latin_notes(folder: Path) -> None:
    (folder / "notes.md").write_bytes("Länge".encode("latin-1"))


def many_tables(folder: Path) -> None:
    for number in range(30):
        (folder / f"run{number}.csv").write_text("1,2\n")


def link(folder: Path) -> None:
    (folder / "data.csv").symlink_to("/etc/passwd")


def byte_order_mark(folder: Path) -> None:
    (folder / "planner.py").write_text("\ufeff" + PLANNER)


def large_file(folder: Path) -> None:
    (folder / "video.py").write_bytes(bytes(5 << 20))


def other_zip(folder: Path) -> None:
    (folder / "old.zip").write_bytes(b"no zip")


def in_a_folder(folder: Path) -> None:
    (folder / "6-plan" / "tests").mkdir(parents=True)
    (folder / "6-plan" / "tests" / "planner.py").write_text("wrong")
    (folder / "planner.py").rename(folder / "6-plan" / "planner.py")


def zipped_folder(folder: Path) -> None:
    with zipfile.ZipFile(folder / "work.zip", "w") as archive:
        archive.write(folder / "planner.py", "6-plan/planner.py")
        archive.writestr("6-plan/tests/planner.py", "wrong")
        archive.writestr("__MACOSX/6-plan/._planner.py", "\0")
    (folder / "planner.py").unlink()


def zipped_by_windows(folder: Path) -> None:
    with zipfile.ZipFile(folder / "work.zip", "w") as archive:
        for name, text in (("6-plan\\planner.py", PLANNER), ("6-plan\\tests\\planner.py", "wrong")):
            archive.writestr(name, text)
    (folder / "planner.py").unlink()


@pytest.mark.parametrize(
    "add",
    [
        *(latin_notes, many_tables, link, byte_order_mark, large_file, other_zip),
        *(in_a_folder, zipped_folder, zipped_by_windows),
    ],
)
def test_other_files_and_packing_cost_nothing(add: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(PLANNER)
    add(tmp_path)
    assert read_submission(tmp_path, expected=("planner.py",)).texts == {"planner.py": PLANNER}


@pytest.mark.parametrize("name", ["ann.py", "planner.py", "ann.zip"])
def test_a_student_can_hand_in_one_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("planner.py", PLANNER)
    else:
        path.write_text(PLANNER)
    assert read_submission(path, expected=("planner.py",)).texts == {"planner.py": PLANNER}


def test_programs_come_with_what_they_include_and_compiled(tmp_path: Path) -> None:
    for name in ("loss.p4", "headers.p4", "loss.json", "worker.py", "other.json", "try.py"):
        (tmp_path / name).write_text("x")
    read = read_submission(tmp_path, expected=("loss.p4", "worker.py"))
    assert sorted(read.texts) == ["headers.p4", "loss.json", "loss.p4", "worker.py"]


@pytest.mark.parametrize("content", [b"no zip", b"PK\x05\x06" + bytes(18)])
def test_a_zip_that_cannot_be_used_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ann.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be unpacked|the submission is empty"):
        read_submission(tmp_path / "ann.zip", expected=("planner.py",))


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ann.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("planner.py", bytes(5 << 20))
    with pytest.raises(InputError, match="more than"):
        read_submission(tmp_path / "ann.zip", expected=("planner.py",))


def test_damaged_zips_are_told_whatever_is_damaged(tmp_path: Path) -> None:
    random, whole = Random(41), []
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "ann.zip", "w", method) as archive:
            archive.writestr("planner.py", PLANNER)
        whole.append((tmp_path / "ann.zip").read_bytes())
    told = 0
    for _ in range(600):
        content = bytearray(random.choice(whole))
        content[random.randrange(len(content))] = random.choice((0, 255, random.randrange(256)))
        (tmp_path / "ann.zip").write_bytes(content)
        try:
            assert read_submission(tmp_path / "ann.zip", expected=["planner.py"]).text("planner.py") == PLANNER
        except InputError:
            told += 1
    assert told > 100


def test_folders_in_folders_without_end_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    inmost = folder.joinpath(*["d"] * 100)
    inmost.mkdir(parents=True)
    (inmost / "planner.py").write_text(PLANNER)
    with pytest.raises(InputError, match="more than 20 folders"):
        read_submission(folder, expected=["planner.py"])


def test_many_large_files_are_not_all_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ann.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            archive.writestr(f"{number}.p4", b" " * (4 << 20))
    with pytest.raises(InputError, match="all files have more than 16777216 bytes"):
        read_submission(tmp_path / "ann.zip", expected=["sum.p4"])


def test_a_lab_named_by_its_name_alone_finds_its_task(tmp_path: Path) -> None:
    assert task_folder(tmp_path / "6-plan") == COURSE / "6-plan"
    assert task_folder(COURSE / "6-plan") == COURSE / "6-plan"
