"""Run the code cells of a notebook in the folder one is in, and print as JSON what each of them shows.

    python notebook_cells.py NOTEBOOK

IPython runs the cells, as it does in Jupyter, but in this process: no kernel, and no sockets to it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

matplotlib.use("agg")
shell: Any = InteractiveShell.instance()
shown = []
for cell in json.loads(Path(sys.argv[1]).read_text())["cells"]:
    if cell["cell_type"] == "code":
        with capture_output() as captured:
            ran = shell.run_cell("".join(cell["source"]))
        ran.raise_error()
        printed = {"text/plain": captured.stdout}
        data = printed if ran.result is None else shell.display_formatter.format(ran.result)[0]
        shown.append({"text": data["text/plain"], "kinds": sorted(data)})
print(json.dumps(shown))
