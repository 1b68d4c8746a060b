"""Benchmarks: the packets per second that each switch target carries, and the planning time of ARO's planners."""
