"""What network files of all formats say in the same words: amounts, delays, addresses."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_interface
from typing import Annotated, Any

from pydantic import BeforeValidator

DELAY = re.compile(r"\d+(\.\d+)? ?(s|secs?|ms|msecs?|us|usecs?|ns|nsecs?)?")
MAC = re.compile(r"([0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}")


def amount(value: Any) -> Any:
    """The number in a text such as "0.5"; anything else is as it was."""
    return float(value) if isinstance(value, str) else value


def delay(value: Any) -> Any:
    """A delay as `tc` takes it: a number is in milliseconds; a text has a unit, or `tc` takes it for microseconds."""
    if isinstance(value, str) and DELAY.fullmatch(value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return f"{value}ms"
    raise ValueError(value)


def address(value: Any) -> Any:
    """The text of an IP address, which may have a prefix. Raises `ValueError` for any other text."""
    if isinstance(value, str):
        ip_interface(value)
    return value


def gateway(value: Any) -> Any:
    """The IP address in a text such as "via 10.0.1.1", or alone."""
    return str(ip_address(value.removeprefix("via ").strip())) if isinstance(value, str) else value


def mac(value: Any) -> Any:
    """The text of a MAC address. Raises `ValueError` for any other text."""
    if isinstance(value, str) and not MAC.fullmatch(value):
        raise ValueError(value)
    return value


Amount = Annotated[float, BeforeValidator(amount)]
Delay = Annotated[str, BeforeValidator(delay)]
Address = Annotated[str, BeforeValidator(address)]
Gateway = Annotated[str, BeforeValidator(gateway)]
Mac = Annotated[str, BeforeValidator(mac)]


def with_prefix(given: str, bits: int) -> str:
    """An address with its prefix, which has so many bits if the file does not say."""
    return given if "/" in given else f"{given}/{bits}"
