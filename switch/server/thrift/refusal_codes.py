"""Refusals as the exceptions that the functions of the Thrift services declare, each of which carries a code."""

from __future__ import annotations

from typing import Any

from inakit.switch.control.refusals import Refused
from inakit.switch.server.thrift.description import description
from inakit.topo.errors import InakitError

CODES = {
    "InvalidTable": "TableCode",
    "InvalidCounter": "CounterCode",
    "InvalidMeter": "MeterCode",
    "InvalidRegister": "RegisterCode",
    "InvalidValueSet": "ValueSetCode",
    "InvalidLearn": "LearnCode",
    "InvalidReplication": "ReplicationCode",
    "InvalidMirroring": "MirroringCode",
    "InvalidSwap": "SwapCode",
    "InvalidPort": "PortCode",
    "InvalidCrc": "CrcCode",
    "InvalidToeplitz": "ToeplitzCode",
    "InvalidLookup": "LookupCode",
}
"""The codes of each exception."""


def exception_of(error: InakitError, result: Any) -> Any | None:
    """The exception that a function with this result structure declares for an error.

    Its code is that of the refusal, or ERROR where the exception has no such code; None if it has neither.
    """
    declared = next((field[2] for field in result.thrift_spec.values() if field[1] == "ouch"), None)
    if declared is None:
        return None
    codes: dict[str, int] = getattr(description(), CODES[declared.__name__])._NAMES_TO_VALUES
    named = error.kind.code.upper() if isinstance(error, Refused) else ""
    code = codes.get(named, codes.get("ERROR"))
    return None if code is None else declared(code)
