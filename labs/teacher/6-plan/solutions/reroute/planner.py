"""Lab 6, solved by taking racks out and routing them anew, one at a time, along the emptiest links."""

import itertools
import random


def plan(fabric, jobs):
    """The best of several rounds of routing in drawn orders."""
    network = Network(fabric)
    draw = random.Random("reroute")
    best, most = None, 0
    for _ in range(10):
        trees = [Routes(network, job) for job in jobs]
        for tree in trees:
            for worker in draw.sample(tree.job["workers"], len(tree.job["workers"])):
                tree.way[worker] = draw.choice(network.ways(worker, tree.job["server"]))
        for _ in range(6):
            for tree in draw.sample(trees, len(trees)):
                for group in draw.sample(tree.groups(), len(tree.groups())):
                    emptiest(network, trees, tree, group, draw)
            rate = network.rate_of(trees)
            if rate > most:
                best, most = [dict(tree.way) for tree in trees], rate
    for tree, way in zip(trees, best, strict=False):
        tree.way = way
    return [tree.answer(most, offset, trees) for offset, tree in enumerate(trees)]


def emptiest(network, trees, tree, group, draw):
    """Give the workers of a group the way by which the fullest links stay emptiest."""
    options = network.ways(group[0], tree.job["server"])
    scored = []
    for option in draw.sample(options, len(options)):
        for worker in group:
            tree.way[worker] = [worker, *option[1:]]
        scored.append((network.pressure(trees), option))
    option = min(scored, key=lambda each: each[0])[1]
    for worker in group:
        tree.way[worker] = [worker, *option[1:]]


class Network:
    """The fabric."""

    def __init__(self, fabric):
        self.about = fabric["switches"]
        self.out = {}
        for link in fabric["links"]:
            self.out.setdefault(link["from"], {})[link["to"]] = (link["rate_bps"], link["pipeline"])
        self.found = {}

    def level(self, node):
        """The tier."""
        return self.about[node]["tier"] if node in self.about else 0

    def ways(self, start, end):
        """Breadth first: the shortest ways that climb, then descend."""
        if (start, end) in self.found:
            return self.found[start, end]
        layer = [([start], False)]
        while True:
            done = [path for path, _ in layer if path[-1] == end]
            if done:
                self.found[start, end] = done
                return done
            grown = []
            for path, down in layer:
                if len(path) > 1 and path[-1] not in self.about:
                    continue
                for peer in self.out[path[-1]]:
                    falls = self.level(peer) < self.level(path[-1])
                    if peer not in path and (falls or not down):
                        grown.append(([*path, peer], falls))
            layer = grown

    def meets(self, a, b):
        """The place where flows from a to b are summed; None if there is none."""
        return (b, self.out[a][b][1]) if b in self.about and self.about[b]["ina"] else None

    def load(self, trees):
        """Flows by link."""
        total = {}
        for tree in trees:
            for link in tree.links():
                total[link] = total.get(link, 0) + 1
        return total

    def rate_of(self, trees):
        """The rate of all."""
        return min(self.out[a][b][0] / n for (a, b), n in self.load(trees).items())

    def pressure(self, trees):
        """The fullest links, the worst first."""
        return sorted((n / self.out[a][b][0] for (a, b), n in self.load(trees).items()), reverse=True)[:16]


class Routes:
    """The paths of a job's workers, and their flows after they meet."""

    def __init__(self, network, job):
        self.network, self.job = network, job
        self.way = {}

    def groups(self):
        """Workers of a rack together, and each alone."""
        racks = {}
        for worker in self.job["workers"]:
            racks.setdefault((*self.network.out[worker],), []).append(worker)
        return [*racks.values(), *([worker] for worker in self.job["workers"])]

    def real(self):
        """The ways that gradients really take: behind a sum, that of the first that came there."""
        first = {}
        for worker in self.job["workers"]:
            way = self.way[worker]
            real = [way[0]]
            for at in range(1, len(way)):
                real.append(way[at])
                place = self.network.meets(real[-2], real[-1])
                if place in first:
                    real += first[place]
                    break
            yield worker, real
            for at in range(1, len(real)):
                place = self.network.meets(real[at - 1], real[at])
                if place:
                    first.setdefault(place, real[at + 1 :])

    def flows(self):
        """By link, the senders over it: workers or places of sums."""
        who = {}
        for worker, real in self.real():
            sender = worker
            for a, b in itertools.pairwise(real):
                who.setdefault((a, b), {})[sender] = True
                sender = self.network.meets(a, b) or sender
        return who

    def links(self):
        """A link for each flow on it."""
        for link, senders in self.flows().items():
            for _ in senders:
                yield link

    def sums(self):
        """Places where at least two flows arrive."""
        arriving = {}
        for (a, b), senders in self.flows().items():
            place = self.network.meets(a, b)
            if place:
                arriving.setdefault(place, set()).update((a, sender) for sender in senders)
        return {place for place, senders in arriving.items() if len(senders) > 1}

    def answer(self, rate, offset, trees):
        """The tree as it is asked for; every job has its own part of all pipelines."""
        sums, paths = self.sums(), {}
        for worker, real in self.real():
            sender, piece = worker, [worker]
            for a, b in itertools.pairwise(real):
                piece.append(b)
                place = self.network.meets(a, b)
                if place in sums or b == self.job["server"]:
                    to = "{}.{}".format(*place) if place in sums else b
                    paths[sender] = {"from": sender, "to": to, "path": piece}
                    sender, piece = to, [b]
        return {
            "job": self.job["job"],
            "rate_bps": rate * (1 - 1e-12),
            "aggregators": {"{}.{}".format(*place): self.slots(place, offset, len(trees)) for place in sorted(sums)},
            "paths": list(paths.values()),
        }

    def slots(self, place, offset, jobs):
        """The aggregator at a place."""
        part = self.network.about[place[0]]["slots"] // jobs
        return {"switch": place[0], "pipeline": place[1], "first_slot": offset * part, "slots": part}
