"""Emulation of in-network aggregation of gradients: one package, whose folders stand at the top of the repository."""

__version__ = "0.1.0"
