"""A communication hook that sends the gradients of PyTorch's DistributedDataParallel through the emulated network.

model = DistributedDataParallel(module) model.register_comm_hook(Buckets(Member(address, rank, fixed_point)),
sum_in_network)

The module also runs a process per worker that trains the same model as `inakit.traffic.training.training_task`, in
32-bit floats. Gloo, on the loopback, only gives the workers the same initial parameters. Importing this needs PyTorch.
"""

import multiprocessing
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.topo.errors import InputError, MachineError, RunError
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.exchange import Exchange, Member
from inakit.traffic.training.neural_nets import Perceptron, Samples
from inakit.traffic.training.training_task import History, Mean, Recipe, TrainingTask, rounded_mean

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    raise MachineError(
        "PyTorch is not installed: `pip install torch` (its CPU build is enough), or train with --framework numpy"
    ) from error

END_S = 30.0
"""The time limit in seconds for a process to end after the last sums."""


class Buckets:
    """The buckets that DDP has passed in an iteration so far.

    The network sums the whole gradient at once, regardless of DDP's number of buckets.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self.waiting: list[tuple[torch.Tensor, torch.futures.Future[torch.Tensor]]] = []

    def sum_up(self) -> None:
        """Send the gradient of all waiting buckets to the network, and give each bucket its part of the mean."""
        buffers = [buffer for buffer, _ in self.waiting]
        gradient = torch.cat(buffers)
        mean = torch.from_numpy(self.member.mean(gradient.numpy())).to(gradient.dtype)
        for piece, (_, future) in zip(mean.split([len(buffer) for buffer in buffers]), self.waiting, strict=True):
            future.set_result(piece)
        self.waiting = []


# PyTorch compares these annotations with its types, so they must not be strings.
def sum_in_network(state: Buckets, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: it collects buckets, and passes them to the network with the last one."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    state.waiting.append((bucket.buffer(), future))
    if bucket.is_last():
        state.sum_up()
    return future


def module_of(task: TrainingTask) -> torch.nn.Sequential:
    """The task's perceptron with its initial parameters. Raises `InputError` for another model."""
    if not isinstance(task.model, Perceptron):
        raise InputError("--filters: PyTorch trains perceptrons here; train a convolutional net with --framework numpy")
    modules: list[torch.nn.Module] = []
    for layer in task.model.layers(task.initial()):
        linear = torch.nn.Linear(len(layer) - 1, layer.shape[1])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(layer[:-1].T))
            linear.bias.copy_(torch.from_numpy(layer[-1]))
        modules += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*modules[:-1])


def vector_of(module: torch.nn.Sequential) -> FloatArray:
    """The parameters of a module in the order of the task's model, (parameters,)."""
    layers = [layer for layer in module if isinstance(layer, torch.nn.Linear)]
    pieces = [torch.vstack([layer.weight.T, layer.bias]).detach().numpy().ravel() for layer in layers]
    return np.concatenate(pieces, dtype=np.float64)


def backward(module: Any, batch: Samples) -> float:
    """The loss of a batch; its gradient is added up in the parameters of `module`."""
    scores = module(torch.from_numpy(batch.pictures).float())
    loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(batch.labels))
    loss.backward()
    return float(loss.item())


def optimizer_of(module: Any, recipe: Recipe) -> torch.optim.Optimizer:
    """The optimiser of a recipe: SGD with momentum."""
    return torch.optim.SGD(module.parameters(), lr=recipe.learning_rate, momentum=recipe.momentum)


def train_alone_in_torch(task: TrainingTask, mean: Mean = rounded_mean) -> History:
    """The training of `inakit.traffic.training.training_task.train_alone`, in PyTorch."""
    torch.set_num_threads(1)  # like the workers: sums of floats depend on their order
    module, history = module_of(task), History(task)
    optimizer = optimizer_of(module, task.recipe)
    for iteration in range(task.iterations):
        gradients = []
        for worker in range(task.workers):
            optimizer.zero_grad()
            history.losses[iteration, worker] = backward(module, task.batch(worker, iteration))
            gradients.append(torch.cat([p.grad.ravel() for p in module.parameters()]).numpy())
        set_gradient(module, mean(task, gradients))
        optimizer.step()
        if task.ends_epoch(iteration):
            history.snapshots.append(vector_of(module))
    return history


def set_gradient(module: torch.nn.Sequential, gradient: FloatArray) -> None:
    """Write a gradient, (parameters,), into the parameters of a module."""
    parameters = list(module.parameters())
    pieces = torch.from_numpy(gradient).float().split([p.numel() for p in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.grad.copy_(piece.view_as(parameter))


def train_rank(rank: int, recipe: Recipe, workers: int, address: str, folder: Path) -> None:
    """Run an ordinary DDP script, the main function of a worker process; it writes losses and snapshots to `folder`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    task = TrainingTask(recipe, workers)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=workers)
    module, history = module_of(task), History(task)
    replica = DistributedDataParallel(module)
    optimizer = optimizer_of(replica, recipe)
    with Member(address, rank, task.fixed_point) as member:
        replica.register_comm_hook(Buckets(member), sum_in_network)
        for iteration in range(task.iterations):
            optimizer.zero_grad()
            history.losses[iteration, rank] = backward(replica, task.batch(rank, iteration))
            optimizer.step()
            if task.ends_epoch(iteration):
                history.snapshots.append(vector_of(module))
    np.savez(folder / f"{rank}.npz", losses=history.losses[:, rank], snapshots=history.snapshots)
    dist.destroy_process_group()


class TorchRanks:
    """A process per worker, behind an exchange (a `inakit.traffic.endpoints.gradient.Learner`). A context manager."""

    def __init__(self, task: TrainingTask) -> None:
        self.task = task

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(TemporaryDirectory(prefix="inakit-")))
            self.exchange = stack.enter_context(Exchange(self._check))
            spawn = multiprocessing.get_context("spawn")
            common = (self.task.recipe, self.task.workers, self.exchange.address, self.folder)
            self.processes = [
                spawn.Process(target=train_rank, args=(rank, *common), daemon=True) for rank in range(self.task.workers)
            ]
            stack.callback(self._end)
            for process in self.processes:
                process.start()
            for rank in range(self.task.workers):  # starting them keeps the machine busy, so not during emulation
                self.exchange.meet(rank)
            self._exits = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """The gradient of a worker's process."""
        return self.exchange.of(job, worker, iteration)

    def take(self, job: Job, worker: int, iteration: int, sums: NDArray[np.int64]) -> None:
        """Give a worker's process its sums."""
        self.exchange.take(job, worker, iteration, sums)

    @property
    def history(self) -> History:
        """The history of all workers, once their processes have ended. Raises `RunError` for one that does not end."""
        history = History(self.task)
        for rank, process in enumerate(self.processes):
            process.join(END_S)
            if process.exitcode != 0:
                raise RunError(f"worker {rank} did not end within {END_S:g} s of its last sums: see its output")
            with np.load(self.folder / f"{rank}.npz") as left:
                history.losses[:, rank] = left["losses"]
                if rank == 0:
                    history.snapshots = list(left["snapshots"])
        return history

    def _check(self) -> None:
        """Raise `RunError` if a process has ended before its time."""
        for rank, process in enumerate(self.processes):
            if process.exitcode:
                raise RunError(f"worker {rank} ended with exit code {process.exitcode}: see its output")

    def _end(self) -> None:
        """End the processes that were started and still run."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            if process.pid is not None:
                process.join()
