"""Fabrics: immutable data, where they come from and how they are drawn, and the Mininet network built from one."""
