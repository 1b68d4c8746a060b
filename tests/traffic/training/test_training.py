"""Training through a network in memory is training in one process: bit for bit if it rounds alike, nearly if not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from network_model import Faults, ModelPorts
from traffic_cases import one_job, ports_of

from inakit.experiments.worlds.virtual import Inline
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.gradient import INT32, FixedPoint, exact_sum
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.measure.measured import Measured
from inakit.traffic.training.neural_nets import ConvolutionalNet, Model, Perceptron
from inakit.traffic.training.training_task import (
    CLASSES,
    SIDE,
    DataParallel,
    Recipe,
    TrainingTask,
    draw_glyphs,
    float_mean,
    parse_layers,
    train_alone,
)

SMALL = Recipe(hidden=(12,), epochs=2, batch=4, samples=64)


def job_of(task: TrainingTask, servers: int = 1) -> tuple[Problem, Plan]:
    problem, plan = one_job(workers=task.workers, servers=servers)
    job = replace(problem.jobs[0], gradient_bytes=task.gradient_bytes, iterations=task.iterations)
    return replace(problem, jobs=(job,)), plan


def train(task: TrainingTask, faults: Faults = Faults(), servers: int = 1) -> tuple[DataParallel, Measured]:  # noqa: B008
    problem, plan = job_of(task, servers)
    layout, learner = lay_out(problem, plan, ports_of(problem)), DataParallel(task)
    loop = ClosedLoop(layout, ModelPorts(layout, faults), learner, ReliableOptions(), Inline())
    return learner, loop.run(lambda _: None)


@pytest.mark.parametrize(("faults", "servers"), [(Faults(), 1), (Faults(lose=0.02, repeat=0.05, seed=3), 2)])
def test_training_through_a_network_is_training_in_one_process(faults: Faults, servers: int) -> None:
    task = TrainingTask(SMALL, 4)
    learner, measured = train(task, faults, servers)
    assert measured.exact
    assert len(measured.iterations) == task.iterations == 8
    assert learner.history.equals(train_alone(task))
    assert len({replica.parameters.tobytes() for replica in learner.replicas}) == 1


def test_one_wrong_sum_is_not_training_in_one_process() -> None:
    task = TrainingTask(SMALL, 4)
    learner, job = DataParallel(task), job_of(task)[0].jobs[0]
    for iteration in range(task.iterations):
        sums = exact_sum([learner.of(job, worker, iteration) for worker in range(task.workers)])
        sums[17] += iteration == 2
        for worker in range(task.workers):
            learner.take(job, worker, iteration, sums)
    assert not learner.history.equals(train_alone(task))


def test_rounding_stays_within_its_bound_where_steps_do_not_expand() -> None:
    """Softmax regression is convex: with a rate up to 2 / L its steps never drive two trajectories apart.

    So each adds at most its own rounding, rate x sqrt(parameters) x error. L is at most half the mean of |x|^2 + 1.
    """
    task = TrainingTask(replace(SMALL, hidden=(), momentum=0.0, learning_rate=0.01, clip=50.0, epochs=10), 4)
    steepest = 0.5 * ((task.training.pictures**2).sum(axis=1) + 1).max()
    assert task.recipe.learning_rate < 2 / steepest
    rounded, floats = train_alone(task), train_alone(task, float_mean)
    step = task.recipe.learning_rate * task.model.parameters**0.5 * task.fixed_point.error
    apart = np.linalg.norm(rounded.snapshots[-1] - floats.snapshots[-1])
    assert 0 < apart <= task.iterations * step


def test_rounding_does_not_show_in_the_losses() -> None:
    task = TrainingTask(replace(SMALL, epochs=4), 4)
    rounded, floats = train_alone(task), train_alone(task, float_mean)
    assert not rounded.equals(floats)
    assert rounded.losses == pytest.approx(floats.losses, rel=1e-5)


@pytest.mark.parametrize("workers", [1, 3, 15, 64])
@pytest.mark.parametrize("clip", [0.01, 1.0, 7.3])
def test_no_sum_leaves_32_bits_and_none_is_off_by_more_than_the_bound(workers: int, clip: float) -> None:
    fixed_point = FixedPoint.clipping_at(clip, workers)
    gradients = np.random.default_rng(workers).uniform(-clip, clip, (workers, 1000))
    sums = exact_sum([fixed_point.round(gradient) for gradient in gradients])
    assert np.abs(fixed_point.mean(sums) - gradients.mean(axis=0)).max() <= fixed_point.error * (1 + 1e-9)
    assert fixed_point.error < clip * workers / INT32.max
    far = exact_sum([fixed_point.round(np.array([1e30, -1e30, clip, -clip]))] * workers)
    assert np.abs(far).max() <= INT32.max
    assert fixed_point.mean(far)[2:] == pytest.approx([clip, -clip], abs=fixed_point.error)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_training_that_diverges_says_so(value: float) -> None:
    with pytest.raises(InputError, match="smaller learning rate"):
        FixedPoint.clipping_at(1.0, 2).round(np.array([0.0, value]))


MODELS = [
    *(Perceptron((SIDE * SIDE, *hidden, CLASSES)) for hidden in ((), (7,), (7, 5))),
    *(ConvolutionalNet(SIDE, filters, (7,), CLASSES) for filters in ((3,), (3, 5))),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_gradient_is_that_of_the_loss(model: Model) -> None:
    samples = draw_glyphs(20, 1)
    vector, direction = model.initial(3), np.random.default_rng(4).normal(size=model.parameters)
    step = 1e-6 * direction
    ahead, behind = (model.loss_and_gradient(vector + sign * step, samples)[0] for sign in (1, -1))
    slope = model.loss_and_gradient(vector, samples)[1] @ direction
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-5)


def test_every_worker_sees_every_sample_of_its_shard_once_in_an_epoch() -> None:
    task = TrainingTask(SMALL, 4)
    seen = [task.batch(worker, iteration) for worker in range(4) for iteration in range(task.iterations_per_epoch)]
    pictures = np.concatenate([batch.pictures for batch in seen])
    assert sorted(map(bytes, pictures)) == sorted(map(bytes, task.training.pictures))
    assert not np.array_equal(task.batch(0, 0).pictures, task.batch(0, task.iterations_per_epoch).pictures)


@pytest.mark.parametrize("filters", [(), (4, 8)])
def test_it_learns(filters: tuple[int, ...]) -> None:
    task = TrainingTask(Recipe(hidden=(64,), epochs=6, filters=filters), 8)
    before, *_, after = train_alone(task).accuracy(task)
    assert before < 2 / CLASSES
    assert after > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs 0"),
        ({"momentum": 1.0}, "momentum 1.0"),
        ({"learning_rate": float("inf")}, "learning rate inf"),
        ({"hidden": (8, 0)}, "hidden layers"),
        ({"filters": (8, 0)}, "filters"),
        ({"filters": (8, 8, 8)}, "3 layers of filters"),
        ({"clip": 0.0}, "clip 0.0"),
        ({"batch": 100}, "400 samples for one iteration, there are 64"),
    ],
)
def test_recipes_that_cannot_be(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingTask(replace(SMALL, **change), 4)  # type: ignore[arg-type]


def test_layers_are_numbers() -> None:
    assert parse_layers("256,64") == (256, 64)
    assert parse_layers("") == ()
    with pytest.raises(InputError, match="'many'"):
        parse_layers("many")
