"""Gradients of other processes: each is one worker, which sends its gradient and waits for the sums.

The network's side is `Exchange`, a worker's side `Member`; between them is a Unix socket.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Client, Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.topo.errors import RunError
from inakit.traffic.endpoints.gradient import FixedPoint

NUMBER_BYTES = 4
"""The size in bytes of a worker's number, which its process sends first."""
LOOK_S = 0.5
"""The interval in seconds between checks that an awaited worker is still alive."""


class Exchange:
    """The workers of one job that are processes (a `inakit.traffic.endpoints.gradient.Learner`). A context manager.

    While it waits it calls `check`, which can raise; after `patience_s` without a message of the worker the run fails.
    """

    def __init__(self, check: Callable[[], None] = lambda: None, patience_s: float = 120.0) -> None:
        self.check, self.patience_s = check, patience_s
        self._connections: dict[int, Connection] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="inakit-"))
            self.address = str(Path(folder) / "exchange")
            self._socket = stack.enter_context(socket.socket(socket.AF_UNIX))
            self._socket.bind(self.address)
            self._socket.listen(128)
            self._socket.settimeout(LOOK_S)
            stack.callback(self._close)
            self._exits = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def meet(self, worker: int) -> None:
        """Wait until the worker has connected."""
        self._connection(worker)

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """Wait for a worker's gradient. Raises `RunError` if the worker leaves or sends another size."""
        connection = self._connection(worker)
        self._wait(lambda: connection.poll(LOOK_S), worker)
        try:
            received = connection.recv_bytes()
        except (EOFError, ConnectionError) as error:
            raise RunError(f"worker {worker} left before iteration {iteration}: see its output") from error
        if len(received) != job.gradient_bytes:
            raise RunError(
                f"worker {worker} handed in {len(received)} bytes, job {job.number} sends {job.gradient_bytes} per "
                "iteration: give the job the model's size, 4 bytes for each parameter"
            )
        return np.frombuffer(received, np.int32)

    def take(self, job: Job, worker: int, iteration: int, sums: NDArray[np.int64]) -> None:
        """Give a worker its sums. Raises `RunError` if it has left."""
        del job
        try:
            self._connection(worker).send_bytes(sums.tobytes())
        except ConnectionError as error:
            raise RunError(f"worker {worker} left in iteration {iteration}: see its output") from error

    def _close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _connection(self, worker: int) -> Connection:
        self._wait(lambda: worker in self._connections or self._accept(), worker)
        return self._connections[worker]

    def _accept(self) -> bool:
        """Accept a connection, if there is one. Always false: the next check shows whether it is the awaited worker."""
        try:
            accepted, _ = self._socket.accept()
        except TimeoutError:
            return False
        connection = Connection(accepted.detach())
        self._connections[int.from_bytes(connection.recv_bytes(NUMBER_BYTES), "big")] = connection
        return False

    def _wait(self, there: Callable[[], bool], worker: int) -> None:
        """Wait until `there` returns true; each call takes at most `LOOK_S`."""
        for _ in range(round(self.patience_s / LOOK_S)):
            if there():
                return
            self.check()
        raise RunError(f"no sign of worker {worker} for {self.patience_s:g} s: start a process for every worker")


class Member:
    """The side of a worker's process in the exchange at `address`. A context manager."""

    def __init__(self, address: str, worker: int, fixed_point: FixedPoint) -> None:
        self.fixed_point = fixed_point
        self._connection = Client(address, "AF_UNIX")
        self._connection.send_bytes(worker.to_bytes(NUMBER_BYTES, "big"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def mean(self, gradient: NDArray[np.floating]) -> NDArray[np.float64]:
        """The mean of all workers' gradients, including this one; waits until the network has summed them."""
        try:
            self._connection.send_bytes(self.fixed_point.round(gradient).tobytes())
            sums = self._connection.recv_bytes()
        except (EOFError, ConnectionError) as error:
            raise RunError("the emulated network is gone: its run has ended or failed, see its output") from error
        return self.fixed_point.mean(np.frombuffer(sums, np.int64))
