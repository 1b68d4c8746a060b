"""Studies: many runs by design, one table of results, summaries with intervals, and figures."""
