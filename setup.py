"""The steps of a build that `pyproject.toml` cannot express: a build records its commit, and an sdist keeps links."""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
SOURCE: dict[str, Any] = runpy.run_path(str(ROOT / "topo" / "kit.py"))
LINKS = [path for folder in ("inakit", "src") for path in (ROOT / folder).iterdir() if path.is_symlink()]
"""The folders of the package are at the top of the repository; the package has links to them."""

if not (ROOT / "src" / "inakit" / "topo").is_dir():
    raise SystemExit("the links in inakit/ and src/ are missing: `make setup` tells how to restore them")


def write_source(folder: Path) -> None:
    """Write the commit of the build into the package in a folder, if the commit is known."""
    found = SOURCE["source_of"](ROOT)
    if found.commit is not None:
        (folder / "inakit" / SOURCE["BUILT"]).write_text(json.dumps(found._asdict()) + "\n")


class BuildNew(build_py):
    """Builds the package without files of earlier builds. An editable package uses the checkout."""

    def run(self) -> None:
        """Copy modules and data into the build folder."""
        if self.editable_mode:
            super().run()
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        write_source(Path(self.build_lib))


class KeepLinks(sdist):
    """Packs every file once, at the top, and the links to its folder as links."""

    def make_release_tree(self, base_dir: str, files: Sequence[str]) -> None:
        """Create the folder to pack."""
        once = [file for file in files if not any((ROOT / file).is_relative_to(link) for link in LINKS)]
        super().make_release_tree(base_dir, once)
        for link in LINKS:
            copy = Path(base_dir, link.relative_to(ROOT))
            copy.parent.mkdir(exist_ok=True)
            copy.symlink_to(link.readlink())
        write_source(Path(base_dir))


setup(cmdclass={"build_py": BuildNew, "sdist": KeepLinks})
