"""Packets per second that each installed switch target carries without loss, side by side."""
