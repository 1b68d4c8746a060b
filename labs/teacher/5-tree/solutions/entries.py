"""Lab 5: the entries of a plan."""

from entry import Entry, Group

GRADIENT, RESULT = 1, 2


def entries(plan, switch):
    about = plan["switches"][switch]
    ports = about["ports"]
    found = []
    for pipeline, members in enumerate(about["pipelines"]):
        for port in members:
            found.append(Entry("pipeline_of", (port,), "in_pipeline", (pipeline,)))
    for job in plan["jobs"]:
        number = job["job"]
        below = set()
        above = set()
        for branch in job["branches"]:
            label, path = branch["label"], branch["path"]
            for node, following in zip(path, path[1:]):
                if node == switch:
                    found.append(Entry("up", (number, label), "send", (ports[following],)))
                    above.add(ports[following])
                if following == switch:
                    found.append(Entry("admitted", (ports[node], GRADIENT, number, label), "admit"))
                    below.add(ports[node])
        for port in above:
            found.append(Entry("admitted", (port, RESULT, number, 0), "admit"))
        if below:
            found.append(Entry("down", (number,), "spread", (number,)))
            found.append(Group(number, tuple(sorted(below))))
        for aggregator in job["aggregators"]:
            if aggregator["switch"] != switch:
                continue
            children = aggregator["children"]
            full = (1 << len(children)) - 1
            own = (full, aggregator["label"], aggregator["first_slot"], aggregator["slots"])
            for bit, child in enumerate(children):
                key = (aggregator["pipeline"], number, child)
                found.append(Entry("child_of", key, "aggregate", (1 << bit, *own)))
    return found
