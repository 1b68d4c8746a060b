"""Lab 5: the entries of a plan, table by table."""

import itertools

from entry import Entry, Group


def entries(plan, switch):
    me = Switch(plan, switch)
    return [*me.pipeline_of(), *me.up(), *me.admitted(), *me.down(), *me.child_of()]


class Switch:
    """One switch of the plan."""

    def __init__(self, plan, name):
        self.name, self.jobs = name, plan["jobs"]
        self.port, self.pipelines = plan["switches"][name]["ports"], plan["switches"][name]["pipelines"]

    def visits(self):
        """(job, label, node before, node after) wherever a label comes by; None where there is no such node."""
        for job in self.jobs:
            for branch in job["branches"]:
                path = [None, *branch["path"], None]
                for before, node, after in zip(path, path[1:], path[2:]):
                    if node == self.name:
                        yield job["job"], branch["label"], before, after

    def pipeline_of(self):
        return [Entry("pipeline_of", [p], "in_pipeline", [n]) for n, all_ in enumerate(self.pipelines) for p in all_]

    def up(self):
        return [Entry("up", [job, label], "send", [self.port[z]]) for job, label, _, z in self.visits() if z]

    def admitted(self):
        for job, label, before, after in self.visits():
            if before is not None:
                yield Entry("admitted", [self.port[before], 1, job, label], "admit", [])
            if after is not None:
                yield Entry("admitted", [self.port[after], 2, job, 0], "admit", [])

    def down(self):
        by_job = sorted((job, self.port[before]) for job, _, before, _ in self.visits() if before is not None)
        for job, pairs in itertools.groupby(by_job, key=lambda pair: pair[0]):
            yield Group(1000 + job, sorted({port for _, port in pairs}))
            yield Entry("down", [job], "spread", [1000 + job])

    def child_of(self):
        for job in self.jobs:
            mine = [a for a in job["aggregators"] if a["switch"] == self.name]
            for a in mine:
                count = len(a["children"])
                for child in a["children"]:
                    bit = 2 ** (count - 1 - a["children"].index(child))
                    owned = [bit, 2**count - 1, a["label"], a["first_slot"], a["slots"]]
                    yield Entry("child_of", [a["pipeline"], job["job"], child], "aggregate", owned)
