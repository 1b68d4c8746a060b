"""The size of the project outside its tests: lines of Python and modules, by folder and together.

    python tests/size.py

Small sizes follow from good structure. The command fails above the budget, so that growth is a decision.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES, MOST_MODULES = 101_796, 499
"""The budget; lower it when the project has become smaller."""


def main() -> int:
    """Print the sizes; return 1 above the budget."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for name in listed.splitlines():
        if not name.startswith("tests/") and (ROOT / name).is_file():
            folder = name.partition("/")[0] if "/" in name else "."
            lines[folder] += len((ROOT / name).read_text().splitlines())
            modules[folder] += 1
    for folder in (*sorted(lines), "together"):
        found = (lines.total(), modules.total()) if folder == "together" else (lines[folder], modules[folder])
        print(f"{folder:12} {found[0]:7,} lines in {found[1]:5,} modules")
    return int(lines.total() > MOST_LINES or modules.total() > MOST_MODULES)


if __name__ == "__main__":
    sys.exit(main())
