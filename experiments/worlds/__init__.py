"""Worlds: where a plan runs. An emulated network on a switch target, or a network inside this process."""
