"""Lab 5: the entries of a plan, all of it at once, as sets."""

from entry import Entry, Group


def hops(job):
    """(label, from, to) of every link that a label takes."""
    return {(b["label"], a, z) for b in job["branches"] for a, z in zip(b["path"], b["path"][1:])}


def entries(plan, switch):
    ports, pipelines = plan["switches"][switch]["ports"], plan["switches"][switch]["pipelines"]
    out = {Entry("pipeline_of", (port,), "in_pipeline", (n,)) for n, each in enumerate(pipelines) for port in each}
    for group, job in enumerate(plan["jobs"], 1):
        links = hops(job)
        out |= {Entry("up", (job["job"], label), "send", (ports[z],)) for label, a, z in links if a == switch}
        out |= {Entry("admitted", (ports[a], 1, job["job"], label), "admit") for label, a, z in links if z == switch}
        out |= {Entry("admitted", (ports[z], 2, job["job"], 0), "admit") for _, a, z in links if a == switch}
        children = {a for _, a, z in links if z == switch}
        if children:
            out |= {Group(group, tuple(ports[a] for a in children)), Entry("down", (job["job"],), "spread", (group,))}
        for agg in job["aggregators"]:
            if agg["switch"] == switch:
                labels = sorted(agg["children"], reverse=True)
                bits = {label: 1 << n for n, label in enumerate(labels)}
                rest = (sum(bits.values()), agg["label"], agg["first_slot"], agg["slots"])
                for label, bit in bits.items():
                    out.add(Entry("child_of", (agg["pipeline"], job["job"], label), "aggregate", (bit, *rest)))
    return list(out)
