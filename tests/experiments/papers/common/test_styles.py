"""Methods are told apart in every figure: in colour, by the colour-blind, in greyscale, and where lines coincide."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Text
from own_planner import add_racks_in_turn

from inakit.experiments.papers.common import drawing
from inakit.experiments.papers.common import figure_registry as own_planners
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel, Printed, figure
from inakit.experiments.papers.common.estimates import INTERVAL, estimate, exact
from inakit.experiments.papers.inart.as_published import UNEQUAL
from inakit.experiments.papers.inart.setting import compared as inart_compared
from inakit.experiments.papers.inart.testbed import compared as inart_on_testbed
from inakit.experiments.report import method_styles
from inakit.experiments.report.method_styles import (
    BUILT_IN_COLORS,
    METHODS,
    OWN_COLORS,
    Style,
    own_style,
    style_of,
    styles_of,
)
from inakit.topo.errors import InputError

# How kinds of colour blindness change linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.
SIGHT = {
    "all colours": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
LEAST_DISTANCE = {"all colours": 40.0, "deuteranopia": 20.0, "protanopia": 20.0, "tritanopia": 17.0}
"""The least distance of two colours in CIE Lab (1976), where an eye just tells apart a distance of 2.3."""
LEAST_LIGHTNESS = 6.0
"""The least difference in lightness, of 100, that tells two colours apart in greyscale."""
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = np.array([0.95047, 1, 1.08883])

FIGURES_OF_METHODS = {
    "aro fig7 to fig10": ("ARO", "ARO-ACC", "RANDOM", "GRID", "AggTree"),
    "aro fig11": ("ARO", "ARO-SRO", "ARO-APP", "ARO-ACC"),
    "aro emulated": ("aro", "random", "grid", "aggtree", "forest"),
    "aro emulated, pipelines": ("aro", "aro-unaware"),
    "atro": ("ATRO", "ARO", "PARING", "PARING, one aggregator", "SPAR"),
    "goat": ("GOAT, as published", "goat (ours)", "ESA", "ATP", "Geryon", "shadow-copy"),
    "inart": (*inart_compared(), "inart (ours)"),
    "inart fig2 to fig5": inart_on_testbed(),
    "inart unequal": UNEQUAL,
    "p4inc-aoi": ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW", "pack", "INC-TW-NoRecon", "milp"),
}


def lab(color: str, sight: str) -> np.ndarray:
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(SIGHT[sight] @ linear, 0, 1)
    ratio = TO_XYZ @ seen / WHITE
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_all_colours_are_apart_built_in_and_ones_own(sight: str) -> None:
    for one, other in combinations((*BUILT_IN_COLORS, *OWN_COLORS), 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) >= LEAST_DISTANCE[sight], (one, other)


def test_all_colours_are_apart_in_greyscale_and_from_white_paper() -> None:
    lightness = sorted(lab(color, "all colours")[0] for color in (*BUILT_IN_COLORS, *OWN_COLORS))
    assert min(np.diff(lightness)) >= LEAST_LIGHTNESS
    assert lightness[-1] <= 82


@pytest.mark.parametrize("names", FIGURES_OF_METHODS.values(), ids=FIGURES_OF_METHODS)
def test_methods_of_a_figure_differ_in_colour_and_marker(names: tuple[str, ...]) -> None:
    found = [style_of(name) for name in names] + [own_style(place) for place in range(3)]
    for one, other in combinations(found, 2):
        assert one.color != other.color, (one, other)
        assert one.marker != other.marker, (one, other)


def test_variants_share_a_colour_and_differ_in_marker_and_dash() -> None:
    for first, second in (("ESA, on the path", "ESA, by the nearest"), ("ARO, leaf-spine", "ARO, fat-tree")):
        one, other = style_of(first), style_of(second)
        assert one.color == other.color
        assert one.marker != other.marker
        assert one.dash != other.dash


def test_twelve_planners_of_ones_own_are_told_apart_and_are_like_no_built_in_method() -> None:
    own_styles = [own_style(place) for place in range(12)]
    assert len({(style.color, style.marker) for style in own_styles}) == 12
    assert not {style.color for style in own_styles} & {style.color for style in METHODS.values()}
    assert not {style.marker for style in own_styles} & {style.marker for style in METHODS.values()}
    assert all(style.hatch for style in own_styles)


def test_a_planner_of_ones_own_gets_a_style_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method_styles, "OWN", {"first": None, "racks-in-turn": None})
    assert style_of("racks-in-turn") == own_style(1)
    assert style_of("racks-in-turn, fat-tree").color == own_style(1).color


def test_a_name_without_a_style_is_an_error() -> None:
    with pytest.raises(InputError, match=r"style .*'RANDON'"):
        style_of("RANDON")


def test_colours_stand_in_one_file() -> None:
    """No other module of the papers' figures names a colour."""
    folder = Path(method_styles.__file__).parents[1] / "papers"
    naming = [path.name for path in folder.rglob("*.py") if re.search(r'"#[0-9A-Fa-f]{6}"', path.read_text())]
    assert sorted(naming) == ["drawing.py"]
    drawn = re.findall(r'"(#[0-9A-Fa-f]{6})"', (folder / "common" / "drawing.py").read_text())
    assert drawn == ["#E4E8EC"], "the grid's grey is no method's"


def pixels(canvas_of: Callable[[], Panel], color: str) -> int:
    """How many pixels of a panel's axes have a colour."""
    canvas = drawing.figure([canvas_of()])
    canvas.legends.clear()
    canvas.canvas.draw()
    image = np.asarray(canvas.canvas.buffer_rgba())[..., :3].astype(float)  # type: ignore[attr-defined]
    near = np.abs(image - np.array(to_rgba(color)[:3]) * 255).sum(axis=-1) < 24
    return int(near.sum())


def test_lines_that_coincide_are_all_visible() -> None:
    """Three methods with the same values: each shows in hundreds of pixels."""
    names = ("RANDOM", "GRID", "own")
    same = {name: [exact(value) for value in (5.0, 7.0, 6.0)] for name in names}
    panel = Panel(LINES, [1, 2, 3], same, "x", "y", styles={"own": own_style(0)})
    found = {name: pixels(lambda: panel, panel.style(name).color) for name in names}
    assert min(found.values()) > 300, found


def test_a_figure_says_whom_it_leaves_out_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    console = Console(file=StringIO(), width=100)
    own_planners.leave_out(console, own_planners.COMPARES_SCHEDULERS)
    assert not console.file.getvalue()  # type: ignore[attr-defined]
    add_racks_in_turn(monkeypatch)
    own_planners.leave_out(console, own_planners.COMPARES_SCHEDULERS)
    assert "not in this figure: racks-in-turn (it compares schedulers" in console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(style_of("ARO"), Style)


def test_methods_of_several_papers_have_a_colour_each_in_one_figure() -> None:
    together = styles_of(["ARO", "forest", "ATP", "InArt", "no such method"])
    assert together["ARO"] == style_of("ARO") and together["ATP"] == style_of("ATP")
    assert len({style.color for style in together.values()}) == len(together)


def test_a_figure_with_more_names_than_colours_is_drawn_all_the_same() -> None:
    names = [f"phase {number}" for number in range(9)]
    assert list(styles_of(names)) == names


def drawn(panel: Panel, name: str) -> list[Line2D]:
    """The lines of a picture of a panel that have an id."""
    lines = drawing.figure([panel]).axes[0].get_children()
    return [line for line in lines if isinstance(line, Line2D) and line.get_gid() == name]


def test_few_draws_are_shown_themselves_and_nothing_runs_off_the_axes() -> None:
    """With two draws, 9 and 11, the interval goes from -2.7 to 22.7."""
    few = Panel(LINES, [1, 2], {"aro": [estimate([9.0, 11.0]), estimate([20.0, 21.0, 22.0])]}, "x", "y")
    axes = drawing.figure([few]).axes[0]
    low, high = axes.get_ylim()
    shown = [y for line in axes.get_children() if isinstance(line, Line2D) for y in np.asarray(line.get_ydata(), float)]
    assert low <= min(shown) and max(shown) <= high
    assert [list(np.asarray(line.get_ydata())) for line in drawn(few, drawing.FEW)] == [[9.0, 11.0]]
    assert len(drawn(few, drawing.INTERVAL_ID)) == 1
    labels = [str(entry.get_label()) for entry in drawing.legend([few])]
    assert {INTERVAL, "a draw (too few for an interval)"} <= set(labels)


def notes_of(canvas: Canvas) -> list[str]:
    """What each panel says of the paper's values."""
    return ["".join(text.get_text() for text in axes.texts) for axes in canvas.axes]


def test_the_papers_curve_joins_neighbouring_places_only() -> None:
    paper: Printed = {"aro": {1: 5.0, 2: 4.0, 4: 1.0}}
    panel = Panel(LINES, [1, 2, 3, 4], {"aro": [exact(1.0)] * 4}, "x", "y", paper=paper)
    (curve,) = drawn(panel, drawing.PAPER_CURVE)
    assert np.array_equal(np.asarray(curve.get_ydata(), float), [5.0, 4.0, np.nan, 1.0], equal_nan=True)
    assert len(drawn(panel, drawing.PAPER)) == 3
    other = Panel(LINES, [1], {"aro": [exact(1.0)]}, "x", "y")
    assert notes_of(drawing.figure([panel, other])) == ["", drawing.NOTHING_PRINTED]


def test_long_names_under_an_axis_are_wrapped_and_leave_the_panel_its_height() -> None:
    def labels(*names: str) -> list[Text]:
        series = {"aro": [estimate([1.0])] * len(names)}
        return figure([Panel(BARS, names, series, "", "reduction (%)")]).axes[0].get_xticklabels()

    long = labels("AOI, INC-FCFS to noINC-FCFS and INC-TW to noINC-TW", "AOI, noINC-TW to noINC-FCFS")
    assert [label.get_rotation() for label in long] == [0, 0]
    assert long[0].get_text() == "AOI, INC-FCFS to noINC-FCFS\nand INC-TW to noINC-TW"
    assert labels("w" * 60, "short")[0].get_rotation() == 40


def test_a_figure_without_any_value_of_the_paper_says_so_in_each_panel() -> None:
    panels = [Panel(LINES, [1, 2], {"aro": [exact(1.0), exact(2.0)]}, "", "", "a title as wide as its panel is")] * 2
    canvas = figure(panels, unprinted=True)
    assert notes_of(canvas) == [drawing.NOTHING_PRINTED] * 2
    assert notes_of(figure(panels)) == ["", ""]
    canvas.draw_without_rendering()
    for axes in canvas.axes:
        assert not axes.title.get_window_extent().overlaps(axes.texts[-1].get_window_extent())
    known = {name: own_planners.Request(paper="aro", figure=name).unprinted for name in ("fig7", "fig8", "ring")}
    assert known == {"fig7": False, "fig8": True, "ring": False}
