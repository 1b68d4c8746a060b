"""Pictures of the digits 0 to 9, drawn from a seed: something to learn that needs no download.

Real data sets come with a download or with a library as large as this kit. These pictures take a second to draw and
are the same on every machine. They still leave a model something to learn: digits are moved, fainter or bolder, noisy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inakit.traffic.sockets.ports import FloatArray, IntArray

SIDE = 12
"""Width and height of a picture."""
CLASSES = 10
SHIFT = 1
"""A digit is moved by up to so many pixels in each direction."""
NOISE = 0.25
"""The standard deviation of the noise on every pixel, of which one that is drawn has 0.6 to 1.4."""
SHAPES = (
    "01110 10001 10001 10001 10001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "01110 10000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 00100 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00001 01110",
)
"""Rows of pixels, top to bottom."""


@dataclass(frozen=True)
class Samples:
    """`pictures`, (samples, pixels), of the digits `labels`, (samples,)."""

    pictures: FloatArray
    labels: IntArray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: IntArray | slice) -> Samples:
        return Samples(self.pictures[chosen], self.labels[chosen])


def draw_glyphs(count: int, seed: int) -> Samples:
    """Pictures of `count` digits, of all ten equally often, or one more often than others."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(count) % CLASSES)
    pictures = np.zeros((count, SIDE, SIDE))
    shapes = np.array([[list(map(int, row)) for row in shape.split()] for shape in SHAPES])
    height, width = shapes.shape[1:]
    tops = (SIDE - height) // 2 + random.integers(-SHIFT, SHIFT + 1, count)
    lefts = (SIDE - width) // 2 + random.integers(-SHIFT, SHIFT + 1, count)
    for picture, label, top, left in zip(pictures, labels, tops, lefts, strict=True):
        picture[top : top + height, left : left + width] = shapes[label]
    pictures *= random.uniform(0.6, 1.4, (count, 1, 1))
    pictures += random.normal(0, NOISE, pictures.shape)
    return Samples(pictures.reshape(count, -1), labels)
