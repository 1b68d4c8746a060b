"""Random expressions and statements as arguments and primitives of the JSON that p4c writes."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]
Field = tuple[str, str, int]
"""Header, name and bits."""

WIDTHS = (1, 3, 7, 8, 8, 9, 12, 16, 16, 24, 32, 32, 48, 64, 100, 128)
SIZES = (1, 2, 3, 7, 16, 100, 512, 1000, 1024, 3200, 4096, 65536)
REGISTER_WIDTHS = (1, 8, 9, 16, 32, 32, 48, 64)
ALGORITHMS = ("crc16", "crc32", "csum16", "identity", "xor16", "crc32_custom", "crcCCITT", "xor32")
OPERATORS = ("+", "-", "*", "&", "|", "^", "<<", ">>")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
GIVEN: tuple[Field, ...] = tuple(
    ("standard_metadata", name, bits)
    for name, bits in (
        ("ingress_port", 9), ("egress_port", 9), ("packet_length", 32), ("instance_type", 32), ("egress_rid", 16),
        ("enq_qdepth", 19), ("deq_qdepth", 19), ("parser_error", 32),
    )
)  # fmt: skip
"""What the switch tells the program, and is the same on all targets."""


def hexadecimal(value: int) -> Json:
    """A number as an argument."""
    return {"type": "hexstr", "value": hex(value)}


def field_argument(field: Field) -> Json:
    """A field as an argument."""
    return {"type": "field", "value": list(field[:2])}


def operation(operator: str, left: Json | None, right: Json, **more: Json) -> Json:
    """An operator with its operands as an argument."""
    return {"type": "expression", "value": {"op": operator, "left": left, "right": right, **more}}


def cut(value: Json, bits: int) -> Json:
    """The low bits of a value, as p4c writes it for each operation on numbers of so many bits."""
    return operation("&", value, hexadecimal((1 << bits) - 1))


END = -1
"""The target of a jump to the end of an action that is not whole yet."""


def jump(target: int, condition: Json | None = None) -> Json:
    """A jump to the statement of this index, or one that is made only where the condition is 0."""
    if condition is None:
        return {"op": "_jump", "parameters": [hexadecimal(target)]}
    return {"op": "_jump_if_zero", "parameters": [condition, hexadecimal(target)]}


def jump_to_end(statements: list[Json]) -> None:
    """Give jumps to the end of an action, which is whole now, the index that is meant."""
    for each in statements:
        if each["op"] == "_jump" and each["parameters"] == [hexadecimal(END)]:
            each["parameters"] = [hexadecimal(len(statements))]


class RandomStatements:
    """Draws statements about the fields, parameters and state of a program, which a subclass declares."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.document: Json = {}
        self.headers: dict[str, list[Field]] = {}
        self.fields: list[Field] = []
        self.parameters: list[tuple[str, int]] = []
        self.moves_headers = False

    def some(self, least: int, most: int) -> range:
        """So many turns, at random."""
        return range(self.random.randint(least, most))

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return self.random.random() < share

    # ---- expressions ----

    def read_field(self, most: int = 128) -> Field:
        """A field to read, of at most so many bits."""
        return self.random.choice([each for each in (*self.fields, *GIVEN) if each[2] <= most])

    def written_field(self) -> Field:
        """A field to write."""
        return self.random.choice(self.fields)

    def leaf(self, most: int = 64) -> Json:
        """A number, a field or a parameter of the action, of at most so many bits."""
        fitting = [number for number, (_, bits) in enumerate(self.parameters) if bits <= most]
        if fitting and self.chance(0.3):
            return {"type": "local", "value": self.random.choice(fitting)}
        if self.chance(0.3):
            return hexadecimal(
                self.random.choice((0, 1, 2, 7, 255, self.random.getrandbits(self.random.choice((8, 16, 32)))))
            )
        return field_argument(self.read_field(most))

    def number(self, depth: int, bits: int = 32) -> Json:
        """An expression whose value has at most so many bits."""
        if depth == 0:
            return cut(self.leaf(64), bits)
        if self.chance(0.15):
            return {
                "type": "expression",
                "value": {"op": "?", "cond": self.condition(depth - 1), "left": self.number(depth - 1, bits),
                          "right": self.number(depth - 1, bits)},
            }  # fmt: skip
        operator = self.random.choice(OPERATORS)
        right = self.number(depth - 1, 5) if operator in ("<<", ">>") else self.number(depth - 1, min(bits, 32))
        return cut(operation(operator, self.number(depth - 1, min(bits, 32)), right), bits)

    def condition(self, depth: int) -> Json:
        """An expression that is true or false."""
        if depth and self.chance(0.3):
            return operation(self.random.choice(("and", "or")), self.condition(depth - 1), self.condition(depth - 1))
        if depth and self.chance(0.1):
            return operation("not", None, self.condition(depth - 1))
        if self.chance(0.1):
            return operation("d2b", None, field_argument((self.random.choice(self.packet_headers()), "$valid$", 1)))
        left = field_argument(self.read_field()) if depth == 0 else self.number(depth - 1)
        return operation(self.random.choice(COMPARISONS), left, self.leaf())

    def packet_headers(self) -> list[str]:
        """The headers of the program that packets may have."""
        return [name for name in self.headers if name != "scalars"]

    def index(self) -> Json:
        """An index of a register or counter: a field, a number, or computed."""
        kind = self.random.randrange(4)
        if kind == 0:
            return self.number(1, self.random.choice((4, 8, 12, 16)))
        if kind == 1:
            return hexadecimal(self.random.choice((0, 1, 99, 5000)))
        return field_argument(self.read_field(32)) if kind == 2 or not self.parameters else self.leaf(32)

    # ---- statements ----

    def statement(self) -> Json:
        """One statement of an action."""
        kinds = [self.assign, self.read, self.write, self.read, self.write, self.count, self.hash]
        kinds += [self.draw_number, self.log, self.claim]
        if self.moves_headers:
            kinds.append(self.change_validity)
        return self.random.choice(kinds)()

    def body(self, most: int, depth: int = 2, first: int = 0) -> list[Json]:
        """Statements of an action from index `first` on, of which some stand under an `if`."""
        made: list[Json] = []
        for _ in self.some(1, most):
            made += self.branch(depth, first + len(made)) if depth and self.chance(0.2) else [self.statement()]
        return made

    def branch(self, depth: int, first: int) -> list[Json]:
        """An `if` at index `first` as p4c writes it: jumps over what is not to be run, and to the action's end."""
        then = self.body(3, depth - 1, first + 1)
        if self.chance(0.2):
            then += [jump(END)] if self.chance(0.6) else [{"op": "exit", "parameters": []}, jump(END)]
        rest: list[Json] = []
        if self.chance(0.5):
            rest = self.body(3, depth - 1, first + len(then) + 2)
            then.append(jump(first + len(then) + 2 + len(rest)))
        condition = operation("b2d", None, self.condition(2))
        return [jump(first + 1 + len(then), condition), *then, *rest]

    def assign(self) -> Json:
        """A field gets the value of an expression."""
        target = self.written_field()
        return {
            "op": "assign",
            "parameters": [field_argument(target), self.number(self.random.randrange(3), target[2])],
        }

    def register(self) -> Json:
        """A register as an argument."""
        return {"type": "register_array", "value": self.random.choice(self.document["register_arrays"])["name"]}

    def read(self) -> Json:
        """A field gets a cell of a register."""
        return {
            "op": "register_read",
            "parameters": [field_argument(self.written_field()), self.register(), self.index()],
        }

    def write(self) -> Json:
        """A cell of a register gets a value."""
        return {"op": "register_write", "parameters": [self.register(), self.index(), self.number(1)]}

    def count(self) -> Json:
        """The packet is counted."""
        counter = self.random.choice(self.document["counter_arrays"])["name"]
        return {"op": "count", "parameters": [{"type": "counter_array", "value": counter}, self.index()]}

    def hash(self) -> Json:
        """A field gets a hash within a range."""
        calculation = self.random.choice(self.document["calculations"])["name"]
        return {
            "op": "modify_field_with_hash_based_offset",
            "parameters": [
                field_argument(self.written_field()),
                hexadecimal(self.random.choice((0, 0, 5))),
                {"type": "calculation", "value": calculation},
                hexadecimal(self.random.choice((*SIZES, 0, 1 << 32))),
            ],
        }

    def draw_number(self) -> Json:
        """A field gets a random number of a range that has only one, or none."""
        low = 1 + self.random.getrandbits(8)
        ends = [hexadecimal(low), hexadecimal(low - self.random.randrange(2))]
        return {"op": "modify_field_rng_uniform", "parameters": [field_argument(self.written_field()), *ends]}

    def log(self) -> Json:
        """A message that nobody sees."""
        values = {"type": "parameters_vector", "value": [self.number(1)]}
        return {"op": "log_msg", "parameters": [{"type": "string", "value": "drawn {}"}, values]}

    def claim(self) -> Json:
        """An assertion that holds."""
        holds = operation("b2d", None, operation(">=", self.number(1), hexadecimal(0)))
        return {"op": self.random.choice(("assert", "assume")), "parameters": [holds]}

    def change_validity(self) -> Json:
        """A header comes or goes."""
        header = {"type": "header", "value": self.random.choice(self.packet_headers())}
        return {"op": self.random.choice(("add_header", "remove_header")), "parameters": [header]}
