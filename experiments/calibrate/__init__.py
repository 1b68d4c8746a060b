"""Finds what load this machine carries by running a plan at several link rates, and forecasts later runs from that."""
