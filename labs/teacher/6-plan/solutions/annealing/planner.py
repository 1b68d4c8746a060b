"""Lab 6, solved: local search over paths. A path loads only the links before the first sum that it meets."""

import itertools
import random

STEPS, SEARCHES = 250, 2


class Network:
    """The given fabric, with lookups for its links and switches."""

    def __init__(self, fabric):
        self.hosts = set(fabric["hosts"])
        self.switches = fabric["switches"]
        self.rate = {(link["from"], link["to"]): link["rate_bps"] for link in fabric["links"]}
        self.pipeline = {(link["from"], link["to"]): link["pipeline"] for link in fabric["links"]}
        self.peers = {}
        for a, b in self.rate:
            self.peers.setdefault(a, []).append(b)

    def tier(self, node):
        """The tier: 0 for a host, 1 for a switch with hosts, higher above."""
        return 0 if node in self.hosts else self.switches[node]["tier"]

    def paths(self, worker, server):
        """The shortest paths from a worker to a server that climb and then descend, as lists of nodes."""
        found = []

        def walk(path, climbing):
            here = path[-1]
            for peer in self.peers[here]:
                up = self.tier(peer) > self.tier(here)
                if peer == server:
                    found.append([*path, peer])
                elif peer not in self.hosts and peer not in path and (climbing or not up):
                    walk([*path, peer], climbing and up)

        walk([worker], True)
        shortest = min(map(len, found))
        return [path for path in found if len(path) == shortest]

    def sums_at(self, before, node):
        """Whether what comes to a node from another can be summed there."""
        return node in self.switches and self.switches[node]["ina"]


def tree_of(network, job, paths):
    """Where the paths of a job's workers meet: flows as (sender, receiver, path), and sums as (switch, pipeline)."""
    on_from = {}
    routes = []
    for path in paths:
        route = list(path)
        for at in range(1, len(route) - 1):
            if not network.sums_at(route[at - 1], route[at]):
                continue
            place = (route[at], network.pipeline[route[at - 1], route[at]])
            if place in on_from:
                route = route[: at + 1] + on_from[place]
                break
        for at in range(1, len(route) - 1):
            if network.sums_at(route[at - 1], route[at]):
                place = (route[at], network.pipeline[route[at - 1], route[at]])
                on_from.setdefault(place, route[at + 1 :])
        routes.append(route)
    arriving = {}
    for route in routes:
        sender = route[0]
        for at in range(1, len(route) - 1):
            if network.sums_at(route[at - 1], route[at]):
                place = (route[at], network.pipeline[route[at - 1], route[at]])
                arriving.setdefault(place, set()).add(sender)
                sender = place
    sums = {place for place, senders in arriving.items() if len(senders) > 1}
    flows = {}
    for route in routes:
        sender, start = route[0], 0
        for at in range(1, len(route) - 1):
            place = (route[at], network.pipeline[route[at - 1], route[at]])
            if place in sums:
                flows[sender] = (place, route[start : at + 1])
                sender, start = place, at
        flows[sender] = (job["server"], route[start:])
    return flows, sums


def loads_of(trees):
    """The number of flows of all trees on each link."""
    loads = {}
    for flows, _ in trees:
        for _, path in flows.values():
            for link in itertools.pairwise(path):
                loads[link] = loads.get(link, 0) + 1
    return loads


def best_rate(network, trees):
    """The rate that all jobs can have together."""
    return min(network.rate[link] / count for link, count in loads_of(trees).items())


def judged(network, trees):
    """The rate that all jobs can have, and a cost that also counts links that are nearly as full as the fullest."""
    shares = [count / network.rate[link] for link, count in loads_of(trees).items()]
    fullest = max(shares)
    return 1 / fullest, fullest * sum((share / fullest) ** 12 for share in shares) ** (1 / 12)


def search(network, jobs):
    """Paths for all workers: the best that several searches find, each from other paths."""
    draw = random.Random(1)
    ways = [[network.paths(worker, job["server"]) for worker in job["workers"]] for job in jobs]
    enough = most_rate(network, jobs)
    best = (0, None)
    for _ in range(SEARCHES):
        for found in annealed(draw, network, jobs, ways):
            best = max(best, found, key=lambda each: each[0])
            if best[0] >= enough:
                return best[1]
    return best[1]


def annealed(draw, network, jobs, ways):
    """Take other paths if the fullest links get emptier; at first also if they get a little fuller."""
    chosen = [[draw.choice(paths) for paths in of_job] for of_job in ways]
    trees = [tree_of(network, job, paths) for job, paths in zip(jobs, chosen, strict=False)]
    rate, now = judged(network, trees)
    yield rate, list(trees)
    for step in range(STEPS):
        number = draw.randrange(len(jobs))
        before, old = chosen[number], trees[number]
        chosen[number] = changed(draw, before, ways[number], step)
        trees[number] = tree_of(network, jobs[number], chosen[number])
        rate, cost = judged(network, trees)
        if cost <= now * (1 + 0.4 * draw.random() * (1 - step / STEPS) ** 2):
            now = cost
            yield rate, list(trees)
        else:
            chosen[number], trees[number] = before, old


def most_rate(network, jobs):
    """An upper bound for all paths: the workers' and servers' own links carry a flow each."""
    hosts = {host for job in jobs for host in [job["server"], *job["workers"]]}
    return min(rate for link, rate in network.rate.items() if hosts & set(link)) * (1 - 1e-9)


def changed(draw, paths, ways, step):
    """Other paths: for one worker, for all workers of a rack, or for all that can pass a node of the new path."""
    new = list(paths)
    which = draw.randrange(len(new))
    path = draw.choice(ways[which])
    if step % 3 == 2 and len(path) > 3:
        node = draw.choice(path[2:-1])
        through = [[each for each in of_worker if node in each] for of_worker in ways]
        return [draw.choice(able) if able else old for able, old in zip(through, paths, strict=False)]
    for other in range(len(new)):
        beside = paths[other][1] == paths[which][1]
        if other == which or (step % 3 == 1 and beside):
            new[other] = [paths[other][0], *path[1:]]
    return new


def with_slots(network, trees):
    """The first slot and the number of slots of each sum: equal parts of its pipeline."""
    users = {}
    for number, (_, sums) in enumerate(trees):
        for place in sorted(sums):
            users.setdefault(place, []).append(number)
    slots = {}
    for place, numbers in users.items():
        part = network.switches[place[0]]["slots"] // len(numbers)
        for order, number in enumerate(numbers):
            slots[number, place] = (order * part, part)
    return slots


def plan(fabric, jobs):
    """The trees for all jobs, one for each."""
    network = Network(fabric)
    trees = search(network, jobs)
    rate = best_rate(network, trees)
    slots = with_slots(network, trees)
    numbered = enumerate(zip(jobs, trees, strict=False))
    return [written(job, tree, rate, slots, number) for number, (job, tree) in numbered]


def written(job, tree, rate, slots, number):
    """A tree as the README describes it."""
    flows, sums = tree
    names = {place: f"sum at {place[0]}, {place[1]}" for place in sorted(sums)}
    aggregators = {
        name: {
            "switch": place[0],
            "pipeline": place[1],
            "first_slot": slots[number, place][0],
            "slots": slots[number, place][1],
        }
        for place, name in names.items()
    }
    paths = [
        {"from": names.get(sender, sender), "to": names.get(to, to), "path": path}
        for sender, (to, path) in flows.items()
    ]
    return {"job": job["job"], "rate_bps": rate, "aggregators": aggregators, "paths": paths}
