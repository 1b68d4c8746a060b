"""The structure of the code: nothing imports from a higher package or in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("topo", "switch", "planner", "traffic", "experiments")
"""The packages from the lowest to the highest: each imports only from itself and from those before it."""


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module by its dotted name, for `__init__` the package's; `planner/own` is left out."""
    found = {}
    for path in (path for package in FLOORS for path in (ROOT / "inakit" / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not name.startswith("inakit.planner.own."):
            found[name] = ast.parse(path.read_text())
    return found


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports anywhere, and those that it names in a text, for `import_module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and ":" in node.value:
            named = node.value.partition(":")[0]  # module:attribute, as targets and planners are named
            yield from (named, f"inakit.planner.methods.{named}")


@cache
def graph() -> nx.DiGraph[str]:
    """An edge from every module to each one that it imports."""
    found: nx.DiGraph[str] = nx.DiGraph()
    for name, tree in modules().items():
        found.add_edges_from((name, other) for other in imports(tree) if other in modules() and other != name)
    return found


def room(name: str, depth: int) -> str:
    """The folder of a module, cut off after `depth` levels."""
    return ".".join(name.split(".")[:-1][:depth]) or name


def rooms(depth: int) -> nx.DiGraph[str]:
    """An edge from every folder to each other one that its files import from, unless one contains the other."""
    found: nx.DiGraph[str] = nx.DiGraph()
    for name, other in graph().edges:
        one, two = room(name, depth), room(other, depth)
        if one != two and not f"{one}.".startswith(f"{two}.") and not f"{two}.".startswith(f"{one}."):
            found.add_edge(one, two)
    return found


def circles(of: nx.DiGraph[str]) -> list[list[str]]:
    return [sorted(circle) for circle in nx.strongly_connected_components(of) if len(circle) > 1]


def test_no_module_imports_in_a_circle() -> None:
    assert circles(graph()) == []


@pytest.mark.parametrize("depth", range(2, 7))
def test_no_rooms_import_each_other(depth: int) -> None:
    assert circles(rooms(depth)) == []


def test_packages_import_only_from_those_below() -> None:
    up = [
        (name, other)
        for name, other in graph().edges
        if FLOORS.index(name.split(".")[1]) < FLOORS.index(other.split(".")[1])
    ]
    assert up == []


def test_planners_know_of_switches_only_what_entries_are() -> None:
    known = {
        other
        for name, other in graph().edges
        if name.startswith("inakit.planner.") and other.startswith("inakit.switch")
    }
    assert known == {"inakit.switch.entries"}
