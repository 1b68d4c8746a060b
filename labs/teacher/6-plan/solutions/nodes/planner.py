"""Lab 6, solved with next hops: at each place a decision where to go, and a search over decisions."""

import math
import random


class Fabric:
    """The neighbours of each node, and the links' rates."""

    def __init__(self, given):
        self.switches = given["switches"]
        self.tier = dict.fromkeys(given["hosts"], 0) | {s: about["tier"] for s, about in self.switches.items()}
        self.speed, self.enters, self.beside = {}, {}, {}
        for link in given["links"]:
            ends = link["from"], link["to"]
            self.speed[ends] = link["rate_bps"]
            self.enters[ends] = link["pipeline"]
            self.beside.setdefault(link["from"], []).append(link["to"])
        self.known = {}

    def hops(self, node, fell, server):
        """The fewest hops from a node to a server, and the next nodes with which it takes so many."""
        key = node, fell, server
        if key not in self.known:
            self.known[key] = (math.inf, [])
            best, after = math.inf, []
            for peer in self.beside[node]:
                falls = self.tier[peer] < self.tier[node]
                if peer == server:
                    best, after = 1, [peer]
                    break
                if self.tier[peer] == 0 or (fell and not falls):
                    continue
                more = 1 + self.hops(peer, falls, server)[0]
                if more < best:
                    best, after = more, []
                if more == best < math.inf:
                    after.append(peer)
            self.known[key] = (best, after)
        return self.known[key]


class Tree:
    """The tree of a job for given decisions: its flows, and the places where they are summed."""

    def __init__(self, fabric, job, decisions):
        self.job, self.decisions = job, decisions
        self.members = {}
        ways = {worker: self.way(fabric, worker) for worker in job["workers"]}
        for way in ways.values():
            last = way[0][0]
            for _, place in way[1:]:
                if place is not None:
                    self.members.setdefault(place, {})[last] = True
                    last = place
        self.flows = {}
        for worker, way in ways.items():
            sender, path = worker, [worker]
            for node, place in way[1:]:
                path.append(node)
                if place is not None and len(self.members[place]) > 1:
                    self.flows[sender] = (place, path)
                    sender, path = place, [node]
            self.flows[sender] = (job["server"], path)

    def way(self, fabric, worker):
        """The nodes from a worker to the server, each with its place of summing, if it has one."""
        server = self.job["server"]
        node, fell, name = worker, False, worker
        way = [(worker, None)]
        while node != server:
            _, options = fabric.hops(node, fell, server)
            if len(options) > 1:
                following = options[self.decisions.get((node, name), 0) % len(options)]
                self.decisions.setdefault((node, name), 0)
            else:
                following = options[0]
            fell = fabric.tier[following] < fabric.tier[node]
            pipeline = fabric.enters[node, following]
            node = following
            sums = node in fabric.switches and fabric.switches[node]["ina"]
            place = (node, pipeline) if sums else None
            name = place or name
            way.append((node, place))
        return way

    def sums(self):
        """The places where two or more flows meet."""
        return sorted(place for place, senders in self.members.items() if len(senders) > 1)


def usage(trees):
    """Flows by link."""
    found = {}
    for tree in trees:
        for _, path in tree.flows.values():
            for n in range(len(path) - 1):
                ends = path[n], path[n + 1]
                found[ends] = found.get(ends, 0) + 1
    return found


def badness(fabric, trees):
    """The time of the fullest link for one bit of every flow, and with lower weight those of the next links."""
    times = sorted((n / fabric.speed[ends] for ends, n in usage(trees).items()), reverse=True)
    return times[0], sum(time**10 for time in times[:12])


def plan(fabric, jobs):
    """Trees by simulated annealing over next hops, from three starts."""
    known = Fabric(fabric)
    best = None
    for start in range(3):
        found = anneal(known, jobs, random.Random(start))
        if best is None or found[0] < best[0]:
            best = found
    return as_asked(known, jobs, best[1], best[0])


def anneal(fabric, jobs, draw, steps=700):
    """The best time and trees of one search."""
    decisions = [{} for _ in jobs]
    trees = [Tree(fabric, job, own) for job, own in zip(jobs, decisions, strict=False)]
    for own in decisions:
        for key in own:
            own[key] = draw.randrange(64)
    trees = [Tree(fabric, job, own) for job, own in zip(jobs, decisions, strict=False)]
    now = badness(fabric, trees)
    best = now[0], list(trees)
    for step in range(steps):
        at = draw.randrange(len(jobs))
        keys = list(decisions[at])
        if not keys:
            continue
        new = dict(decisions[at])
        for _ in range(draw.choice((1, 1, 2, 3))):
            new[draw.choice(keys)] = draw.randrange(64)
        tree = Tree(fabric, jobs[at], new)
        others = [*trees[:at], tree, *trees[at + 1 :]]
        found = badness(fabric, others)
        warm = 0.5 * (1 - step / steps)
        if found <= now or found[0] <= now[0] * (1 + warm * draw.random() ** 3):
            trees, decisions[at], now = others, new, found
            if now[0] < best[0]:
                best = now[0], list(trees)
    return best


def as_asked(fabric, jobs, trees, time):
    """The trees in the form of the task."""
    users = {}
    for number, tree in enumerate(trees):
        for place in tree.sums():
            users.setdefault(place, []).append(number)
    answer = []
    for number, (job, tree) in enumerate(zip(jobs, trees, strict=False)):
        aggregators, named = {}, {}
        for count, place in enumerate(tree.sums()):
            named[place] = f"agg{count}"
            room = fabric.switches[place[0]]["slots"] // len(users[place])
            aggregators[named[place]] = {
                "switch": place[0],
                "pipeline": place[1],
                "first_slot": room * users[place].index(number),
                "slots": room,
            }
        paths = [
            {"from": named.get(who, who), "to": named.get(to, to), "path": path}
            for who, (to, path) in tree.flows.items()
        ]
        answer.append({"job": job["job"], "rate_bps": 1 / time, "aggregators": aggregators, "paths": paths})
    return answer
