"""The papers' evaluations: a room for each paper, what they share, and every figure by its name."""
