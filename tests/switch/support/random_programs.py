"""Random programs of v1model as the JSON that p4c writes, with every construct that target `fast` compiles.

They are odd where programs of people are, and more so: registers at indexes that are computed, hashed, read from other
registers or given by the switch; deep expressions; nested conditions and tables; headers that come and go.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

Json = dict[str, Any]
Field = tuple[str, str, int]
"""Header, name and bits."""

BASE = Path(__file__).parents[1] / "programs" / "arithmetic.json"
"""A program whose standard metadata, errors and aliases serve for all."""

WIDTHS = (1, 3, 7, 8, 8, 9, 12, 16, 16, 24, 32, 32, 48, 64, 100, 128)
SIZES = (1, 2, 3, 7, 16, 100, 512, 1000, 1024, 3200, 4096, 65536)
REGISTER_WIDTHS = (1, 8, 9, 16, 32, 32, 48, 64)
ALGORITHMS = ("crc16", "crc32", "csum16", "identity", "xor16", "crc32_custom")
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


class RandomProgram:
    """One random program; the same seed gives the same. `size` bounds how many there are of each thing."""

    def __init__(self, seed: int, size: int = 6) -> None:
        self.random, self.size = Random(seed), size
        self.document: Json = json.loads(BASE.read_text())
        self.document["program"] = f"random {seed}"
        self.headers: dict[str, list[Field]] = {}
        self.fields: list[Field] = []
        self.parameters: list[tuple[str, int]] = []
        self.moves_headers = self.random.random() < 0.4
        self.declare_headers()
        self.declare_state()
        self.write_parser()
        self.document["actions"], self.document["pipelines"] = [], []
        self.pipeline("ingress")
        self.pipeline("egress")

    def some(self, least: int, most: int) -> range:
        """So many turns, at random."""
        return range(self.random.randint(least, most))

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return self.random.random() < share

    # ---- what there is ----

    def declare_headers(self) -> None:
        """Draw the metadata of the program, the header that each packet has, and others behind it."""
        document = self.document
        document["header_types"] = [
            t for t in document["header_types"] if t["name"] in ("standard_metadata", "ethernet_t")
        ]
        document["headers"] = [h for h in document["headers"] if h["name"] in ("standard_metadata", "ethernet")]
        self.declare("scalars", self.drawn_widths(2, self.size * 2), metadata=True)
        self.declare("test", [16, *self.drawn_widths(3, self.size * 2)])
        for number in self.some(0, 3):
            self.declare(f"more{number}", self.drawn_widths(1, self.size))
        document["deparsers"][0]["order"] = ["ethernet", *(name for name in self.headers if name != "scalars")]

    def drawn_widths(self, least: int, most: int) -> list[int]:
        """The bits of some fields."""
        return [self.random.choice(WIDTHS) for _ in self.some(least, most)]

    def declare(self, name: str, widths: list[int], metadata: bool = False) -> None:
        """Declare a header, filled up to whole bytes."""
        more = [*widths, -sum(widths) % 8] if sum(widths) % 8 else widths
        names = [f"f{number}" for number in range(len(more))]
        number = len(self.document["headers"]) + 1
        declared = [[field, bits, False] for field, bits in zip(names, more, strict=True)]
        self.document["header_types"].append({"name": f"{name}_t", "id": number, "fields": declared})
        self.document["headers"].append(
            {"name": name, "id": number, "header_type": f"{name}_t", "metadata": metadata, "pi_omit": True}
        )
        self.headers[name] = [(name, field, bits) for field, bits in zip(names, more, strict=True)]
        self.fields += self.headers[name]

    def declare_state(self) -> None:
        """Draw registers, counters and what is hashed."""
        self.document["register_arrays"] = [
            {
                "name": f"r{n}",
                "id": n,
                "size": self.random.choice(SIZES),
                "bitwidth": self.random.choice(REGISTER_WIDTHS),
            }
            for n in self.some(1, self.size * 2)
        ]
        self.document["counter_arrays"] = [
            {"name": f"c{n}", "id": n, "size": self.random.choice(SIZES), "is_direct": False} for n in self.some(1, 3)
        ]
        self.document["calculations"] = [self.calculation(number) for number in self.some(1, 3)]

    def calculation(self, number: int) -> Json:
        """A hash of some metadata, whose bits are whole bytes together."""
        fields = [each for each in (*self.headers["scalars"], *GIVEN[:2]) if self.chance(0.5)] or [GIVEN[0]]
        return {
            "name": f"calc{number}",
            "id": number,
            "algo": self.random.choice(ALGORITHMS),
            "input": [field_argument(each) for each in fields],
        }

    def write_parser(self) -> None:
        """Write a state for each header behind `test`, which the first bits of the header before select."""
        behind = [name for name in self.headers if name.startswith("more")]
        states = [self.parser_state("start", ["ethernet", "test"], behind)]
        states += [self.parser_state(name, [name], behind[number + 1 :]) for number, name in enumerate(behind)]
        self.document["parsers"][0]["parse_states"] = states

    def parser_state(self, name: str, extracted: list[str], following: list[str]) -> Json:
        """A state that leads to some of the headers that may follow."""
        key = self.headers[extracted[-1]][0]
        seen: set[int] = set()
        transitions = []
        for header in following:
            value, mask = self.random.getrandbits(key[2]), self.random.choice((None, self.random.getrandbits(key[2])))
            value &= (1 << key[2]) - 1 if mask is None else mask
            if value not in seen:
                digits = -(-key[2] // 8) * 2
                transitions.append({
                    "type": "hexstr", "value": f"0x{value:0{digits}x}", "next_state": header,
                    "mask": None if mask is None else f"0x{mask:0{digits}x}",
                })  # fmt: skip
            seen.add(value)
        transitions.append({"type": "default", "value": None, "mask": None, "next_state": None})
        return {
            "name": name,
            "id": len(extracted),
            "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": each}]} for each in extracted],
            "transitions": transitions,
            "transition_key": [field_argument(key)] if len(transitions) > 1 else [],
        }

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
        if self.moves_headers:
            kinds.append(self.change_validity)
        return self.random.choice(kinds)()

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

    def change_validity(self) -> Json:
        """A header comes or goes."""
        header = {"type": "header", "value": self.random.choice(self.packet_headers())}
        return {"op": self.random.choice(("add_header", "remove_header")), "parameters": [header]}

    def action(self, most_parameters: int) -> Json:
        """A new action of some statements, all of whose registers may be used at one index."""
        self.parameters = [(f"p{n}", self.random.choice(WIDTHS)) for n in self.some(0, most_parameters)]
        statements = [self.statement() for _ in self.some(1, self.size)]
        if self.chance(0.3):
            index = self.index()
            for each in statements:
                if each["op"] in ("register_read", "register_write"):
                    each["parameters"][2 if each["op"] == "register_read" else 1] = index
        if self.chance(0.05):
            statements.append({"op": "exit", "parameters": []})
        number = len(self.document["actions"])
        data = [{"name": name, "bitwidth": bits} for name, bits in self.parameters]
        made = {"name": f"a{number}", "id": number, "runtime_data": data, "primitives": statements}
        self.parameters = []
        self.document["actions"].append(made)
        return made

    # ---- pipelines ----

    def pipeline(self, name: str) -> None:
        """A pipeline of tables and conditions, each of which leads to some later one."""
        names = [f"{name}.n{number}" for number in self.some(2, self.size * 2)]
        tables, conditionals = [], []
        for number, each in enumerate(names):
            later: list[str | None] = [*names[number + 1 : number + 4], None] if number + 1 < len(names) else [None]
            following = [later[0], *later[:-1], *later]  # mostly some node
            if self.chance(0.4):
                conditionals.append(self.conditional(each, following))
            else:
                tables.append(self.table(each, following))
        if name == "ingress":
            tables[-1:] = [*tables[-1:], self.last_table()]
            self.lead_to_last(names, tables, conditionals)
        self.document["pipelines"].append({
            "name": name, "id": len(self.document["pipelines"]), "init_table": names[0], "tables": tables,
            "action_profiles": [], "conditionals": conditionals,
        })  # fmt: skip

    def last_table(self) -> Json:
        """The table that sends a packet back to the port by which it came, or to a port that it says."""
        number = len(self.document["actions"])
        spec = field_argument(("standard_metadata", "egress_spec", 9))
        value = cut(field_argument(self.random.choice((GIVEN[0], self.headers["test"][0]))), 2)
        sending = {"op": "assign", "parameters": [spec, value]}
        self.document["actions"].append(
            {"name": f"a{number}", "id": number, "runtime_data": [], "primitives": [sending]}
        )
        return self.table_of("ingress.last", [], [self.document["actions"][number]], [None])

    @staticmethod
    def lead_to_last(names: list[str], tables: list[Json], conditionals: list[Json]) -> None:
        """Let every way through ingress end at the last table."""
        names.append("ingress.last")
        for each in conditionals:
            each["true_next"] = each["true_next"] or "ingress.last"
            each["false_next"] = each["false_next"] or "ingress.last"
        for table in tables:
            if table["name"] != "ingress.last":
                table["base_default_next"] = table["base_default_next"] or "ingress.last"
                for action, following in table["next_tables"].items():
                    table["next_tables"][action] = following or "ingress.last"

    def conditional(self, name: str, following: list[str | None]) -> Json:
        """A condition between two of the nodes that may follow."""
        return {
            "name": name,
            "id": 0,
            "expression": self.condition(2),
            "true_next": self.random.choice(following),
            "false_next": self.random.choice(following),
        }

    def table(self, name: str, following: list[str | None]) -> Json:
        """A table without a key, which runs one action, or one that is searched."""
        if self.chance(0.5):
            return self.table_of(name, [], [self.action(0)], following)
        kind = self.random.choice(("exact", "exact", "lpm", "ternary", "range"))
        key = [self.key_part("exact") for _ in self.some(0, 2)] + [self.key_part(kind)]
        return self.table_of(name, key, [self.action(3) for _ in self.some(1, 3)], following, kind)

    def key_part(self, kind: str) -> Json:
        """One part of a table's key."""
        field = self.read_field(64)
        return {"match_type": kind, "name": ".".join(field[:2]), "target": list(field[:2]), "mask": None}

    def table_of(
        self, name: str, key: list[Json], actions: list[Json], following: list[str | None], kind: str = "exact"
    ) -> Json:
        """A table with this key and these actions, of which the last one is the default."""
        default = actions[-1]
        by_outcome = bool(key) and self.chance(0.3)
        labels = ["__HIT__", "__MISS__"] if by_outcome else [each["name"] for each in actions]
        return {
            "name": name, "id": 0, "key": key, "match_type": kind, "type": "simple",
            "max_size": self.random.choice((4, 64, 1024)), "with_counters": False, "support_timeout": False,
            "direct_meters": None, "action_ids": [each["id"] for each in actions],
            "actions": [each["name"] for each in actions], "base_default_next": None,
            "next_tables": {each: self.random.choice(following) for each in labels},
            "default_entry": {
                "action_id": default["id"], "action_const": False, "action_entry_const": False,
                "action_data": [hex(self.random.getrandbits(p["bitwidth"])) for p in default["runtime_data"]],
            },
        }  # fmt: skip
