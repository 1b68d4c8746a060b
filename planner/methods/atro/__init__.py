"""ATRO: the topology and the routes of one AllReduce, chosen together."""
