"""ARO, aggregator-aware routing: the model as the paper prints it, and the fast methods that agree with it."""
