"""Refusals of the control plane as exceptions of the Thrift services."""

from __future__ import annotations

from typing import Any

from switch.control.refusals import Refused
from switch.server.thrift.description import description

EXCEPTIONS = {
    "table": ("InvalidTable", "TableCode"),
    "counter": ("InvalidCounter", "CounterCode"),
    "meter": ("InvalidMeter", "MeterCode"),
    "register": ("InvalidRegister", "RegisterCode"),
    "parse_vset": ("InvalidValueSet", "ValueSetCode"),
    "learn": ("InvalidLearn", "LearnCode"),
    "mc": ("InvalidReplication", "ReplicationCode"),
    "mirroring": ("InvalidMirroring", "MirroringCode"),
    "swap": ("InvalidSwap", "SwapCode"),
    "dev_mgr": ("InvalidPort", "PortCode"),
    "crc": ("InvalidCrc", "CrcCode"),
    "toeplitz": ("InvalidToeplitz", "ToeplitzCode"),
    "id_lookup": ("InvalidLookup", "LookupCode"),
}
"""The exception of each group of refusals, and the numbers of its codes."""


def exception_of(refused: Refused) -> Any:
    """The exception that tells a client why it is refused."""
    exception, codes = EXCEPTIONS[refused.kind.group]
    number = getattr(getattr(description(), codes), refused.kind.code.upper())
    return getattr(description(), exception)(number)


def error_of(result: Any) -> Any | None:
    """The exception of a function for an error that has no code of its own; None if it has no such exception."""
    raised = next((field for field in result.thrift_spec.values() if field[1] == "ouch"), None)
    codes = dict(EXCEPTIONS.values())
    error = getattr(getattr(description(), codes[raised[2].__name__]), "ERROR", None) if raised else None
    return raised[2](error) if raised and error is not None else None
