"""The rates of a direct meter's cells, which outlast the table entries that they measure."""

from __future__ import annotations

from inakit.switch.control.data_plane import Rates


class DirectRates:
    """Rates by the index of entries' handles: as in BMv2, an entry takes over what its cell was given before."""

    def __init__(self) -> None:
        self.of_others: Rates = ()
        self.cells: dict[int, Rates] = {}

    def at(self, index: int) -> Rates:
        """The rates of one cell."""
        return self.cells.get(index, self.of_others)

    def set(self, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell, or of all (`index` None)."""
        if index is None:
            self.of_others = rates
            self.cells.clear()
        else:
            self.cells[index] = rates
