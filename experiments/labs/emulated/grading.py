"""`inakit grade --emulate`: the submission once more in an emulated network, as an item without points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from inakit.experiments.labs.emulated.runs import Emulation, run_lossy, run_sums, run_tree
from inakit.experiments.labs.grading.finding import Finding, WrongError
from inakit.experiments.labs.grading.grade import Request, random_of
from inakit.experiments.labs.grading.item import Grade, Graded, Item
from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.switch.targets import TARGETS
from inakit.topo.errors import InakitError, InputError, MachineError
from inakit.topo.live.needs import check_machine

RUNS: dict[str, Callable[[Emulation], str]] = {
    "2-sum": partial(run_sums, stem="sum", slots=16, versions=False),
    "3-pool": partial(run_sums, stem="pool", slots=64, versions=True),
    "4-loss": run_lossy,
    "5-tree": run_tree,
}


def check_emulation(lab: str, target: str) -> None:
    """Raise `InputError` for a lab without emulation, `MachineError` where this machine cannot emulate."""
    if lab not in RUNS:
        raise InputError(f"--emulate: lab {lab} has no run in Mininet; these have: {', '.join(RUNS)}")
    if target not in TARGETS:
        raise InputError(f"--emulate {target}: expected {' or '.join(TARGETS)}")
    reason = TARGETS[target].missing()
    if reason is not None:
        raise MachineError(f"--emulate {target} cannot run here: {reason}")
    check_machine()


def with_emulation(request: Request, graded: Grade, target: str) -> Grade:
    """A grade with one more item, of no points: the run in Mininet, whose switches are of a target."""
    title = f"in Mininet, on {target}"
    finding: Finding | None = None
    try:
        random = random_of(request.seed, request.lab.name, "emulated")
        done = RUNS[request.lab.name](
            Emulation(read_submission(request.submission, expected=request.lab.files), random, target)
        )
        title = f"{title}: {done}"
    except MachineError:
        raise
    except WrongError as wrong:
        finding = Finding(wrong.cause, expected=tuple(map(str, wrong.expected)))
    except (InakitError, EndedError) as error:
        finding = Finding(str(error))
    item = Item("emulated", title, 0, "", lambda _: None)
    note = "switches in Mininet are not in a sandbox: emulate only programs that you trust"
    return Grade(
        graded.lab, graded.seed, (*graded.graded, Graded(item, 0, finding)), graded.problem, (*graded.notes, note)
    )
