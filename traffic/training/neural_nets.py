"""The models that are trained, in NumPy: a perceptron, and a convolutional net.

The parameters of a model are one flat vector, the form in which a gradient is sent. A layer is a view of it, (inputs +
1, outputs), whose last row has the biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Protocol

import numpy as np

from inakit.topo.errors import InputError
from inakit.traffic.sockets.ports import FloatArray, IntArray


@dataclass(frozen=True)
class Samples:
    """`pictures`, (samples, pixels), of the digits `labels`, (samples,)."""

    pictures: FloatArray
    labels: IntArray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: IntArray | slice) -> Samples:
        return Samples(self.pictures[chosen], self.labels[chosen])


class Model(Protocol):
    """A model of `parameters` numbers."""

    parameters: int

    @property
    def name(self) -> str:
        """The layers in words."""
        ...

    def initial(self, seed: int) -> FloatArray:
        """First parameters, (parameters,)."""
        ...

    def loss_and_gradient(self, vector: FloatArray, samples: Samples) -> tuple[float, FloatArray]:
        """The mean cross-entropy over the samples, and its gradient by all parameters, (parameters,)."""
        ...

    def scores(self, vector: FloatArray, pictures: FloatArray) -> FloatArray:
        """The scores of all classes, (samples, classes)."""
        ...


def accuracy(model: Model, vector: FloatArray, samples: Samples) -> float:
    """The share of samples whose label has the highest score."""
    return float((model.scores(vector, samples.pictures).argmax(axis=1) == samples.labels).mean())


class Perceptron:
    """A model whose layers, inputs and outputs included, have `sizes` units, with ReLU between them.

    Two layers make it softmax regression.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.shapes = [(inputs + 1, outputs) for inputs, outputs in pairwise(sizes)]
        self.parameters = sum(rows * columns for rows, columns in self.shapes)

    @property
    def name(self) -> str:
        """The layers in words: "perceptron 144-256-64-10"."""
        return f"perceptron {'-'.join(map(str, self.sizes))}"

    def initial(self, seed: int) -> FloatArray:
        """First parameters, (parameters,)."""
        return initial_weights(self.shapes, seed)

    def layers(self, vector: FloatArray) -> list[FloatArray]:
        """Views of the layers in a vector of parameters, or of their gradient."""
        return layers_of(self.shapes, vector)

    def forward(self, vector: FloatArray, pictures: FloatArray) -> list[FloatArray]:
        """The inputs of each layer, (samples, units), and finally the scores, (samples, classes)."""
        *hidden, last = self.layers(vector)
        values = [pictures]
        for layer in hidden:
            values.append(np.maximum(affine(layer, values[-1]), 0))
        return [*values, affine(last, values[-1])]

    def scores(self, vector: FloatArray, pictures: FloatArray) -> FloatArray:
        """The scores of all classes, (samples, classes)."""
        return self.forward(vector, pictures)[-1]

    def loss_and_gradient(self, vector: FloatArray, samples: Samples) -> tuple[float, FloatArray]:
        """The mean cross-entropy over the samples, and its gradient by all parameters, (parameters,)."""
        gradient = np.empty_like(vector)
        loss, _ = self.backward(vector, samples, gradient)
        return loss, gradient

    def backward(self, vector: FloatArray, samples: Samples, gradient: FloatArray) -> tuple[float, FloatArray]:
        """Write the gradient by the parameters to `gradient`; return the loss, and its gradient by the pictures."""
        *values, scores = self.forward(vector, samples.pictures)
        loss, error = cross_entropy(scores, samples.labels)
        layers, by_layers = self.layers(vector), self.layers(gradient)
        for number in reversed(range(len(layers))):
            by_layers[number][:-1] = values[number].T @ error
            by_layers[number][-1] = error.sum(axis=0)
            error = error @ layers[number][:-1].T
            if number:  # the inputs of this layer are outputs of a ReLU
                error *= values[number] > 0
        return loss, error


REACH = 3
"""The height and width of a filter. Pictures are padded with zeros, so that a layer keeps their size."""
POOL = 2
"""The height and width of the pixels that pooling joins."""
AROUND = [*product(range(REACH), repeat=2)]
"""The places in a filter."""


class ConvolutionalNet:
    """Layers of 3 x 3 filters on square pictures of `side` pixels, and then a perceptron.

    `filters` has the number of filters of each layer. ReLU and 2 x 2 max pooling follow each layer. Its inputs are the
    values of all channels at nine pixels. `hidden` are the perceptron's hidden units. Raises `InputError` if pooling
    does not divide the pictures.
    """

    def __init__(self, side: int, filters: Sequence[int], hidden: Sequence[int], classes: int) -> None:
        self.side, self.filters = side, tuple(filters)
        last, odd = divmod(side, POOL ** len(filters))
        if odd:
            raise InputError(f"{len(filters)} layers of filters: each halves pictures of {side} pixels; give fewer")
        self.shapes = [(len(AROUND) * channels + 1, count) for channels, count in pairwise((1, *filters))]
        self.perceptron = Perceptron((last**2 * filters[-1], *hidden, classes))
        self.shared = sum(rows * columns for rows, columns in self.shapes)
        self.parameters = self.shared + self.perceptron.parameters

    @property
    def name(self) -> str:
        """The layers in words: "convolutional net 8-16, perceptron 144-67-10"."""
        return f"convolutional net {'-'.join(map(str, self.filters))}, {self.perceptron.name}"

    def initial(self, seed: int) -> FloatArray:
        """First parameters, (parameters,)."""
        return np.concatenate([initial_weights(self.shapes, seed), self.perceptron.initial(seed)])

    def forward(self, vector: FloatArray, pictures: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """The inputs of every layer of filters and its outputs before pooling, (samples, height, width, channels)."""
        inputs, outputs = [], []
        values = pictures.reshape(len(pictures), self.side, self.side, 1)
        for layer in layers_of(self.shapes, vector[: self.shared]):
            inputs.append(neighbourhoods(values))
            outputs.append(np.maximum(affine(layer, inputs[-1]), 0))
            values = pooled(outputs[-1])
        return inputs, outputs

    def scores(self, vector: FloatArray, pictures: FloatArray) -> FloatArray:
        """The scores of all classes, (samples, classes)."""
        _, outputs = self.forward(vector, pictures)
        return self.perceptron.scores(vector[self.shared :], pooled(outputs[-1]).reshape(len(pictures), -1))

    def loss_and_gradient(self, vector: FloatArray, samples: Samples) -> tuple[float, FloatArray]:
        """The mean cross-entropy over the samples, and its gradient by all parameters, (parameters,)."""
        gradient = np.empty_like(vector)
        inputs, outputs = self.forward(vector, samples.pictures)
        features = Samples(pooled(outputs[-1]).reshape(len(samples), -1), samples.labels)
        loss, error = self.perceptron.backward(vector[self.shared :], features, gradient[self.shared :])
        layers, by_layers = (layers_of(self.shapes, each[: self.shared]) for each in (vector, gradient))
        for number in reversed(range(len(layers))):
            values, output, own = inputs[number], outputs[number], by_layers[number]
            error = unpooled(error, output).reshape(-1, output.shape[-1])
            own[:-1] = values.reshape(len(error), -1).T @ error
            own[-1] = error.sum(axis=0)
            if number:  # nobody needs the gradient by the pictures
                error = summed_up((error @ layers[number][:-1].T).reshape(values.shape))
        return loss, gradient


def neighbourhoods(values: FloatArray) -> FloatArray:
    """The values of all channels at the nine pixels around each, (samples, height, width, 9 x channels)."""
    height, width = values.shape[1:3]
    padded = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.concatenate([padded[:, y : y + height, x : x + width] for y, x in AROUND], axis=-1)


def summed_up(values: FloatArray) -> FloatArray:
    """The transpose of `neighbourhoods`: for each pixel, the sum over all neighbourhoods that contain it."""
    count, height, width, depth = values.shape
    padded = np.zeros((count, height + 2, width + 2, depth // len(AROUND)))
    for (y, x), part in zip(AROUND, np.split(values, len(AROUND), axis=-1), strict=True):
        padded[:, y : y + height, x : x + width] += part
    return padded[:, 1:-1, 1:-1]


def blocks(values: FloatArray) -> FloatArray:
    """A view of the pixels that pooling joins, (samples, height / 2, 2, width / 2, 2, channels)."""
    count, height, width, channels = values.shape
    return values.reshape(count, height // POOL, POOL, width // POOL, POOL, channels)


def pooled(values: FloatArray) -> FloatArray:
    """The maximum of every block of pixels, (samples, height / 2, width / 2, channels)."""
    upper, lower = np.moveaxis(blocks(values), 2, 0)
    left, right = np.moveaxis(np.maximum(upper, lower), 3, 0)
    highest: FloatArray = np.maximum(left, right)
    return highest


def unpooled(error: FloatArray, outputs: FloatArray) -> FloatArray:
    """The gradient by a layer's outputs before its ReLU, given that by its pooled outputs."""
    highest = pooled(outputs)
    to_highest = np.where(highest > 0, error.reshape(highest.shape), 0)[:, :, None, :, None]
    spread: FloatArray = (to_highest * (blocks(outputs) == highest[:, :, None, :, None])).reshape(outputs.shape)
    return spread


Shapes = Sequence[tuple[int, int]]
"""The shapes of consecutive layers in a vector."""


def layers_of(shapes: Shapes, vector: FloatArray) -> list[FloatArray]:
    """Views of the layers in a vector of parameters, or of their gradient."""
    ends = np.cumsum([rows * columns for rows, columns in shapes])
    return [piece.reshape(shape) for piece, shape in zip(np.split(vector, ends[:-1]), shapes, strict=True)]


def initial_weights(shapes: Shapes, seed: int) -> FloatArray:
    """First parameters: weights of variance 2 / inputs, so that signals keep their size through ReLUs; biases 0."""
    random, vector = np.random.default_rng(seed), np.zeros(sum(rows * columns for rows, columns in shapes))
    for layer in layers_of(shapes, vector):
        layer[:-1] = random.normal(0, np.sqrt(2 / (len(layer) - 1)), layer[:-1].shape)
    return vector


def affine(layer: FloatArray, values: FloatArray) -> FloatArray:
    """The outputs of a layer before its ReLU, (samples, outputs)."""
    result: FloatArray = values @ layer[:-1] + layer[-1]
    return result


def cross_entropy(scores: FloatArray, labels: IntArray) -> tuple[float, FloatArray]:
    """The mean cross-entropy of the softmax of scores, (samples, classes), and its gradient by the scores.

    The probability of a class is never exactly 0.
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances: FloatArray = np.maximum(powers / powers.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    own = np.arange(len(labels)), labels
    loss = -float(np.log(chances[own]).mean())
    chances[own] -= 1
    return loss, chances / len(labels)
