"""ARO, aggregator-aware routing: the literal model of the paper, and the fast methods that agree with it."""
