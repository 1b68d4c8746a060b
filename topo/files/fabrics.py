"""Fabrics in files: YAML in and out, GraphML in. A mistake gets one message, with file, line and key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml

from topo.errors import FabricError, writing
from topo.fabric.clos import DEFAULT_CAPACITY_BPS
from topo.fabric.fabric import Fabric
from topo.files.fabric_records import FabricRecord, document_of, fabric_of
from topo.files.graphml import Reading
from topo.files.reader import FileKind, ParsedFile, read_file, read_text
from topo.files.validation import validate

MAX_FILE_BYTES = 8 << 20
YAML = FileKind("fabric file", MAX_FILE_BYTES, error=FabricError, tells_lines=True)
GRAPHML = FileKind("fabric file", MAX_FILE_BYTES, error=FabricError)


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
    chips = document["chips"]
    lines = [
        f"name: {flow(document['name'])}",
        f"hosts: {flow(document['hosts'])}",
        *(["switches:", *switches] if switches else ["switches: {}"]),
        *(["links:", *links] if links else ["links: []"]),
        *(["chips:", *(f"  {flow(name)}: {flow(chip)}" for name, chip in chips.items())] if chips else []),
    ]
    return "\n".join(lines) + "\n"


def flow(value: object) -> str:
    """A value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"))
    return text.removesuffix("...\n").strip()


def load_yaml(path: Path) -> Fabric:
    """The fabric of a YAML file; `topo.files.fabric_records` shows what it may say. Raises `FabricError`."""
    return described(read_file(path, YAML))


def described(file: ParsedFile) -> Fabric:
    """The fabric that a parsed file describes. Raises `FabricError`."""
    record = validate(file, FabricRecord)
    try:
        return fabric_of(record)
    except FabricError as error:
        raise FabricError(f"{file.path}: {error}") from error


def load_graphml(
    path: Path,
    hosts_per_switch: int = 1,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    tell: Callable[[str], None] = lambda _: None,
) -> Fabric:
    """The fabric of a GraphML file, as `topo.files.graphml` reads it, after telling what was assumed.

    A link without a capacity gets `capacity_bps`, and in a graph without hosts each switch gets `hosts_per_switch`.
    Raises `FabricError`.
    """
    import networkx as nx  # noqa: PLC0415, it takes long to import

    text = read_text(path, GRAPHML)
    try:
        graph = nx.parse_graphml(text, node_type=str)
        reading = Reading(graph, path.stem, hosts_per_switch, capacity_bps)
        document = reading.document()
    except (nx.NetworkXException, SyntaxError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise FabricError(f"{path}: not GraphML: {error}") from error
    fabric = described(ParsedFile(path, GRAPHML, document))
    tell(f"{path}: {'; '.join(reading.assumed())}")
    return fabric
