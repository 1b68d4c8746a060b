"""What a compiled P4 program takes of a chip's pipeline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amount:
    """How many a program takes of something, and how many the pipeline has."""

    used: int
    has: int


@dataclass(frozen=True)
class Resources:
    """What a program takes of a pipeline, by the compiler `compiler` for the chip `chip` (a profile's name).

    `stages` counts up to the last one with a table. `stateful_alus` are the units that read, modify and write
    registers. `phv_bits` are those of the containers that hold any field.
    """

    chip: str
    program: str
    compiler: str
    stages: Amount
    sram_blocks: Amount
    tcam_blocks: Amount
    stateful_alus: Amount
    phv_bits: Amount

    @property
    def amounts(self) -> dict[str, Amount]:
        """What the program takes, by name."""
        return {
            "stages": self.stages,
            "SRAM blocks": self.sram_blocks,
            "TCAM blocks": self.tcam_blocks,
            "stateful ALUs": self.stateful_alus,
            "PHV bits": self.phv_bits,
        }

    @property
    def fits(self) -> bool:
        """Whether the pipeline has all of it: the compiler counts on past the last stage, and ends without error."""
        return all(each.used <= each.has for each in self.amounts.values())
