"""Placement of the workers of jobs that come and go, and assignment of INA to jobs: the step before any planner."""
