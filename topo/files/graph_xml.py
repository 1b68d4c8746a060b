"""The graph of GraphML text, read so that nothing of it is dropped or made up without a word."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    import networkx as nx


def parsed(text: str) -> nx.Graph[str]:
    """The graph of a GraphML file's text, with its nodes' ids. Raises `ValueError` for what is none.

    Refuses what networkx drops or makes up without a word: what is given twice, nodes of edges that are not declared,
    further graphs, and nodes within nodes.
    """
    import networkx as nx  # noqa: PLC0415, it takes long to import

    try:
        root = ElementTree.fromstring(text)
        ids = declared_nodes(root)
        with warnings.catch_warnings(action="error"):  # networkx warns of elements that it leaves out
            graph: nx.Graph[str] = nx.parse_graphml(text, node_type=str)
    except UserWarning as warning:
        raise ValueError(f"{str(warning).rstrip('.')}: leave it out") from warning
    except (nx.NetworkXException, SyntaxError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    for lost in ids - set(graph):
        raise ValueError(f"node '{lost}' is inside another node: a fabric has no such groups, move it out")
    return graph


def declared_nodes(root: ElementTree.Element) -> set[str]:
    """The ids of all nodes. Raises `ValueError` for what is given twice, and for an edge to an unknown node."""
    graphs = [element for element in root if local_name(element) == "graph"]
    if len(graphs) > 1:
        raise ValueError(f"it has {len(graphs)} graphs: a fabric is one, keep one of them")
    attributes = {key.get("id"): key.get("attr.name") for key in root if local_name(key) == "key"}
    ids: Counter[str] = Counter()
    for element in root.iter():
        kind = local_name(element)
        if kind == "node":
            ids[element.get("id", "")] += 1
        if kind in ("node", "edge"):
            keys = Counter(each.get("key") for each in element if local_name(each) == "data")
            given = Counter(attributes.get(key) or key for key in keys.elements())
            for name in (name for name, count in given.items() if count > 1):
                raise ValueError(f"{described(element)} has two values of '{name}': keep one of them")
    for name in (name for name, count in ids.items() if count > 1):
        raise ValueError(f"node '{name}' is given twice: every node needs its own id")
    for edge in (element for element in root.iter() if local_name(element) == "edge"):
        for end in ("source", "target"):
            if edge.get(end, "") not in ids:
                raise ValueError(f"{described(edge)}: no node has the id '{edge.get(end, '')}'")
    return set(ids)


def local_name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def described(element: ElementTree.Element) -> str:
    """A node or an edge as error messages call it."""
    if local_name(element) == "node":
        return f"node '{element.get('id', '')}'"
    return f"edge '{element.get('source', '')}'-'{element.get('target', '')}'"
