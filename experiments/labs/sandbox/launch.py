"""The first code of a sandboxed process: it takes its limits on itself, says which hold, and becomes what it is for.

It is started with a JSON document as its only argument: the limits, and either the name of a module of the kit whose
`main` it calls, or a command. What it prints goes where errors go; answers leave by a descriptor of their own.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from inakit.experiments.labs.sandbox.confinement import Limits, give_up_files, limits_from, refuse_calls, set_limits
from inakit.experiments.labs.sandbox.frames import send


def main() -> None:
    """Confine this process, and run what its argument says."""
    document = json.loads(sys.argv[1])
    answers = os.dup(1)
    os.dup2(2, 1)
    limits = limits_from(document["limits"])
    runner = importlib.import_module(document["module"]) if "module" in document else None
    send(answers, confine(limits))
    if runner is not None:
        runner.main(0, answers)
        return
    os.close(answers)
    command: list[str] = document["command"]
    os.execv(command[0], command)


def confine(limits: Limits) -> dict[str, Any]:
    """Take the limits on this process; what holds them, by name, empty where nothing does."""
    set_limits(limits)
    files = give_up_files(limits.readable, limits.writable)
    filtered = refuse_calls(programs=limits.programs)
    by_filter = "seccomp" if filtered else ""
    return {
        "time and memory": "resource limits",
        "files": f"Landlock {files}" if files else "",
        "network": by_filter,
        "processes and signals": by_filter,
    }
