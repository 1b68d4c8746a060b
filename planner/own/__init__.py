"""Planners of your own: every module of this folder that has a `METHOD` is a planner, under the module's name."""
