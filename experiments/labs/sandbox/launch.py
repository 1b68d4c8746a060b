"""The entry point of a sandboxed process, and the frames of its questions and answers: 4 bytes of length, and JSON.

The process applies its limits to itself, reports which of them hold, and answers questions through the calls of a
module of the kit, or executes a command. Its only argument is a JSON document. Its output goes to stderr; answers use a
separate descriptor.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
from typing import Any

from inakit.experiments.labs.sandbox.confinement import Limits, confine

LENGTH = struct.Struct("!I")
MOST_BYTES = 4 << 20


def packed(message: Any) -> bytes:
    """The frame of a message."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return LENGTH.pack(len(data)) + data


def main() -> None:
    """Confine this process, and serve the runner or execute the command of its argument."""
    document = json.loads(sys.argv[1])
    answers = os.dup(1)
    os.dup2(2, 1)
    runner = importlib.import_module(document["module"]) if "module" in document else None
    send(answers, confine(Limits(**document["limits"])))
    if runner is None:
        os.close(answers)
        os.execv(document["command"][0], document["command"])
    answer_all(0, answers, runner.runner(*document["arguments"]))


def answer_all(questions: int, answers: int, runner: Any) -> None:
    """Answer questions until the other end is closed.

    A question is the name of one of the runner's `calls` and its arguments. An answer is `["ok", value]`, or the kind
    of an error and its message, which the runner's `explain` gives.
    """
    while (head := exactly(questions, LENGTH.size)) is not None:
        question = exactly(questions, *LENGTH.unpack(head))
        if question is None:
            return
        name, *arguments = json.loads(question)
        try:
            answer = ["ok", runner.calls[name](*arguments)]
        except Exception as error:
            answer = runner.explain(error)
        send(answers, answer)


def send(descriptor: int, message: Any) -> None:
    """Write a frame."""
    left = memoryview(packed(message))
    while left:
        left = left[os.write(descriptor, left) :]


def exactly(descriptor: int, size: int) -> bytes | None:
    """Read this many bytes; return None if the other end closes before."""
    data = b""
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            return None
        data += part
    return data
