"""A multi-layer perceptron in NumPy: ReLU between layers, softmax and cross-entropy at the end.

All its parameters are one flat vector, since that is how a gradient travels. A layer is a view of it, (inputs + 1,
outputs), whose last row has the biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.glyphs import Samples


class Perceptron:
    """A model whose layers, inputs and outputs included, have `sizes` units. Two layers make it softmax regression."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.shapes = [(inputs + 1, outputs) for inputs, outputs in pairwise(sizes)]
        self.parameters = sum(rows * columns for rows, columns in self.shapes)

    def initial(self, seed: int) -> FloatArray:
        """First parameters: weights of variance 2 / inputs, so that signals keep their size through ReLUs; biases 0."""
        random, vector = np.random.default_rng(seed), np.zeros(self.parameters)
        for layer in self.layers(vector):
            layer[:-1] = random.normal(0, np.sqrt(2 / (len(layer) - 1)), layer[:-1].shape)
        return vector

    def layers(self, vector: FloatArray) -> list[FloatArray]:
        """Views of the layers in a vector of parameters, or of their gradient."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])
        return [piece.reshape(shape) for piece, shape in zip(np.split(vector, ends[:-1]), self.shapes, strict=True)]

    def forward(self, vector: FloatArray, pictures: FloatArray) -> list[FloatArray]:
        """What enters each layer, (samples, units), and last what leaves the last: the scores, (samples, classes)."""
        *hidden, last = self.layers(vector)
        values = [pictures]
        for layer in hidden:
            values.append(np.maximum(affine(layer, values[-1]), 0))
        return [*values, affine(last, values[-1])]

    def loss_and_gradient(self, vector: FloatArray, samples: Samples) -> tuple[float, FloatArray]:
        """The mean cross-entropy over the samples, and its gradient by all parameters, (parameters,)."""
        *values, scores = self.forward(vector, samples.pictures)
        chances = softmax(scores)
        own = np.arange(len(samples)), samples.labels
        loss = -float(np.log(chances[own]).mean())
        error = chances
        error[own] -= 1
        error /= len(samples)
        gradient = np.empty_like(vector)
        layers, by_layers = self.layers(vector), self.layers(gradient)
        for number in reversed(range(len(layers))):
            by_layers[number][:-1] = values[number].T @ error
            by_layers[number][-1] = error.sum(axis=0)
            if number:  # what enters this layer has left a ReLU
                error = error @ layers[number][:-1].T * (values[number] > 0)
        return loss, gradient

    def accuracy(self, vector: FloatArray, samples: Samples) -> float:
        """The share of samples whose label has the highest score."""
        scores = self.forward(vector, samples.pictures)[-1]
        return float((scores.argmax(axis=1) == samples.labels).mean())


def affine(layer: FloatArray, values: FloatArray) -> FloatArray:
    """What leaves a layer before its ReLU, (samples, outputs)."""
    result: FloatArray = values @ layer[:-1] + layer[-1]
    return result


def softmax(scores: FloatArray) -> FloatArray:
    """The probability of each class, (samples, classes), which is never exactly 0."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances: FloatArray = np.maximum(powers / powers.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return chances
