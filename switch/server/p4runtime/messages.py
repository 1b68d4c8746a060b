"""The messages of P4Runtime, made of the descriptions that the package `p4runtime` carries.

Its modules cannot be imported: the latest, 1.6.0, were generated for protobuf before 4, and a later protobuf refuses
them ("Descriptors cannot be created directly"). So only the serialized descriptions are taken from its files.
`v1.TableEntry` is the class of the message `p4.v1.TableEntry`, `config.P4Info` that of `p4.config.v1.P4Info`.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.rpc import status_pb2

from inakit.topo.errors import lacking

Message = Any
"""A message of a class that is made while the program runs."""

FILES = ("p4.config.v1.p4types_pb2", "p4.config.v1.p4info_pb2", "p4.v1.p4data_pb2", "p4.v1.p4runtime_pb2")
"""The modules with the descriptions, each after those that it needs."""


def description(module: str) -> bytes:
    """The serialized description in a generated module: the longest bytes that it writes down."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise lacking("p4", "P4Runtime")
    tree = ast.parse(Path(found.origin).read_text())
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, bytes))
    return max(texts, key=len)


def classes(*files: str) -> Message:
    """The classes of the messages that files of one package describe, as attributes."""
    found = [message for file in files for message in POOL.FindFileByName(file).message_types_by_name.values()]
    return SimpleNamespace(**{message.name: kept_class(message) for message in found})


def kept_class(described: Message) -> Message:
    """The class of a message; it stays for good, as do those of the messages inside it.

    protobuf's C extension finds a class that is made at run time by a pointer that does not hold it. Such a class is
    garbage while there is no message of it, and one that a thread finds while the collector takes it apart in another
    ends the process: seen with 6.33 and 7.36. Classes of generated modules are held by these.
    """
    found = message_factory.GetMessageClass(described)
    KEPT.append(found)
    for inner in described.nested_types:
        kept_class(inner)
    return found


KEPT: list[Message] = []
"""All classes that were made."""
POOL = descriptor_pool.Default()
for _file in FILES:
    POOL.AddSerializedFile(description(_file))
v1 = classes("p4/v1/p4data.proto", "p4/v1/p4runtime.proto")
config = classes("p4/config/v1/p4types.proto", "p4/config/v1/p4info.proto")
Any_, Status = any_pb2.Any, status_pb2.Status


def packed(message: Message) -> Message:
    wrapped = Any_()
    wrapped.Pack(message)
    return wrapped
