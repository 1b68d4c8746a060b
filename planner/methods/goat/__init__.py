"""GOAT: sub-models' gradients scheduled to switches, each with memory for all of what it sums (Fang et al.)."""
