"""`inakit labs list`: the labs of the course."""

from __future__ import annotations

from inakit.experiments.labs.registry import LABS


def list_labs() -> None:
    """The labs, what students write, hours and points."""
    for lab in LABS.values():
        points = sum(item.points for item in lab.items)
        print(f"{lab.name:10} {lab.title:40} {lab.hours:>8} hours  {points} points  {', '.join(lab.files)}")
