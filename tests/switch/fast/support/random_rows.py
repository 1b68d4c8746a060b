"""Random programs with rows of fields and registers, and statements that p4c has repeated along them."""

from __future__ import annotations

from random_programs import RandomProgram
from random_statements import Field, Json, cut, field_argument, operation

LENGTH = 20
"""The length of each row, in words."""


class RandomRows(RandomProgram):
    """A random program whose packets end in a row of words, with rows of registers.

    Some statements are repeated along rows. A repetition steps on by one word; the rows that it uses may begin at
    different words, so that one repetition changes what another has still to read. Metadata that nothing else names
    hold numbers between statements.
    """

    def __init__(self, seed: int, size: int = 6) -> None:
        self.words: list[Field] = []
        self.own: list[Field] = []
        super().__init__(seed, size)

    def declare(self, name: str, widths: list[int], metadata: bool = False) -> None:
        """Declare a header; that of each packet gets the row, and the metadata get those of the statements."""
        row = LENGTH if name == "test" else 4 if metadata else 0
        filled = [*widths, -sum(widths) % 8] if row and sum(widths) % 8 and self.chance(0.8) else widths
        super().declare(name, [*filled, *[32] * row], metadata)
        declared = self.headers[name]
        if name == "test":
            self.words = declared[len(filled) : len(filled) + LENGTH]
        if metadata:
            self.own = declared[len(filled) : len(filled) + row]
            self.headers[name] = [field for field in declared if field not in self.own]
            self.fields = [field for field in self.fields if field not in self.own]

    def declare_state(self) -> None:
        """Draw what other programs have, and two rows of registers of one size."""
        super().declare_state()
        size = self.random.choice((1, 8, 100))
        self.document["register_arrays"] += [
            {"name": f"row{row}.{n}", "id": 100 * row + n, "size": size, "bitwidth": 32}
            for row in (1, 2)
            for n in range(LENGTH)
        ]

    def action(self, most_parameters: int) -> Json:
        """An action that may end in repeated statements."""
        made = super().action(most_parameters)
        if self.chance(0.6):
            made["primitives"] += self.repeated()
        return made

    def repeated(self) -> list[Json]:
        """Some statements, repeated for one word after the other."""
        self.parameters = []
        index = self.index()
        before, scratch = (field_argument(each) for each in (self.own[0], self.own[1]))
        firsts = [self.random.choice((0, 0, 0, 1)) for _ in range(4)]
        kinds = [self.random.choice(("read", "write", "add", "keep", "copy")) for _ in self.some(1, 4)]
        any_word, shared = self.chance(0.2), field_argument(self.random.choice(self.words))
        made: list[Json] = [{"op": "assign", "parameters": [scratch, cut(self.leaf(32), 32)]}]
        for at in range(self.random.randint(5, LENGTH - 1)):
            word, other = (field_argument(self.words[first + at]) for first in firsts[:2])
            cells = [{"type": "register_array", "value": f"row{row}.{firsts[row] + at}"} for row in (1, 2)]
            term = shared if any_word else scratch
            if self.chance(0.9):
                made.append({"op": "assign", "parameters": [before, index]})
            made += [
                {
                    "read": {"op": "register_read", "parameters": [word, cells[0], before]},
                    "write": {"op": "register_write", "parameters": [cells[1], before, other]},
                    "add": {"op": "assign", "parameters": [word, cut(operation("+", other, term), 32)]},
                    "keep": {"op": "assign", "parameters": [scratch, cut(operation("|", scratch, word), 32)]},
                    "copy": {"op": "register_read", "parameters": [scratch, cells[1], index]},
                }[kind]
                for kind in kinds
            ]
        return [*made, {"op": "assign", "parameters": [field_argument(self.words[0]), scratch]}]
