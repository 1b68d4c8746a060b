"""Your own planners: every module of this folder with a `METHOD` is a planner, under the module's name."""
