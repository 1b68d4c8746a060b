"""The plot of a training run: accuracy over time, loss by epoch, throughput and time per epoch of every planner."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inakit.experiments.styles.method_styles import styles_of
from inakit.experiments.train.training_curves import Curve

GREY = "#9AA5B1"


def draw_training(curves: Sequence[Curve]) -> Figure:
    """Accuracy over time (GOAT, Fig. 6), loss by epoch beside one process, throughput, and time per epoch (Fig. 7)."""
    figure = Figure(figsize=(14, 3.4), layout="constrained")
    over_time, loss, throughput, epoch_time = figure.subplots(1, 4)
    alone, *networks = curves
    epochs = np.arange(1, len(alone.loss) + 1)
    loss.plot(epochs, alone.loss, color=GREY, linewidth=6, label=alone.name)
    styles = styles_of([curve.name for curve in networks])
    for number, curve in enumerate(networks):
        style = styles[curve.name]
        ends = [0.0, *(epoch.ended_s for epoch in curve.epochs)]
        over_time.plot(ends, curve.accuracy, style.marker + "-", color=style.color, label=curve.name)
        size = max(3, 9 - 2 * number)
        loss.plot(epochs, curve.loss, style.marker + "--", color=style.color, markersize=size, label=curve.name)
        draw_bars(throughput, epoch_time, curve, style.color)
    label(over_time, "time (s)", "test accuracy")
    label(loss, "epoch", "training loss")
    label(throughput, "", "training throughput (samples/s)")
    label(epoch_time, "", "time per epoch (s)")
    over_time.legend(fontsize="small")
    loss.legend(fontsize="small")
    return figure


def draw_bars(throughput: Axes, epoch_time: Axes, curve: Curve, color: str) -> None:
    """Draw a planner's means over epochs: throughput, and time per epoch with its communication hatched."""
    throughput.bar(curve.name, fmean(epoch.samples_per_s for epoch in curve.epochs), color=color)
    epoch_time.bar(curve.name, fmean(epoch.time_s for epoch in curve.epochs), color=color)
    communication_s = fmean(epoch.communication_s for epoch in curve.epochs)
    epoch_time.bar(curve.name, communication_s, color="none", edgecolor="white", hatch="//")
    epoch_time.set_title("hatched: communication", fontsize="small")


def label(axes: Axes, x: str, y: str) -> None:
    """Name the axes, and let the vertical one begin at 0."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
