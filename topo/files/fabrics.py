"""Read fabrics from YAML, JSON and GraphML, and write YAML. A mistake gets one message with file, line and key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from inakit.topo.errors import FabricError, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import DEFAULT_CAPACITY_BPS
from inakit.topo.files.fabric_records import FabricRecord, document_of, fabric_of
from inakit.topo.files.graphml import Reading, parsed, told, with_network_cards
from inakit.topo.files.reader import FileKind, ParsedFile, read_file, read_text, validate

if TYPE_CHECKING:
    import networkx as nx

MAX_FILE_BYTES = 8 << 20
YAML = FileKind("fabric file", MAX_FILE_BYTES, error=FabricError, tells_lines=True)
GRAPHML = FileKind("fabric file", MAX_FILE_BYTES, error=FabricError)
GRAPHML_SUFFIX = ".graphml"
FABRIC_SUFFIXES = (".yml", ".yaml", ".json", GRAPHML_SUFFIX)


def load_fabric(
    path: Path, tell: Callable[[str], None] = lambda _: None, capacity_bps: float = DEFAULT_CAPACITY_BPS
) -> Fabric:
    """Read the fabric of a file with a suffix of `FABRIC_SUFFIXES`. Raises `FabricError` with file, place and remedy.

    `tell` gets a line about hosts with several links and a line about the assumptions for a GraphML file. If the file
    states no capacity, every link has `capacity_bps`.
    """
    suffix = path.suffix.lower()
    if suffix not in FABRIC_SUFFIXES:
        raise FabricError(f"{path}: a fabric file ends in {', '.join(FABRIC_SUFFIXES)}")
    return load_graphml(path, 1, capacity_bps, tell) if suffix == GRAPHML_SUFFIX else load_yaml(path, tell)


def save_fabric(fabric: Fabric, path: Path) -> None:
    """Write YAML that `load_fabric` reads back as an equal fabric."""
    with writing(path):
        path.write_text(to_yaml(fabric))


def to_yaml(fabric: Fabric) -> str:
    """The fabric as YAML, with one switch or link per line."""
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
    text: str = yaml.dump(value, Dumper=DUMPER, default_flow_style=True, sort_keys=False, width=ONE_LINE)
    return text.removesuffix("...\n").strip()


DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The dumper in C, which is several times as fast, where PyYAML has it."""
ONE_LINE = 1 << 30


def load_yaml(path: Path, tell: Callable[[str], None] = lambda _: None) -> Fabric:
    """Read the fabric of a YAML or JSON file; `fabric_records` shows its keys. Raises `FabricError`."""
    return described(read_file(path, YAML), tell)


def described(file: ParsedFile, tell: Callable[[str], None] = lambda _: None) -> Fabric:
    """The fabric that a parsed file describes. Raises `FabricError`."""
    record = validate(file, FabricRecord)
    try:
        record, cards = with_network_cards(record)
        fabric = fabric_of(record)
    except FabricError as error:
        raise FabricError(f"{file.path}: {error}") from error
    if cards:
        tell(f"{file.path}: {told(cards)}")
    return fabric


def load_graphml(
    path: Path,
    hosts_per_switch: int = 1,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    tell: Callable[[str], None] = lambda _: None,
) -> Fabric:
    """Read the fabric of a GraphML file with `inakit.topo.files.graphml`, and tell its assumptions.

    In a graph without hosts each switch gets `hosts_per_switch`. If the file states no capacity, links have
    `capacity_bps`. Raises `FabricError`.
    """
    try:
        graph = parsed(read_text(path, GRAPHML))
        return fabric_of_graph(graph, path.stem, path, hosts_per_switch, capacity_bps, tell)
    except ValueError as error:
        raise FabricError(f"{path}: not GraphML: {error}") from error


def fabric_of_graph(
    graph: nx.Graph[str],
    name: str,
    place: Path,
    hosts_per_switch: int = 1,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    tell: Callable[[str], None] = lambda _: None,
) -> Fabric:
    """The fabric of a graph whose nodes and edges have the attributes of a GraphML file. Messages begin with `place`.

    Raises `FabricError`, and `ValueError` for invalid attributes.
    """
    reading = Reading(graph, name, hosts_per_switch, capacity_bps)
    fabric = described(ParsedFile(place, GRAPHML, reading.document()), tell)
    tell(f"{place}: {'; '.join(reading.told())}")
    return fabric
