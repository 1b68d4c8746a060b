"""`inakit planners`: the planners and schedulers by name."""

from __future__ import annotations

from planner.registry import BROKEN, METHODS, SCHEDULERS


def planners() -> None:
    """List the planners, and the schedulers of optical circuits."""
    for name, method in METHODS.items():
        print(f"{name:16} {method.summary}")
    for name, error in BROKEN.items():
        print(f"{name:16} CANNOT BE USED: {error}")
    print("\nschedulers of optical circuits (P4INC-AOI), for `inakit reproduce p4inc-aoi`:")
    for name, scheduler in SCHEDULERS.items():
        print(f"{name:16} {scheduler.summary}")
    print("\n`inakit design` chooses the network itself, for a cluster of optical links (ATRO).")
