"""The same plans in two worlds, and how far their figures differ."""
