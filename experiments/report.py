"""What a person reads at the end of a run: planned against measured, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

VALID = "VALID"
VERDICT_STYLES = {VALID: "green", "OVERLOADED": "bold red"}


def print_report(console: Console, record: Mapping[str, Any]) -> None:
    """Print the table of a completed `run.json`, then the verdict and why."""
    console.print(planners_table(record))
    style = VERDICT_STYLES.get(record["verdict"], "bold yellow")
    console.print(f"verdict: [{style}]{record['verdict']}[/]", highlight=False)
    for reason in record["reasons"]:
        console.print(f"  - {reason}", highlight=False, markup=False, soft_wrap=True)
    if record["verdict"] != VALID:
        console.print("The figures of an overloaded run are not results: it is the emulation that was measured.")


COLUMNS = (
    ("sending_rate_bps", "sending rate\n(Mbit/s)", 1e-6, 3),
    ("ps_ingress_bytes", "PS ingress\n(kB)", 1e-3, 1),
    ("communication_time_s", "comm. time\n(ms)", 1e3, 1),
    ("aggregation_ratio", "aggregation\nratio", 1, 2),
)
"""Key of a figure, heading, factor from the key's unit to the heading's, and digits."""


def planners_table(record: Mapping[str, Any]) -> Table:
    """Two rows per planner: planned, and below it measured with the difference."""
    fabric = record["fabric"]
    table = Table(
        title=f"{fabric['name']}: {fabric['switches']} switches, {fabric['hosts']} hosts, {fabric['workers']} workers; "
        f"switch {record['switch']}, {record['mode']}",
        caption="per iteration; bits and bytes are those of whole frames",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("planner", no_wrap=True)
    table.add_column("", no_wrap=True)
    for _, heading, _, _ in COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("sums", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name, entry in record["planners"].items():
        planned, found = entry["planned"], entry.get("measured") or {}
        table.add_row(name, "planned", *(figure(planned, *column) for column in COLUMNS))
        measured = (figure(found, *column, planned) for column in COLUMNS)
        table.add_row("", "measured", *measured, exactness(entry), verdict(entry), end_section=True)
    return table


def figure(
    figures: Mapping[str, Any],
    key: str,
    _heading: str,
    factor: float,
    digits: int,
    planned: Mapping[str, Any] | None = None,
) -> str:
    """One figure in the heading's unit; with its difference to the planned one, where that is given."""
    if figures.get(key) is None:
        return "-"
    text = f"{figures[key] * factor:.{digits}f}"
    return text if planned is None or planned[key] is None else f"{text} {difference(planned[key], figures[key])}"


def difference(planned: float, measured: float) -> str:
    return f"{(measured - planned) / planned:+.1%}" if planned else "n/a"


def exactness(entry: Mapping[str, Any]) -> str:
    exact = (entry.get("measured") or {}).get("exact")
    return {True: "[green]exact[/]", False: "[bold red]WRONG[/]", None: "-"}[exact]


def verdict(entry: Mapping[str, Any]) -> str:
    word = entry.get("verdict", "-")
    return f"[{VERDICT_STYLES.get(word, 'bold yellow')}]{word}[/]"
