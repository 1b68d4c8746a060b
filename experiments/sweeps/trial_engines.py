"""The engines of trials, by the name that `--on` gives: processes of this machine, a Dask cluster, Slurm.

An engine yields results as trials end, in any order. A worker that dies costs no result: its unfinished trials are
run again, those that it had begun each alone. A trial whose worker then dies again has failed.
"""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import joblib

from inakit.experiments.sweeps.trial import Finished, Kept, Trial, carry_out, now
from inakit.topo.errors import InputError, RunError, lacking, unknown_name

DIED = "its worker process died twice while it ran this: it crashed, or was killed, perhaps for lack of memory"
RENEWED = "A worker stopped while some jobs were given to the executor"
"""joblib's warning when it replaces a process that has grown by 300 MB, as one does after a larger fabric."""
IDLE_S = 20
"""A process without a trial for this many seconds ends, as it must if the process that started it was killed."""
SLURM_JOBS = 64
"""The number of jobs of an array unless `--processes` gives another; each runs its share of the trials."""


class Engine(Protocol):
    """Runs trials on about `width` processors."""

    @property
    def width(self) -> int:
        """The number of trials that run at once."""
        ...

    @property
    def deaths(self) -> tuple[type[Exception], ...]:
        """The exceptions that report the death of a worker."""
        ...

    def carry_out(self, trials: Sequence[Trial], kept: Kept) -> Iterator[Finished]:
        """Yield the results of the trials, in any order. Raises one of `deaths`."""
        ...


def calls(trials: Iterable[Trial], kept: Kept) -> Iterator[Any]:
    """The trials as joblib takes them."""
    return (joblib.delayed(carry_out)(trial, kept) for trial in trials)


@dataclass(frozen=True)
class Loky:
    """Processes of this machine. Trials that must be alone run one after another in this process."""

    width: int
    deaths = (BrokenExecutor,)

    def carry_out(self, trials: Sequence[Trial], kept: Kept) -> Iterator[Finished]:
        """Yield the results of the trials; those that must be alone come last."""
        beside = [trial for trial in trials if not trial.alone]
        if beside:
            parallel = joblib.Parallel(
                self.width, backend="loky", return_as="generator_unordered", max_nbytes=None, idle_worker_timeout=IDLE_S
            )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", RENEWED, UserWarning)
                yield from parallel(calls(beside, kept))
        yield from (carry_out(trial, kept) for trial in trials if trial.alone)


@dataclass(frozen=True)
class Dask:
    """The workers of a running Dask cluster."""

    client: Any

    @property
    def width(self) -> int:
        return max(1, sum(map(int, self.client.nthreads().values())))

    @property
    def deaths(self) -> tuple[type[Exception], ...]:
        """Dask's exception for a trial under which several workers died."""
        from distributed.scheduler import KilledWorker  # noqa: PLC0415, a package that few need

        return (KilledWorker,)

    def carry_out(self, trials: Sequence[Trial], kept: Kept) -> Iterator[Finished]:
        """Yield the results of the trials; Dask gives those of a dead worker to another."""
        with joblib.parallel_config("dask", client=self.client):
            yield from joblib.Parallel(return_as="generator_unordered")(calls(trials, kept))


@dataclass(frozen=True)
class Submitit:
    """Jobs of Slurm, or of another executor of submitit, each with a share of the trials."""

    executor: Any
    width: int

    @property
    def deaths(self) -> tuple[type[Exception], ...]:
        """Submitit's exception for a job that left no result."""
        from submitit.core.utils import UncompletedJobError  # noqa: PLC0415, a package that few need

        return (UncompletedJobError,)

    def carry_out(self, trials: Sequence[Trial], kept: Kept) -> Iterator[Finished]:
        from submitit.helpers import as_completed  # noqa: PLC0415

        shares = [list(trials[first :: self.width]) for first in range(min(self.width, len(trials)))]
        for job in as_completed(self.executor.map_array(carry_out_all, shares, [kept] * len(shares))):
            yield from result_of(job)


def carry_out_all(trials: Sequence[Trial], kept: Kept) -> list[Finished]:
    """Run several trials one after another, and return their results."""
    return [carry_out(trial, kept) for trial in trials]


def result_of(job: Any) -> list[Finished]:
    """The return value of a job of submitit. Raises `RunError` for an exception in it."""
    from submitit.core.utils import FailedJobError  # noqa: PLC0415, a package that few need

    try:
        found: list[Finished] = job.result()
    except FailedJobError as error:
        raise RunError(f"job {job.job_id}: {error}") from error
    return found


def loky(place: str, processes: int | None, _: Kept) -> Engine:
    """Processes of this machine, by default one per available processor. Raises `InputError` if `place` is given."""
    if place:
        raise InputError(f"--on loky:{place}: loky has no place; --processes gives the number of processes")
    return Loky(processes or joblib.cpu_count())


def dask(place: str, _: int | None, __: Kept) -> Engine:
    """The Dask cluster whose scheduler has this address. Raises `InputError`, `MachineError`."""
    if not place:
        raise InputError("--on dask: give the scheduler's address, such as dask:tcp://127.0.0.1:8786")
    try:
        from distributed import Client  # noqa: PLC0415, a package that few need
    except ImportError as error:
        raise lacking("dask", "--on dask") from error
    try:
        connect: Any = Client
        return Dask(connect(place))
    except (OSError, ValueError) as error:
        raise InputError(f"--on dask:{place}: {error}; start one by `dask scheduler` and `dask worker`") from error


def submitit(place: str, processes: int | None, kept: Kept) -> Engine:
    """An executor of submitit and its parameters: `slurm,slurm_partition=cpu,timeout_min=60`, or `local`.

    Raises `InputError`, `MachineError`.
    """
    cluster, *options = place.split(",")
    try:
        from submitit import AutoExecutor  # noqa: PLC0415, a package that few need
    except ImportError as error:
        raise lacking("submitit", "--on submitit") from error
    try:
        executor = AutoExecutor(kept.folder / "jobs", cluster=cluster or "slurm")
        executor.update_parameters(**dict(map(parameter, options)))
    except (RuntimeError, ValueError, TypeError, NameError) as error:
        raise InputError(f"--on submitit:{place}: {error}") from error
    return Submitit(executor, processes or (SLURM_JOBS if executor.cluster == "slurm" else joblib.cpu_count()))


def parameter(text: str) -> tuple[str, str | int]:
    """A parameter of an executor, `timeout_min=60`. Raises `InputError`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"'{text}': a parameter of submitit is NAME=VALUE, such as timeout_min=60")
    return name, int(value) if value.isdecimal() else value


ENGINES: dict[str, Callable[[str, int | None, Kept], Engine]] = {"loky": loky, "dask": dask, "submitit": submitit}
"""The engines by name. The arguments: the text after the name and a colon, the number of processes, the folder."""


def find_engine(on: str, processes: int | None, kept: Kept) -> Engine:
    """The engine that `--on` names, such as `loky` or `dask:tcp://127.0.0.1:8786`. Raises `InakitError`."""
    name, _, place = on.partition(":")
    if name not in ENGINES:
        raise unknown_name("engine (--on)", name, ENGINES)
    return ENGINES[name](place, processes, kept)


def surviving(engine: Engine, trials: Sequence[Trial], kept: Kept) -> Iterator[Finished]:
    """Yield the results of the trials, including those whose worker died."""
    left = {trial.key: trial for trial in trials}
    while left:
        try:
            for finished in engine.carry_out(tuple(left.values()), kept):
                del left[finished.key]
                yield finished
        except engine.deaths:
            for trial in [trial for trial in left.values() if kept.is_begun(trial.key)]:
                del left[trial.key]
                yield on_its_own(engine, trial, kept)


def on_its_own(engine: Engine, trial: Trial, kept: Kept) -> Finished:
    """The result of a trial that was running when a worker died: it is run alone."""
    try:
        return next(iter(engine.carry_out([trial], kept)))
    except engine.deaths:
        with kept.claim(trial.key) as claim:
            if claim.finished is None:
                claim.keep(Finished(trial.key, None, DIED, 0.0, platform.node(), now()))
        return claim.result
