"""What a person reads at the end of a run: planned against measured, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def planners_table(record: Mapping[str, Any]) -> Table:
    """One row per planner; a pair of figures is planned, then measured."""
    fabric = record["fabric"]
    table = Table(
        title=f"{fabric['name']}: {fabric['switches']} switches, {fabric['hosts']} hosts, {fabric['workers']} workers; "
        f"switch {record['switch']}, {record['mode']}",
        caption="planned → measured, per iteration; bits and bytes are those of whole frames",
    )
    table.add_column("planner", no_wrap=True)
    for column in ("sending rate (Mbit/s)", "PS ingress (kB)", "communication time (ms)", "aggregation ratio"):
        table.add_column(column, justify="right")
    table.add_column("sums", justify="center")
    table.add_column("verdict", justify="center", no_wrap=True)
    for name, entry in record["planners"].items():
        table.add_row(name, *figures(entry), exactness(entry), verdict(entry))
    return table


def figures(entry: Mapping[str, Any]) -> list[str]:
    planned, measured = entry["planned"], entry.get("measured")
    return [
        pair(planned, measured, "sending_rate_bps", 1e-6, 3),
        pair(planned, measured, "ps_ingress_bytes", 1e-3, 1),
        pair(planned, measured, "communication_time_s", 1e3, 1),
        pair(planned, measured, "aggregation_ratio", 1, 2),
    ]


def pair(planned: Mapping[str, Any], measured: Mapping[str, Any] | None, key: str, factor: float, digits: int) -> str:
    """`planned → measured (difference)`."""
    left = planned[key] * factor
    if measured is None or measured.get(key) is None:
        return f"{left:.{digits}f} → -"
    right = measured[key] * factor
    return f"{left:.{digits}f} → {right:.{digits}f} ({difference(left, right)})"


def difference(planned: float, measured: float) -> str:
    return f"{(measured - planned) / planned:+.1%}" if planned else "n/a"


def exactness(entry: Mapping[str, Any]) -> str:
    exact = (entry.get("measured") or {}).get("exact")
    return {True: "[green]exact[/]", False: "[bold red]WRONG[/]", None: "-"}[exact]


def verdict(entry: Mapping[str, Any]) -> str:
    word = entry.get("verdict", "-")
    return f"[{VERDICT_STYLES.get(word, 'bold yellow')}]{word}[/]"
