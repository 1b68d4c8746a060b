"""The compiled program of a submission, from its P4 or from its JSON."""

from __future__ import annotations

from inakit.experiments.labs.compiler.p4c import compile_p4, find_compiler, needed_compiler
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.topo.errors import InputError, UnsupportedError

REFUSED = (InputError, UnsupportedError, EndedError)
"""What is raised for a program that does not compile, or that the switch does not load."""


def refusal(error: Exception) -> str:
    """One of `REFUSED` in words."""
    return f"the program does not load: {error}" if isinstance(error, EndedError) else str(error)


def compiled_program(submission: Submission, stem: str) -> tuple[str, str]:
    """The JSON of the program `stem`, and a note on where it comes from, empty for what p4c has made now.

    P4 is compiled where p4c is; without p4c a JSON beside it is taken. Raises `InputError` or `MachineError`.
    """
    source, made = f"{stem}.p4", f"{stem}.json"
    if source in submission.texts:
        compiler = find_compiler()
        if compiler is None and made in submission.texts:
            return submission.texts[made], f"p4c is not installed here: {made} was graded, not {source}"
        return compile_p4(submission.sources, source, compiler or needed_compiler()), ""
    if made in submission.texts:
        return submission.texts[made], f"{made} was graded, without its P4"
    there = ", ".join(sorted(submission.texts))
    raise InputError(f"the submission has no '{source}' and no '{made}', but {there}: give the program that name")
