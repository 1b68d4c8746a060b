"""Worlds in which plans run: emulated networks on a switch target, or a network inside this process."""
