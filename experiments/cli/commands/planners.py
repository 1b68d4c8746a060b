"""`inakit planners`: the planners and schedulers by name."""

from __future__ import annotations

from typing import Any

from inakit.planner.core.method import Method
from inakit.planner.core.option_texts import own_options
from inakit.planner.registry import BROKEN, METHODS, SCHEDULERS


def planners() -> None:
    """List the planners, and the schedulers of optical circuits."""
    for name, method in METHODS.items():
        print(f"{name:16} {method.summary}{options_of(method)}")
    for name, error in BROKEN.items():
        print(f"{name:16} CANNOT BE USED: {error}")
    print("\nschedulers of optical circuits (P4INC-AOI), for `inakit reproduce p4inc-aoi`:")
    for name, scheduler in SCHEDULERS.items():
        print(f"{name:16} {scheduler.summary}")
    print("\n`inakit design` chooses the network itself, for a cluster of optical links (ATRO).")


def options_of(method: Method[Any]) -> str:
    """The options that may follow a planner's name, as in `soar:switches=8`, with what they are otherwise."""
    known = [f"{key}={getattr(method.options(), key)}" for key in own_options(method)]
    return f" [:{', :'.join(known)}]" if known else ""
