"""Names, colours, markers, dashes and hatches of all methods, for all plots of the papers.

Any two colours are distinguishable with full colour vision, with the three kinds of colour-blindness and in greyscale,
as tests check. Variants of a method share its colour and differ in marker and dash. User-defined planners have
colours, markers and a hatch that no built-in method has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from inakit.planner.own_planners import name_of
from inakit.planner.registry import OWN
from inakit.topo.errors import InputError, unknown_name

RED, NAVY, SKY, MINT, MUSTARD, PLUM, INK = "#B61100", "#2C23A3", "#19ABF3", "#2CE0A2", "#D0B200", "#8D0A6C", "#302D11"
BUILT_IN_COLORS = (RED, SKY, NAVY, MINT, MUSTARD, PLUM, INK)
OWN_COLORS = ("#FF2BD1", "#A200FF", "#BD635D")
OWN_MARKERS = ("*", "p", "H", "<")
"""With three colours and four markers, twelve user-defined planners have different styles."""

SOLID, DASHED, DOTTED = "-", "--", ":"
OWN_DASH = (0, (4, 2, 1, 2))
Dash = str | tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class Style:
    """The style of a method in matplotlib's terms: `dash` is for its lines, `hatch` for its bars."""

    color: str
    marker: str = "o"
    dash: Dash = SOLID
    hatch: str = ""


METHODS: Mapping[str, Style] = {
    "ARO": Style(RED, "o"),
    "ARO-ACC": Style(MUSTARD, "s"),
    "ARO-SRO": Style(PLUM, "P"),
    "ARO-APP": Style(INK, "X"),
    "aro-unaware": Style(PLUM, "P"),
    "RANDOM": Style(NAVY, "^"),
    "GRID": Style(SKY, "D"),
    "AggTree": Style(MINT, "v"),
    "forest": Style(INK, "X"),
    "forest-any": Style(PLUM, "X"),
    "panama": Style(NAVY, "P"),
    "ATRO": Style(INK, "P"),
    "PARING": Style(MINT, "s"),
    "PARING, one aggregator": Style(MUSTARD, "^"),
    "SPAR": Style(SKY, "D"),
    "GOAT, as published": Style(PLUM, "o"),
    "goat-krgs": Style(PLUM, "o"),
    "goat (ours)": Style(RED, "h"),
    "goat": Style(RED, "h"),
    "ESA": Style(NAVY, "s"),
    "ATP": Style(MINT, "^"),
    "Geryon": Style(INK, "v"),
    "shadow-copy": Style(MUSTARD, "D"),
    "InArt": Style(RED, "o"),
    "InArt, as published": Style(RED, "o"),
    "R-InArt, as published": Style(NAVY, "v"),
    "InArt, split for its routes": Style(INK, "s"),
    "InArt, the figure's plan": Style(SKY, "X"),
    "LP-InArt": Style(SKY, "X"),
    "inart (ours)": Style(PLUM, "P"),
    "inart-equal (ours)": Style(INK, "s"),
    "inart-forest (ours)": Style(INK, "s"),
    "ATP, ToRs sum 9 Mbit/s": Style(NAVY, "v"),
    "LBMM": Style(MUSTARD, "D"),
    "inart-forest": Style(RED, "o"),
    "noINC-FCFS": Style(INK, "v"),
    "INC-FCFS": Style(NAVY, "^"),
    "noINC-FCFS-passing": Style(INK, "1", DOTTED),
    "INC-FCFS-passing": Style(NAVY, ">", DOTTED),
    "noINC-TW": Style(MUSTARD, "s"),
    "INC-TW": Style(RED, "o"),
    "pack": Style(MINT, "D"),
    "INC-TW-NoRecon": Style(PLUM, "P"),
    "milp": Style(SKY, "X"),
    "SOAR": Style(SKY, "s"),
    "SHARP": Style(INK, "D"),
    "INARouting": Style(MINT, "P"),
    "INARouting-Opt": Style(MINT, "X"),
    "no aggregation": Style(INK, ",", DASHED),
}
"""Styles by the names in the papers' figures. `style_of` also finds planners' names, which are in lower case."""

VARIANTS = {
    "on the path": 0, "leaf-spine": 0, "by the nearest": 1, "fat-tree": 1, "one link": 1, "balanced": 1,
}  # fmt: skip
"""The variants that can follow a method's name and ", ". Those with 1 have a different marker and dash."""
SECOND_MARKER = {
    "o": "h", "s": "d", "^": ">", "D": "X", "v": "1", "P": "+", "X": "x", "*": "4", "p": "3", "H": "2", "<": "|",
}  # fmt: skip

PAPER_NAMES = {name.lower(): name for name in METHODS}


CATEGORIES = tuple(Style(color, marker) for color, marker in zip(BUILT_IN_COLORS, "os^DvPX", strict=True))
"""Styles for names other than methods."""


def style_of(name: str) -> Style:
    """Return the style of a method, of a variant such as "ESA, on the path", or of a user-defined planner.

    Raises `InputError` for other names.
    """
    exact = METHODS.get(name) or METHODS.get(PAPER_NAMES.get(name, ""))
    if exact:
        return exact
    if name in OWN:
        return own_style(list(OWN).index(name))
    method, _, variant = name.rpartition(", ")
    if variant not in VARIANTS:
        raise unknown_name("method's style (experiments/report/method_styles.py)", name, [*METHODS, *OWN])
    style = style_of(method)
    return replace(style, marker=SECOND_MARKER[style.marker], dash=DOTTED) if VARIANTS[variant] else style


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """The style of each method. Unknown names, and methods whose colour is in use, get unused colours."""
    known = {name: style for name in names if (style := known_style(name))}
    spare = cycle([style for style in CATEGORIES if style.color not in colors(known)] or CATEGORIES)
    found: dict[str, Style] = {}
    for name in names:
        clear = name in known and (", " in name or known[name].color not in colors(found))
        found[name] = known[name] if clear else next(spare)
    return found


def known_style(name: str) -> Style | None:
    """The style of a method, of a variant, or of a user-defined planner; None for other names."""
    try:
        return style_of(name)
    except InputError:
        return None


def colors(styles: Mapping[str, Style]) -> set[str]:
    return {style.color for style in styles.values()}


def paper_name(method: str) -> str:
    """A method's name in the papers' figures: "GOAT" for the planner `goat`. Other names are planners' own."""
    return PAPER_NAMES.get(method) or name_of(method)


def own_style(place: int) -> Style:
    """The style of a user-defined planner; `place` is its position in their list, from 0."""
    color, marker = OWN_COLORS[place % len(OWN_COLORS)], OWN_MARKERS[place % len(OWN_MARKERS)]
    return Style(color, marker, OWN_DASH, "//")


def categories(names: Iterable[str]) -> dict[str, Style]:
    """Styles for names other than methods (models, readings, phases of a run), in their order; seven differ."""
    return dict(zip(names, cycle(CATEGORIES), strict=False))
