"""From a problem (a fabric and its jobs) to a plan, its check, its prediction and its table entries."""
