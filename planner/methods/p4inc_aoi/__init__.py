"""P4INC-AOI: jobs scheduled onto units, in-network computing (INC) and the circuits of an all-optical interconnect."""
