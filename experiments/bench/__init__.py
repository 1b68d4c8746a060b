"""Benchmarks: the packets per second that each switch target carries, and the time that ARO's planners take."""
