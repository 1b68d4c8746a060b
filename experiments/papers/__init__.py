"""The papers' evaluations: one folder or module for each paper, their shared code, and the registry of figures."""
