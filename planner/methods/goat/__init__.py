"""GOAT: gradients of sub-models scheduled to switches, each with memory for all of what it sums (Fang et al.)."""
