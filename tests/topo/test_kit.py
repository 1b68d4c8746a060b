"""Which inakit runs: the commit of a checkout and of what is built from one, and whether files were changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command import inakit

from inakit import __version__
from inakit.topo import kit
from inakit.topo.kit import BUILT, Kit, Source, source_of, this_kit

HASH = "0123456789abcdef0123456789abcdef01234567"
OTHER_USER = 20000


def git(folder: Path, *arguments: str) -> str:
    """What git prints in a folder, by settings of nobody's."""
    author = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"} | author
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one file and one commit."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    folder = tmp_path / "kit"
    folder.mkdir()
    (folder / "file.py").write_text("one\n")
    git(folder, "init", "--quiet")
    git(folder, "add", "file.py")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def test_a_checkout_is_changed_when_a_tracked_file_is(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    (checkout / "results").mkdir()
    (checkout / "results" / "run.json").write_text("{}")
    assert source_of(checkout) == Source(commit, False)
    (checkout / "file.py").write_text("two\n")
    assert source_of(checkout) == Source(commit, True)
    git(checkout, "add", "file.py")
    assert source_of(checkout) == Source(commit, True)


def test_the_commit_is_that_of_packed_branches_detached_heads_and_further_working_trees(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "worktree", "add", "--quiet", "../other")
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git" / "refs" / "heads" / "main").exists()
    assert source_of(checkout) == source_of(checkout.parent / "other") == Source(commit, False)
    git(checkout, "checkout", "--quiet", "--detach")
    assert source_of(checkout) == Source(commit, False)


def test_git_that_is_told_of_another_repository_does_not_mix_them_up(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of git's, which has these variables."""
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert source_of(checkout).changed is False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_root_knows_the_commit_of_another_users_checkout_and_leaves_its_files_theirs(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    (checkout / "file.py").write_text("two\n")
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, OTHER_USER, OTHER_USER)
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "status")  # git refuses: the folder is somebody else's
    assert source_of(checkout) == Source(commit, True)
    assert {path.stat().st_uid for path in checkout.rglob("*")} == {OTHER_USER}


def with_git(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `git` be a program with this text, or none where it is empty."""
    folder.mkdir()
    if text:
        (folder / "git").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{':/usr/bin:/bin' if text else ''}")


@pytest.mark.parametrize("program", ["", "exit 128", "exec sleep 30"], ids=["none", "refuses", "hangs"])
def test_without_git_the_commit_is_known_and_changes_are_not(
    program: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setattr(kit, "GIT_S", 0.2)
    with_git(tmp_path / "bin", program, monkeypatch)
    assert source_of(checkout) == Source(commit, None)


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none\n", "ref: refs/heads/packed\n", "no hash\n", "\x00\xff"])
def test_a_repository_without_a_commit_or_that_is_damaged_has_none(head: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head, encoding="latin-1")
    (tmp_path / ".git" / "packed-refs").write_text("# pack-refs\nx refs/heads/packed\n")
    assert source_of(tmp_path) == Source()


def test_what_is_built_names_its_commit_and_an_archive_has_none(tmp_path: Path) -> None:
    (tmp_path / "inakit").mkdir()
    assert source_of(tmp_path) == Source()
    built = tmp_path / "inakit" / BUILT
    built.write_text(json.dumps({"commit": HASH, "changed": True}))
    assert source_of(tmp_path) == Source(HASH, True)
    built.write_text('{"other": 1}')
    assert source_of(tmp_path) == Source()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Source(), "1.2"),
        (Source(HASH, False), "1.2 (commit 01234567)"),
        (Source(HASH, True), "1.2 (commit 01234567, changed files)"),
        (Source(HASH, None), "1.2 (commit 01234567, without git to tell changes)"),
    ],
)
def test_a_kit_in_words(found: Source, words: str) -> None:
    assert str(Kit("1.2", found)) == words


def test_version_is_printed_by_the_command_and_by_the_module(tmp_path: Path) -> None:
    as_module = "import runpy; runpy.run_module('inakit', run_name='__main__')"
    for answer in (inakit("--version", at=tmp_path), inakit("--version", at=tmp_path, entry=as_module)):
        assert (answer.code, answer.output, answer.error) == (0, f"inakit {this_kit()}\n", "")
    assert this_kit().version == __version__
