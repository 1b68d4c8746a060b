"""The messages of P4Runtime, built from the descriptions in the package `p4runtime`.

The package's modules cannot be imported: the latest, 1.6.0, were generated for protobuf before 4, and a later protobuf
refuses them ("Descriptors cannot be created directly"). So only the serialized descriptions are taken from its files.
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
"""A message; its class is made at run time."""

FILES = ("p4.config.v1.p4types_pb2", "p4.config.v1.p4info_pb2", "p4.v1.p4data_pb2", "p4.v1.p4runtime_pb2")
"""The modules with the descriptions, in the order of their dependencies."""


def description(module: str) -> bytes:
    """The serialized description in a generated module: the longest bytes literal."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise lacking("p4", "P4Runtime")
    tree = ast.parse(Path(found.origin).read_text())
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, bytes))
    return max(texts, key=len)


def classes(*files: str) -> Message:
    """The message classes of one package's files, as attributes."""
    found = [message for file in files for message in POOL.FindFileByName(file).message_types_by_name.values()]
    return SimpleNamespace(**{message.name: kept_class(message) for message in found})


def kept_class(described: Message) -> Message:
    """The class of a message; it and the classes of nested messages are never freed.

    protobuf's C extension finds a class that is made at run time by a pointer that does not hold it. Without a message,
    such a class is garbage; if one thread finds it while the collector destroys it in another, the process crashes:
    seen with 6.33 and 7.36. Generated modules hold their classes.
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
