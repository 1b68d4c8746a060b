"""Random programs that clone, replicate, truncate and report packets, and let them come in again."""

from __future__ import annotations

from random_programs import RandomProgram
from random_statements import Json, cut, field_argument, hexadecimal, operation

from inakit.switch.entries import MirrorSession, MulticastGroup, SwitchEntries

PASSES = ("passes", "f0", 8)
"""Metadata that returns with a packet: a bit for each pipeline that has asked for something, lest the packet loops."""

SESSIONS = (
    MirrorSession(1, port=3),
    MirrorSession(2, group=5),
    MirrorSession(3, port=4, group=6),
    MirrorSession(0x7FFF, port=0),
)
GROUPS = (MulticastGroup(5, (1, 2, 3)), MulticastGroup(6, (0,), ((7, 4), (9, 1))))
COPIES = SwitchEntries("s", groups=GROUPS, mirrors=SESSIONS)
"""The groups and sessions that the programs name; session 4 is not set up."""


class RandomCopies(RandomProgram):
    """A random program whose pipelines begin with statements that ask for copies and returns, once for each packet."""

    def declare_state(self) -> None:
        """Draw the lists of fields that copies keep and digests report."""
        super().declare_state()
        self.declare("passes", [8], metadata=True)
        self.fields.remove(PASSES)
        known = [*self.headers["scalars"], ("standard_metadata", "ingress_port", 9)]
        lists = [[PASSES, *self.random.sample(known, min(3, len(known)))], self.random.sample(known, 2), []]
        self.keeps = self.chance(0.8)
        if self.keeps:
            self.document["field_lists"] = [field_list(number, each) for number, each in enumerate(lists, start=1)]
        self.document["learn_lists"] = [field_list(number, self.random.sample(known, 2)) for number in (1, 2)]

    def packet_headers(self) -> list[str]:
        """The headers of the program that packets may have."""
        return [name for name in super().packet_headers() if name != "passes"]

    def pipeline(self, name: str) -> None:
        """A pipeline that begins with a table of statements that are new here."""
        super().pipeline(name)
        made = self.document["pipelines"][-1]
        bit = 1 if name == "ingress" else 2
        seen = operation("==", cut_to_bit(bit), hexadecimal(0))
        original = operation("==", field_argument(("standard_metadata", "instance_type", 32)), hexadecimal(0))
        test = operation("and", seen, operation("or", original, operation(">", instance_type(), hexadecimal(3))))
        made["conditionals"].append({
            "name": f"{name}.begin", "id": 0, "expression": test,
            "true_next": f"{name}.asks", "false_next": made["init_table"],
        })  # fmt: skip
        asking = [self.asking_action(name, bit) for _ in range(3)]
        key = [{"match_type": "exact", "name": "test.f0", "target": ["test", "f0"], "mask": None}]
        made["tables"].append(self.table_of(f"{name}.asks", key, asking, [made["init_table"]]))
        made["init_table"] = f"{name}.begin"

    def asking_action(self, pipeline: str, bit: int) -> Json:
        """An action that asks for one or two things."""
        statements = [self.random.choice(self.requests(pipeline)) for _ in self.some(1, 2)]
        noted = operation("|", field_argument(PASSES), hexadecimal(bit))
        statements.insert(0, {"op": "assign", "parameters": [field_argument(PASSES), cut(noted, 8)]})
        number = len(self.document["actions"])
        made = {"name": f"a{number}", "id": number, "runtime_data": [], "primitives": statements}
        self.document["actions"].append(made)
        return made

    def requests(self, pipeline: str) -> list[Json]:
        """The statements from which one is drawn."""
        clone = f"clone_{pipeline}_pkt_to_egress"
        session, kept = self.random.choice((1, 2, 3, 4, 0x7FFF)), self.random.choice((1, 2, 3))
        found = [
            request(clone, session, kept),
            request(clone, session, kept),
            request("truncate", self.random.choice((60, 20))),
        ]
        if not self.keeps:
            return found  # what comes in again keeps nothing, and would for ever
        if pipeline == "egress":
            return [*found, request("recirculate", 1)]
        group = field_argument(("standard_metadata", "mcast_grp", 16))
        to_group = {"op": "assign", "parameters": [group, hexadecimal(self.random.choice((5, 6, 7)))]}
        return [*found, to_group, request("resubmit", 1), request("generate_digest", 1, self.random.choice((1, 2)))]


def instance_type() -> Json:
    """How the packet came to the pipeline: beyond 3 it is no clone."""
    return field_argument(("standard_metadata", "instance_type", 32))


def cut_to_bit(bit: int) -> Json:
    """One bit of `PASSES`."""
    return operation("&", field_argument(PASSES), hexadecimal(bit))


def field_list(number: int, fields: list[tuple[str, str, int]]) -> Json:
    """A list of fields as p4c declares it."""
    return {"id": number, "name": f"list{number}", "elements": [field_argument(each) for each in fields]}


def request(name: str, *numbers: int) -> Json:
    """A statement whose arguments are numbers."""
    return {"op": name, "parameters": [hexadecimal(number) for number in numbers]}
