"""The switch of lab 5 as the task describes it: it takes entries, and says why it drops a packet."""

from __future__ import annotations

from dataclasses import replace

from inakit.experiments.labs.course.packets import RESULT, Agg, Values, agg_in, summed
from inakit.experiments.labs.grading.finding import Packets
from inakit.experiments.labs.tree.tables import ADMITTED, CHILD_OF, DOWN, PIPELINE_OF, SLOTS, TABLES, UP
from inakit.planner.core.plan import ROOT_LABEL
from inakit.switch.entries import SwitchEntries

Found = tuple[int, ...] | None


class ModelTree:
    """A switch that runs entries. `why` is the reason for which it dropped the last packet, empty if it did not."""

    def __init__(self, entries: SwitchEntries) -> None:
        self.name, self.why = entries.switch, ""
        self.tables: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {name: {} for name in TABLES}
        for entry in entries.tables:
            self.tables[entry.table][tuple(int(str(part)) for part in entry.key)] = entry.params
        self.groups = {group.group: group.ports for group in entries.groups}
        self.sums: dict[tuple[int, int], dict[int, Values]] = {}

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        self.why = ""
        found = agg_in(packet)
        pipeline = self.look_up(PIPELINE_OF, port)
        if found is None or self.look_up(ADMITTED, port, found.kind, found.job, found.worker) is None:
            return []
        if found.kind == RESULT:
            return self.spread(found)
        if pipeline is None:
            return self.pass_on(found, self.missing(PIPELINE_OF, port))
        child = self.tables[CHILD_OF].get((pipeline[0], found.job, found.worker))
        if child is None:
            return self.pass_on(found, self.missing(CHILD_OF, pipeline[0], found.job, found.worker))
        return self.add(pipeline[0], child, found)

    def look_up(self, table: str, *key: int) -> Found:
        """The parameters of an entry; where there is none, why the packet is dropped."""
        found = self.tables[table].get(key)
        if found is None and table != PIPELINE_OF:
            self.why = self.missing(table, *key)
        return found

    def missing(self, table: str, *key: int) -> str:
        """That a table has no entry for a key, in words."""
        fields = ", ".join(f"{name} {value}" for name, value in zip(TABLES[table].key, key, strict=True))
        return f"table '{table}' of {self.name} has no entry for {fields}"

    def add(self, pipeline: int, child: tuple[int, ...], found: Agg) -> Packets:
        """Add a gradient to a sum, which leaves when it is complete."""
        bit, full, label, first, slots = child
        if found.slot >= slots or first + found.slot >= SLOTS:
            self.why = f"slot {found.slot} is beyond the {slots} slots of job {found.job} at {self.name}"
            return []
        cell = (pipeline, first + found.slot)
        gradients = self.sums.setdefault(cell, {})
        if bit in gradients:
            self.why = f"bit {bit} is in slot {cell[1]} of pipeline {pipeline} of {self.name} already"
            return []
        gradients[bit] = found.values
        if sum(gradients) != full:
            self.why = f"slot {cell[1]} of pipeline {pipeline} of {self.name} has bits {sum(gradients):#b} of {full:#b}"
            return []
        total = replace(found, worker=label, values=summed(list(self.sums.pop(cell).values())))
        return self.spread(replace(total, kind=RESULT)) if label == ROOT_LABEL else self.send_up(total)

    def pass_on(self, found: Agg, not_summed: str) -> Packets:
        """Send a gradient on that no aggregator here sums. `not_summed`: the entry for want of which it is not."""
        left = self.send_up(found)
        if self.why:
            self.why += f"; it is not summed there either: {not_summed}"
        return left

    def send_up(self, found: Agg) -> Packets:
        """Send a gradient towards the root."""
        way = self.look_up(UP, found.job, found.worker)
        return [] if way is None else [(way[0], found.packed())]

    def spread(self, found: Agg) -> Packets:
        """Send a result to all below."""
        group = self.look_up(DOWN, found.job)
        if group is None:
            return []
        if group[0] not in self.groups:
            self.why = f"{self.name} has no multicast group {group[0]}"
        return [(port, found.packed()) for port in self.groups.get(group[0], ())]
