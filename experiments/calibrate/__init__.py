"""Finds the load that this machine carries by running a plan at several rates, and forecasts later runs from it."""
