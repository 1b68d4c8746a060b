"""Fabrics in files: YAML in and out, GraphML in. A mistake gets one message, with file, line and key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import networkx as nx
import yaml

from topo.errors import FabricError, InputError, writing
from topo.fabric.clos import DEFAULT_CAPACITY_BPS
from topo.fabric.fabric import Fabric
from topo.files.document import RATE, DocumentError, document_of, fabric_of, place, rate
from topo.files.graphml import Reading

MAX_FILE_BYTES = 8 << 20


def load_fabric(path: Path, tell: Callable[[str], None] = lambda _: None) -> Fabric:
    """The fabric of a `.yml`, `.yaml` or `.graphml` file. Raises `FabricError` that names file, place and remedy.

    What a GraphML file leaves open is assumed, and told in one line.
    """
    readers: dict[str, Callable[[Path], Fabric]] = {
        ".yml": load_yaml,
        ".yaml": load_yaml,
        ".graphml": partial(load_graphml, tell=tell),
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise FabricError(f"{path}: a fabric file ends in {', '.join(readers)}")
    return reader(path)


def save_fabric(fabric: Fabric, path: Path) -> None:
    """Write YAML that `load_fabric` reads back as an equal fabric."""
    with writing(path):
        path.write_text(to_yaml(fabric))


def to_yaml(fabric: Fabric) -> str:
    """The fabric as YAML, one switch or link a line."""
    document = document_of(fabric)
    switches = [f"  {flow(name)}: {flow(switch)}" for name, switch in document["switches"].items()]
    links = [f"  - {flow(link)}" for link in document["links"]]
    lines = [
        f"name: {flow(document['name'])}",
        f"hosts: {flow(document['hosts'])}",
        *(["switches:", *switches] if switches else ["switches: {}"]),
        *(["links:", *links] if links else ["links: []"]),
    ]
    return "\n".join(lines) + "\n"


def flow(value: object) -> str:
    """`value` as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"))
    return text.removesuffix("...\n").strip()


def parse_rate(text: str) -> float:
    """'20M' as 20e6 bit/s. Raises `InputError`."""
    try:
        return rate(text)
    except ValueError:
        raise InputError(f"'{text}': expected {RATE}") from None


def read_text(path: Path) -> str:
    """The text of a file of sane size."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FabricError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, which no fabric file is")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FabricError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FabricError(f"{path}: not text in UTF-8") from error


class PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases, which can make a short file a giant one, and without keys given twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            alias = self.get_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"alias '*{alias.anchor}': write it out", problem_mark=alias.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        if isinstance(node, yaml.MappingNode):
            refuse_twice(node)
        return node


def refuse_twice(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key is a word, not a list", problem_mark=key.start_mark)
        if key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"key '{key.value}' is given twice", problem_mark=key.start_mark)
        seen.add(key.value)


def load_yaml(path: Path) -> Fabric:
    """The fabric of a YAML file; `topo.files.document` shows what it may say."""
    text = read_text(path)
    try:
        loader = PlainLoader(text)
        tree = loader.get_single_node()
        return fabric_of(loader.construct_document(tree) if tree else None)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise FabricError(f"{path}{line}: {error.problem}") from error
    except RecursionError as error:
        raise FabricError(f"{path}: nested too deeply for a fabric file") from error
    except (yaml.YAMLError, ValueError) as error:
        raise FabricError(f"{path}: not YAML: {error}") from error
    except DocumentError as error:
        where = f": {place(error.where)}" if error.where else ""
        raise FabricError(f"{path} line {line_of(tree, error.where)}{where}: {error}") from error
    except FabricError as error:
        raise FabricError(f"{path}: {error}") from error


def line_of(tree: yaml.Node | None, where: tuple[str | int, ...]) -> int:
    """The line of the key or item at `where`, or of the nearest thing around it."""
    line = tree.start_mark.line if tree else 0
    for key in where:
        if isinstance(tree, yaml.MappingNode):
            found = [(name, value) for name, value in tree.value if name.value == str(key)]
        elif isinstance(tree, yaml.SequenceNode) and isinstance(key, int):
            found = [(value, value) for value in tree.value[key : key + 1]]
        else:
            break
        for name, value in found:
            line, tree = name.start_mark.line, value
    return line + 1


def load_graphml(
    path: Path,
    hosts_per_switch: int = 1,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    tell: Callable[[str], None] = lambda _: None,
) -> Fabric:
    """The fabric of a GraphML file, as `topo.files.graphml` reads it, which has told what it assumed."""
    text = read_text(path)
    try:
        graph = nx.parse_graphml(text, node_type=str)
        reading = Reading(graph, path.stem, hosts_per_switch, capacity_bps)
        fabric = fabric_of(reading.document())
    except DocumentError as error:
        raise FabricError(f"{path}: {place(error.where)}: {error}") from error
    except FabricError as error:
        raise FabricError(f"{path}: {error}") from error
    except (nx.NetworkXException, SyntaxError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise FabricError(f"{path}: not GraphML: {error}") from error
    tell(f"{path}: {'; '.join(reading.assumed())}")
    return fabric
