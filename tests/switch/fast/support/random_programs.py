"""Random programs of v1model as the JSON that p4c writes, with every construct that target `fast` compiles.

They are odd where programs of people are, and more so: registers at indexes that are computed, hashed, read from other
registers or given by the switch; deep expressions; nested conditions and tables; headers that come and go.
"""

from __future__ import annotations

import json
from pathlib import Path

from random_statements import (
    ALGORITHMS,
    GIVEN,
    REGISTER_WIDTHS,
    SIZES,
    WIDTHS,
    Json,
    RandomStatements,
    cut,
    field_argument,
    jump_to_end,
)

BASE = Path(__file__).parents[2] / "programs" / "arithmetic.json"
"""A program whose standard metadata, errors and aliases serve for all."""


class RandomProgram(RandomStatements):
    """One random program; the same seed gives the same. `size` bounds how many there are of each thing."""

    def __init__(self, seed: int, size: int = 6) -> None:
        super().__init__(seed)
        self.size = size
        self.document: Json = json.loads(BASE.read_text())
        self.document["program"] = f"random {seed}"
        self.moves_headers = self.random.random() < 0.4
        self.declare_headers()
        self.declare_state()
        self.write_parser()
        self.document["actions"], self.document["pipelines"] = [], []
        self.pipeline("ingress")
        self.pipeline("egress")

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

    def action(self, most_parameters: int) -> Json:
        """A new action of some statements, all of whose registers may be used at one index."""
        self.parameters = [(f"p{n}", self.random.choice(WIDTHS)) for n in self.some(0, most_parameters)]
        statements = self.body(self.size)
        if self.chance(0.3):
            index = self.index()
            for each in statements:
                if each["op"] in ("register_read", "register_write"):
                    each["parameters"][2 if each["op"] == "register_read" else 1] = index
        if self.chance(0.05):
            statements.append({"op": "exit", "parameters": []})
        jump_to_end(statements)
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
        for nodes in (tables, conditionals):
            for number, node in enumerate(nodes):
                node["id"] = number
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


class SettledProgram(RandomProgram):
    """A random program of which BMv2 leaves nothing open: every packet has all headers, and no index is too high."""

    def __init__(self, seed: int, size: int = 6) -> None:
        super().__init__(seed, size)
        for number, header in enumerate(self.document["headers"]):
            header["id"] = number
        for statement in (each for action in self.document["actions"] for each in action["primitives"]):
            statement["parameters"] = [argument(each) for each in statement["parameters"]]

    def declare(self, name: str, widths: list[int], metadata: bool = False) -> None:
        """Declare a header, unless it is one that only some packets have."""
        if not name.startswith("more"):
            super().declare(name, widths, metadata)

    def declare_state(self) -> None:
        """Draw registers and counters of which each has all cells that `index` names."""
        super().declare_state()
        self.moves_headers = False
        for each in (*self.document["register_arrays"], *self.document["counter_arrays"]):
            each["size"] = max(each["size"], 8)

    def index(self) -> Json:
        """An index below 8."""
        return cut(super().index(), 3)

    def key_part(self, kind: str) -> Json:
        """One part of a table's key; prefixes are of whole bytes, for of other fields BMv2 takes them otherwise."""
        found = super().key_part(kind)
        bits = {field[:2]: field[2] for field in (*self.fields, *GIVEN)}
        return found if kind != "lpm" or bits[tuple(found["target"])] % 8 == 0 else self.key_part(kind)


def argument(node: Json) -> Json:
    """An argument as p4c writes it: an expression is the value of another one."""
    if node["type"] == "parameters_vector":
        return {**node, "value": [argument(each) for each in node["value"]]}
    return {"type": "expression", "value": node} if node["type"] in ("expression", "local") else node
