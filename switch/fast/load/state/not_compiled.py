"""What a control plane may ask of a running switch, and compiled code has nothing for."""

from __future__ import annotations

from typing import NoReturn

from switch.program.calculations import CrcParameters
from topo.errors import UnsupportedError


class NotCompiled:
    """The requests of `DataPlane` that target fast refuses."""

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        """Refuse: compiled programs divide by the polynomials that BMv2 starts with."""
        refuse(f"the polynomial {parameters.polynomial:#x} of '{calculation}'")


def refuse(what: str) -> NoReturn:
    """Raise the error for a request that names `what`."""
    raise UnsupportedError(f"{what}: target 'fast' has none for a program that is compiled")
