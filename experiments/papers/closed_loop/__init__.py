"""Closed loops: what plans gain that know of results, and how near every method comes to what a fabric allows."""
