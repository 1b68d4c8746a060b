"""Places for the labels of links' loads in a drawing: beside the line of their own direction, and upon nothing else.

Places are tried one after another, where each label is measured as it will be drawn. A label that fits nowhere is left
out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

Point = tuple[float, float]


@dataclass
class Labels:
    """The labels of one drawing. `taken` are boxes in pixels that nothing may stand upon."""

    axes: Axes
    taken: list[Bbox] = field(default_factory=list)
    left_out: int = 0

    def keep_clear(self, texts: Iterable[Text]) -> None:
        """Let no label stand upon these texts."""
        self.taken += [self.extent(text) for text in texts if text.get_text()]

    def keep_clear_of_box(self, corner: Point, opposite: Point) -> None:
        """Let no label stand upon this box, which is given in the units of the drawing."""
        self.taken.append(Bbox(self.axes.transData.transform([corner, opposite])))

    def place(self, text: Text, places: Iterable[Point]) -> bool:
        """Put a text at the first of `places` where it fits, or remove it where it fits nowhere. Whether it fitted."""
        for place in places:
            text.set_position(place)
            box = self.extent(text)
            if not any(overlap(box, other) for other in self.taken):
                self.taken.append(box)
                return True
        text.remove()
        self.left_out += 1
        return False

    def extent(self, text: Text) -> Bbox:
        """The box of a text in pixels."""
        canvas = self.axes.get_figure(root=True).canvas  # type: ignore[union-attr]
        assert isinstance(canvas, FigureCanvasAgg)
        return text.get_window_extent(canvas.get_renderer())  # type: ignore[no-untyped-call]


def overlap(one: Bbox, other: Bbox) -> bool:
    """Whether two boxes share an area."""
    return bool(one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)


def along(first: float) -> Iterator[float]:
    """Shares of a line's length: `first`, then further and further from it on both sides, away from the ends."""
    yield first
    for step in range(1, 14):
        yield from (at for at in (first + 0.05 * step, first - 0.05 * step) if 0.12 <= at <= 0.88)
