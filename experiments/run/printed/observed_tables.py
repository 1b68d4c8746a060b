"""The tables of a run in virtual time: its most loaded links and deepest queues, and where fragments spent time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from inakit.experiments.run.observe.observed import time_unit
from inakit.experiments.run.printed.tables import NARROW, NamedTable

NAMED = 3
"""How many of the most loaded links, and of the deepest queues, each planner has rows for."""
TIMES = ("total", "slots", "sending", "queues", "delay", "server", "result")
FIGURES = {"mean": "mean", "median": "median", "p99": "99 %", "max": "most"}


def observed_tables(record: Mapping[str, Any]) -> Iterator[NamedTable]:
    """The tables for the planners of a completed `run.json` whose runs were observed; none where none was."""
    observed = {name: entry for name, entry in record["planners"].items() if "fragments" in entry}
    if observed:
        yield NamedTable(links_table(observed))
    with_trees = {name: entry for name, entry in observed.items() if entry["fragments"]["followed"]}
    if with_trees:
        yield NamedTable(fragments_table(with_trees))


def links_table(observed: Mapping[str, Any]) -> Table:
    """Rows for each planner's most loaded links, and for its deepest queues."""
    table = plain_table("links over time: the most loaded ones, and those with the deepest queues")
    table.add_column("link", no_wrap=True)
    for heading in ("utilisation\nmean", "\npeak", "queue (packets)\nmean", "\npeak"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, entry in observed.items():
        over_time = entry["links_over_time"]
        named = [*over_time["most_loaded"][:NAMED], *over_time["deepest_queues"][:NAMED]]
        for number, link in enumerate({link["link"]: link for link in named}.values()):
            table.add_row("" if number else name, *link_cells(link))
        table.add_section()
    return table


def link_cells(link: Mapping[str, Any]) -> tuple[str, ...]:
    """A link's name and figures in words."""
    return (
        link["link"],
        f"{link['utilisation_mean']:.1%}",
        f"{link['utilisation_peak']:.1%}",
        f"{link['queue_mean_packets']:.1f}",
        f"{link['queue_peak_packets']}",
    )


def fragments_table(observed: Mapping[str, Any]) -> Table:
    """Rows for each planner: how long a fragment took, and the parts of that time, in a unit that suits them."""
    table = plain_table("where fragments spent their time, from the first worker's sending to the last result")
    for heading in ("", *TIMES):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, entry in observed.items():
        for number, cells in enumerate(time_cells(entry["fragments"]["seconds"])):
            table.add_row("" if number else name, *cells)
        table.add_section()
    table.caption = "; ".join(followed(name, entry["fragments"]) for name, entry in observed.items())
    return table


def time_cells(seconds: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """For each figure its name with its unit, and its value for each part; nothing where no fragment was followed."""
    unit, factor = time_unit(seconds["total"]["max"] if seconds else 0.0)
    for figure, heading in FIGURES.items() if seconds else ():
        yield f"{heading} ({unit})", *(f"{factor * seconds[part][figure]:.3f}" for part in TIMES)


def followed(name: str, fragments: Mapping[str, Any]) -> str:
    """How many fragments the figures of a planner are of, in words."""
    which = "all" if fragments["every"] == 1 else f"one of {fragments['every']}:"
    lacking = f", {fragments['incomplete']:,} not to their end" if fragments["incomplete"] else ""
    return f"{name}: {which} {fragments['followed']:,} fragments{lacking}"


def plain_table(title: str) -> Table:
    """A table as the report's first one, whose first column has the planners' names."""
    table = Table(title=title, **NARROW)
    table.add_column("planner", no_wrap=True)
    return table
