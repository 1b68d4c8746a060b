"""`inakit planners`: the planners and schedulers by name; `inakit planners new`: a planner to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from inakit.planner.core.method import Method
from inakit.planner.core.option_texts import own_options
from inakit.planner.new_planner import write_package, write_planner
from inakit.planner.registry import KIT, METHODS, OWN, SCHEDULERS
from inakit.topo.errors import InputError

Load = Annotated[
    bool, typer.Option("--load", help="run the code of all: what their options are, and which cannot be used, and why")
]


def list_planners(load: Load = False) -> None:
    """List the planners, and the schedulers of optical circuits."""
    for name, line in KIT.items():
        print(f"{name:16} {line.summary}{options_of(METHODS[name]) if load else ''}")
    if OWN:
        print("\nplanners of your own, which take part in every comparison:")
    for name in OWN:
        print(f"{name:16} {own_line(name, load=load)}")
    print("\nschedulers of optical circuits (P4INC-AOI), for `inakit reproduce p4inc-aoi`:")
    for name, line in SCHEDULERS.items():
        print(f"{name:16} {line.summary}")
    print("\n`inakit design` chooses the network itself, for a cluster of optical links (ATRO).")
    if not load:
        print("`inakit planners --load` shows options too, and whether planners of your own can be used.")
    print("`inakit planners new mine.py` writes a planner of your own, for `--planner ./mine.py`.")


def own_line(name: str, *, load: bool) -> str:
    """What is said of a planner of one's own: where it comes from, and with its code run the summary or the error."""
    own = OWN[name]
    if not load and not own.clash:
        return own.where
    try:
        return f"{own.method.summary}{options_of(own.method)} ({own.where})"
    except InputError as error:
        return f"CANNOT BE USED: {error}"


def options_of(method: Method[Any]) -> str:
    """The options that may follow a planner's name, as in `soar:switches=8`, with what they are otherwise."""
    known = [f"{key}={getattr(method.options(), key)}" for key in own_options(method)]
    return f" [:{', :'.join(known)}]" if known else ""


def new(
    file: Annotated[Path, typer.Argument(help="a new .py file")] = Path("mine.py"),
    package: Annotated[
        Path | None, typer.Option(help="a folder such as ina-mine: a package with pyproject.toml and a test instead")
    ] = None,
) -> None:
    """Write a planner of your own to begin with: a file, or a package of its own."""
    if package is not None:
        name = write_package(package, KIT)
        print(f"wrote {package}: install it with `pip install --editable {package}`, and try it:")
        print(f"inakit plan --topo fattree --planner {name},aro")
        return
    write_planner(file, KIT)
    path = file if file.parent != Path() else f"./{file}"
    print(f"wrote {file}; try it:")
    print(f"inakit plan --topo fattree --planner {path},aro")
    print(f"inakit emulate --topo fattree --switch virtual --planners {path},aro")
