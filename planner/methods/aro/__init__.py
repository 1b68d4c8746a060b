"""ARO, aggregator-aware routing: the model as the paper prints it, and fast exact methods with the same optimum."""
