"""The messages of P4Runtime, made of the descriptions that the package `p4runtime` carries.

The classes in that package were generated for protobuf before 4, and no later protobuf loads them, so that only the
serialized descriptions are taken from its files. `v1.TableEntry` is the class of the message `p4.v1.TableEntry`,
`config.P4Info` that of `p4.config.v1.P4Info`.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from topo.errors import MachineError

try:
    from google.protobuf import any_pb2, descriptor_pool, message_factory
    from google.rpc import status_pb2
except ImportError as error:
    raise MachineError(
        f"{error}: P4Runtime needs the packages grpcio, protobuf and p4runtime: inakit[server]"
    ) from None

Message = Any
"""A message of a class that is made while the program runs."""

FILES = ("p4.config.v1.p4types_pb2", "p4.config.v1.p4info_pb2", "p4.v1.p4data_pb2", "p4.v1.p4runtime_pb2")
"""The modules with the descriptions, each after those that it needs."""


def description(module: str) -> bytes:
    """The serialized description in a generated module: the longest bytes that it writes down."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise MachineError(f"there is no module '{module}': install the package p4runtime, of inakit[server]")
    tree = ast.parse(Path(found.origin).read_text())
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, bytes))
    return max(texts, key=len)


class Package:
    """The classes of all messages of a protobuf package, by their names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """The class of the message `name`, of which there is only one."""
        found = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{self.name}.{name}"))
        setattr(self, name, found)
        return found


POOL = descriptor_pool.Default()
for _file in FILES:
    POOL.AddSerializedFile(description(_file))
v1, config = Package("p4.v1"), Package("p4.config.v1")
Any_, Status = any_pb2.Any, status_pb2.Status


def packed(message: Message) -> Message:
    """A message in an `Any`."""
    wrapped = Any_()
    wrapped.Pack(message)
    return wrapped
