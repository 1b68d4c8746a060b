"""Lab 5: the entries of a plan, with the tree of results worked out first."""

from entry import Entry, Group


def nodes_below(job):
    """For each switch the nodes that send to it."""
    below = {}
    for branch in job["branches"]:
        way = branch["path"]
        for at in range(1, len(way)):
            below.setdefault(way[at], [])
            if way[at - 1] not in below[way[at]]:
                below[way[at]].append(way[at - 1])
    return below


def entries(plan, switch):
    port = plan["switches"][switch]["ports"]
    table = {}
    groups = []
    for number, members in enumerate(plan["switches"][switch]["pipelines"]):
        table.update({("pipeline_of", (p,)): ("in_pipeline", (number,)) for p in members})
    for at, job in enumerate(plan["jobs"]):
        name, below = job["job"], nodes_below(job)
        if switch in below:
            groups.append(Group(7 + at, tuple(port[node] for node in below[switch])))
            table["down", (name,)] = ("spread", (7 + at,))
        for parent, found in below.items():
            if switch in found:
                table["admitted", (port[parent], 2, name, 0)] = ("admit", ())
        for branch in job["branches"]:
            if switch in branch["path"]:
                place = branch["path"].index(switch)
                if place > 0:
                    table["admitted", (port[branch["path"][place - 1]], 1, name, branch["label"])] = ("admit", ())
                if place + 1 < len(branch["path"]):
                    table["up", (name, branch["label"])] = ("send", (port[branch["path"][place + 1]],))
        for each in job["aggregators"]:
            if each["switch"] == switch:
                full = 0
                for child in each["children"]:
                    full = 2 * full + 1
                bit = 1
                for child in each["children"]:
                    values = (bit, full, each["label"], each["first_slot"], each["slots"])
                    table["child_of", (each["pipeline"], name, child)] = ("aggregate", values)
                    bit *= 2
    return groups + [Entry(name, key, action, values) for (name, key), (action, values) in table.items()]
