"""Lab 4: a worker whose only state is its results: a slot is at its first fragment without one."""

from packet import GRADIENT, RESULT, Packet


class Worker:
    def __init__(self, worker, workers, pool, fragments):
        self.worker, self.workers, self.pool = worker, workers, pool
        self.fragments = dict(enumerate(fragments))
        self.results = {}

    def next_of(self, slot):
        return min((f for f in self.fragments if f % self.pool == slot and f not in self.results), default=None)

    def start(self):
        return [packet for slot in range(self.pool) for packet in self.timeout(slot)]

    def receive(self, packet):
        fragment = packet.slot + self.pool * packet.round
        if packet.kind == RESULT and fragment in self.fragments and fragment not in self.results:
            self.results[fragment] = packet.values
            return self.timeout(packet.slot)
        return []

    def timeout(self, slot):
        fragment = self.next_of(slot)
        if fragment is None:
            return []
        return [Packet(GRADIENT, self.worker, slot, fragment // self.pool, self.fragments[fragment])]
