"""What a fabric file may say, and the one message that a mistake in it gets.

    name: two-racks
    hosts: [h1, h2, h3]
    switches:
      leaf1: {tier: 1, pipelines: 2}
      leaf2: {tier: 1, pipelines: [[1, 2], [3]], ina: false}
      spine1: {tier: 2, aggregator_slots: 512, aggregation_rate: 10M}
    links:
      - {a: h1, b: leaf1, capacity: 20M}
      - {a: leaf1, b: spine1, capacity: 40M, capacity_back: 10M, delay: 50us, b_port: 1}

Ports that a link does not give are numbered from 1 in the order of the links. `pipelines` is a number of
contiguous port groups, or the groups.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr
from pydantic import ValidationError as ModelError

from topo.fabric.fabric import MAX_PIPELINES, Fabric, Host, Link, Switch, contiguous_pipelines

RATE_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
RATE = "a rate in bit/s greater than 0, such as 20M or 100G"
NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"


def quantity(value: object, units: Mapping[str, float]) -> float:
    """A number, or text that is a number and a unit; neither true nor NaN is a number."""
    if isinstance(value, str):
        parsed = re.fullmatch(NUMBER + rf" ?({'|'.join(units)})", value)
        if not parsed:
            raise ValueError
        return float(parsed[1]) * units[parsed[2]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def rate(value: object) -> float:
    """20000000, '20M' and '0.02G' alike, in bit/s. Raises `ValueError`."""
    bits_per_second = quantity(value, RATE_UNITS)
    if not 0 < bits_per_second < math.inf:
        raise ValueError
    return bits_per_second


def duration(value: object) -> float:
    return quantity(value, TIME_UNITS)


def port_groups(value: object) -> object:
    """Either a number of pipelines, or their ports."""
    if isinstance(value, bool) or (isinstance(value, int) and not 1 <= value <= MAX_PIPELINES):
        raise ValueError
    return value


def not_negative(value: float) -> float:
    if value < 0:
        raise ValueError
    return value


Rate = Annotated[float, BeforeValidator(rate)]
Duration = Annotated[float, BeforeValidator(duration), AfterValidator(not_negative)]
Port = Annotated[StrictInt, Field(ge=0)]


class Record(BaseModel):
    """A part of the file. Each key says, in its description, what is expected of it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class SwitchRecord(Record):
    tier: StrictInt = Field(1, description="a whole number, 1 for switches that hosts hang from")
    pipelines: Annotated[StrictInt | list[list[StrictInt]], BeforeValidator(port_groups)] = Field(
        1, description=f"a number from 1 to {MAX_PIPELINES}, or lists of port numbers"
    )
    ina: StrictBool = Field(True, description="true or false")
    aggregator_slots: StrictInt = Field(512, ge=1, description="a whole number, at least 1")
    aggregation_rate: Rate | None = Field(None, description=RATE)


class LinkRecord(Record):
    a: StrictStr = Field(description="the name of a host or switch")
    b: StrictStr = Field(description="the name of a host or switch")
    capacity: Rate = Field(description=RATE)
    capacity_back: Rate | None = Field(None, description=RATE)
    a_port: Port | None = Field(None, description="a port number")
    b_port: Port | None = Field(None, description="a port number")
    delay: Duration = Field(0.0, description="a time in seconds, or such as 50us or 1ms")
    optical: StrictBool = Field(False, description="true or false")


class FabricRecord(Record):
    name: StrictStr = Field(description="a name in letters")
    hosts: list[StrictStr] = Field(description="a list of names; quote those that YAML takes for something else")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    links: list[LinkRecord] = Field(description="a list of links")


class DocumentError(Exception):
    """What is wrong, and at which keys: ('links', 3, 'capacity')."""

    def __init__(self, where: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.where = where


def fabric_of(document: object) -> Fabric:
    """The fabric that a parsed file describes. Raises `DocumentError` for a key, `FabricError` for the whole."""
    try:
        record = FabricRecord.model_validate(document)
    except ModelError as error:
        raise explain(error) from error
    links = tuple(links_of(record))
    switches = (switch_of(name, switch, links) for name, switch in record.switches.items())
    return Fabric(record.name, tuple(map(Host, record.hosts)), tuple(switches), links)


def links_of(record: FabricRecord) -> Iterator[Link]:
    used = {(link.a, link.a_port) for link in record.links} | {(link.b, link.b_port) for link in record.links}

    def port_of(node: str, given: int | None) -> int:
        if given is not None or node not in record.switches:
            return given or 0
        free = next(port for port in range(1, len(used) + 2) if (node, port) not in used)
        used.add((node, free))
        return free

    for link in record.links:
        ports = port_of(link.a, link.a_port), port_of(link.b, link.b_port)
        back = link.capacity if link.capacity_back is None else link.capacity_back
        yield Link(link.a, link.b, *ports, link.capacity, back, link.delay, link.optical)


def switch_of(name: str, record: SwitchRecord, links: tuple[Link, ...]) -> Switch:
    if isinstance(record.pipelines, int):
        ports = [link.a_port for link in links if link.a == name] + [link.b_port for link in links if link.b == name]
        pipelines = contiguous_pipelines(max(ports, default=0), record.pipelines)
    else:
        pipelines = tuple(map(tuple, record.pipelines))
    return Switch(name, record.tier, pipelines, record.ina, record.aggregator_slots, record.aggregation_rate)


def document_of(fabric: Fabric) -> dict[str, Any]:
    """The fabric as `fabric_of` reads it, in full: `fabric_of(document_of(fabric)) == fabric`."""
    return {
        "name": fabric.name,
        "hosts": [host.name for host in fabric.hosts],
        "switches": {switch.name: switch_document(switch) for switch in fabric.switches},
        "links": [link_document(link) for link in fabric.links],
    }


def switch_document(switch: Switch) -> dict[str, Any]:
    document = {
        "tier": switch.tier,
        "pipelines": [list(ports) for ports in switch.pipelines],
        "ina": switch.ina,
        "aggregator_slots": switch.aggregator_slots,
    }
    if switch.aggregation_rate_bps is not None:
        document["aggregation_rate"] = rate_text(switch.aggregation_rate_bps)
    return document


def link_document(link: Link) -> dict[str, Any]:
    document: dict[str, Any] = {
        "a": link.a,
        "b": link.b,
        "a_port": link.a_port,
        "b_port": link.b_port,
        "capacity": rate_text(link.capacity_ab_bps),
    }
    if link.capacity_ba_bps != link.capacity_ab_bps:
        document["capacity_back"] = rate_text(link.capacity_ba_bps)
    if link.delay_s:
        document["delay"] = link.delay_s
    if link.optical:
        document["optical"] = True
    return document


def rate_text(rate_bps: float) -> str | float:
    """20000000.0 as '20M'; a rate that no unit makes whole stays a number."""
    for unit, factor in reversed(RATE_UNITS.items()):
        whole = round(rate_bps / factor)
        if unit and 1 <= whole < 10000 and whole * factor == rate_bps:
            return f"{whole}{unit}"
    return rate_bps


def explain(error: ModelError) -> DocumentError:
    """The mistake to correct first: a key that nobody knows, for a typo also makes the right key missing."""
    mistakes = error.errors(include_url=False)
    mistake = next((m for m in mistakes if m["type"] == "extra_forbidden"), mistakes[0])
    where = tuple(mistake["loc"])
    if mistake["type"] == "extra_forbidden":
        return DocumentError(where, f"unknown key{nearest_key(str(where[-1]), record_at(where[:-1]))}")
    keys = [(depth, key) for depth, key in enumerate(where) if key in record_at(where[:depth]).model_fields]
    if not keys:
        return DocumentError((), f"expected the keys {', '.join(FabricRecord.model_fields)}")
    depth, key = keys[-1]
    expected = record_at(where[:depth]).model_fields[str(key)].description
    if mistake["type"] == "missing":
        return DocumentError(where[:depth], f"key '{key}' is missing: expected {expected}")
    return DocumentError(where[: depth + 1], f"{mistake['input']!r}: expected {expected}")


def nearest_key(key: str, record: type[Record]) -> str:
    keys = list(record.model_fields)
    near = difflib.get_close_matches(key, keys, n=1)
    hint = f", did you mean '{near[0]}'?" if near else ";"
    return f"{hint} expected one of {', '.join(keys)}"


def record_at(where: tuple[str | int, ...]) -> type[Record]:
    """The record that a place in the file is in."""
    parts: dict[str | int, type[Record]] = {"switches": SwitchRecord, "links": LinkRecord}
    return parts.get(where[0], FabricRecord) if len(where) > 1 else FabricRecord


def place(where: tuple[str | int, ...]) -> str:
    """links[3].capacity"""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where).lstrip(".")
